"""The `manet` command and the runs behind it: read a scenario, run it, analyse the result."""

import sys

__version__ = "0.3.0"

# mininet.node imports distutils to compare a version number. If setuptools has replaced distutils, that imports all of it:
# a third of the start time of a run's own process.
if sys.version_info < (3, 12) and (hack := sys.modules.get("_distutils_hack")) is not None:
    hack.remove_shim()
