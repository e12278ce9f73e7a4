"""A mesh of stations with the kernel's own TCP in other projects' tests (docs/testing-with-pytest.md).

`Mesh` brings a network of this testbed up for a `with` block; `manet_testbed.pytest_plugin` gives tests the fixture `mesh`. The
names below are the interface, which stays; everything else of the checkout may change. The test process needs Python 3.11 alone:
the testbed itself runs under the checkout's own Python (./setup.sh).
"""

from manet_testbed.answers import Ping, Route, Throughput, Verdict
from manet_testbed.errors import CommandFailed, MeshError, MeshTimeout, MissingRequirement, WrongRequest
from manet_testbed.mesh import Mesh
from manet_testbed.process import Process
from manet_testbed.requirements import missing_requirement
from manet_testbed.station import Station

__version__ = "0.1.0"
__all__ = [
    "CommandFailed",
    "Mesh",
    "MeshError",
    "MeshTimeout",
    "MissingRequirement",
    "Ping",
    "Process",
    "Route",
    "Station",
    "Throughput",
    "Verdict",
    "WrongRequest",
    "missing_requirement",
]
