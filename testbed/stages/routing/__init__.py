"""Routing protocols, one file each: `routing/<name>.py` is what `routing = "<name>"` in a scenario means.

A file offers one context manager, `running(network)`: on entering it starts the protocol on every station and returns
when it may be relied on; on leaving it ends what it started. See `static.py` for one without daemons. A daemon is started
with `network.children.start(name, argv, netns=station.netns, remedy=...)`; that is watched from then on.
"""

import importlib
import pkgutil
from contextlib import AbstractContextManager
from dataclasses import dataclass

from testbed.errors import UsageError
from testbed.host.processes import Processes
from testbed.stages.medium import Medium
from testbed.stages.site import Site
from testbed.stages.station import Station, StationNet


@dataclass(frozen=True)
class Network:
    """What a protocol may use: the stations with their addresses, the medium, and where children are kept."""

    site: Site
    net: StationNet
    medium: Medium
    children: Processes

    @property
    def stations(self) -> list[Station]:
        return self.net.stations


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "tests")


def running(network: Network) -> AbstractContextManager[None]:
    """The scenario's protocol, for the length of a `with` block."""
    name = network.site.scenario.routing
    if name not in names():
        raise UsageError(f'routing "{name}" is not known; use one of {", ".join(names())}')
    return importlib.import_module(f"{__name__}.{name}").running(network)
