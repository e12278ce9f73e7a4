"""Metrics, tables and figures from run directories (formats/results.md). Needs neither root nor Mininet."""
