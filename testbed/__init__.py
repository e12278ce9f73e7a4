"""The `manet` command and what stands behind it: declare a scenario, run it, hand it to the analysis."""

__version__ = "0.1.0"
