"""Routing protocols, one file each: `routing/<name>.py` is what `routing = "<name>"` in a scenario means; our own daemons
start alike, by `shared/ours.py`.

A file offers one context manager, `running(network)`: on entering it starts the protocol on every station and returns
when it runs; on leaving it ends what it started. It yields a `Protocol`, which says when flows may begin and what the
stations know. See `static.py` for one without daemons, `babeld.py` for a third-party daemon;
`shared/` is what several use. The options of each are a class of scenarios/routing.py; what a machine must have for it is
said in testbed/host/protocols.py.
"""

import importlib
import pkgutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from scenarios.routing import OUR_DAEMONS
from testbed.errors import UsageError
from testbed.host.processes import Processes
from testbed.stages.medium import Medium
from testbed.stages.site import Site
from testbed.stages.station import Station, StationNet
from topologies.addresses import wire_network

Say = Callable[..., None]


@dataclass(frozen=True)
class Network:
    """What a protocol may use: the stations with their addresses, the medium, and where children are kept."""

    site: Site
    net: StationNet
    medium: Medium
    children: Processes

    @property
    def stations(self) -> list[Station]:
        """All stations; wired hosts are not among them."""
        return self.net.stations

    def wires_of(self, station: Station) -> list[str]:
        """The networks that a gateway reaches by its wires: of all wires of the hosts there. Empty for other stations."""
        hosts = {wire.host for wire in self.net.wires if wire.gateway is station}
        return [wire_network(wire.number) for wire in self.net.wires if wire.host in hosts]


class Protocol:
    """A protocol at work. What one has no use for it leaves as it is here."""

    def __init__(self, network: Network) -> None:
        self.network = network

    def before_traffic(self, say: Say) -> None:
        """Return when the flows may begin, or raise RunError if they never can. (The prompt does not ask.)"""

    def hops(self) -> dict[str, dict[str, int]]:
        """The lengths of paths that never change: of each station or host, by the destination's address. Daemons tell theirs."""
        return {}

    def status(self) -> dict[str, dict]:
        """What each station's daemon tells of itself, by station; only ours do (formats/routing.md)."""
        return {}


def names() -> list[str]:
    """The protocols, as scenarios name them. A folder is none."""
    own_files = (module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    return sorted([*own_files, *OUR_DAEMONS])


def running(network: Network) -> AbstractContextManager[Protocol]:
    """The scenario's protocol, for the length of a `with` block."""
    name = network.site.scenario.routing.protocol
    if name not in names():
        raise UsageError(f'routing "{name}" is not known; use one of {", ".join(names())}')
    module = "shared.ours" if name in OUR_DAEMONS else name.replace("-", "_")
    return importlib.import_module(f"{__name__}.{module}").running(network)
