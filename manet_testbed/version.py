"""The version of this package, which is that of the testbed that it works with."""

__version__ = "0.3.0"
