"""Figures of nights: what `manet nightly` measured, and which of it changed beyond noise (docs/ci.md).

`table` is the history, nights.parquet (formats/nights.md); `change` the statistical test; `page` the page of trends.
"""
