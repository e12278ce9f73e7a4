"""From run directories (formats/results.md) to metrics, tables and figures. Needs neither root nor Mininet."""
