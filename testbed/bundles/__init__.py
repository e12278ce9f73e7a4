"""Bundles: one archive with everything to rerun and compare the results of a folder (formats/bundle.md, `manet bundle`)."""
