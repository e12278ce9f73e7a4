"""The `manet` command and what stands behind it: declare a scenario, run it, hand it to the analysis."""

import sys

__version__ = "0.1.0"

# mininet.node wants to compare one version number with distutils. Where setuptools has put itself before distutils, that reads
# all of setuptools: a third of the time that a run's own process needs to start.
if sys.version_info < (3, 12) and (hack := sys.modules.get("_distutils_hack")) is not None:
    hack.remove_shim()
