"""Routing protocols: `routing/<name>.py` implements `routing = "<name>"` of a scenario; `shared/own.py` starts our own daemons,
`shared/described.py` the third-party daemons that a description names (docs/extend.md).

A file offers one context manager, `running(network)`: on entry it starts the protocol on every station and returns when it runs;
on exit it ends the protocol. It yields a `RunningProtocol`, which waits for routes and reports status. Examples: `static.py` has
no daemons, `batman_adv.py` the kernel's; `shared/` holds common parts. The options of each protocol are a class of
scenarios/routing.py, its requirements are in testbed/host/protocols.py.
"""

import importlib
import pkgutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from scenarios.routing import OWN_DAEMONS, SHIPPED
from testbed.errors import UsageError
from testbed.host.processes import Processes
from testbed.stages.medium import Medium
from testbed.stages.site import Site
from testbed.stages.station import Station, StationNet
from topologies.addresses import EVERYTHING, wire_network, wire_network6

Say = Callable[..., None]


@dataclass(frozen=True)
class Network:
    """The parts of a run that a protocol may use: stations with addresses, the medium, and child processes."""

    site: Site
    net: StationNet
    medium: Medium
    children: Processes

    @property
    def stations(self) -> list[Station]:
        """All stations; wired hosts are not among them."""
        return self.net.stations

    def wires_of(self, station: Station) -> list[str]:
        """The networks that a gateway reaches by wire: those of all wires of its hosts, and every address if one of them leads to
        the real network. Empty for other stations."""
        hosts = {wire.host for wire in self.net.wires if wire.gateway is station}
        internet = any(wire.gateway is station and wire.settings.nat for wire in self.net.wires)
        return [wire_network(wire.number) for wire in self.net.wires if wire.host in hosts] + [EVERYTHING] * internet

    def wires6_of(self, station: Station) -> list[str]:
        """Like `wires_of`, for IPv6; the real network is reached by IPv4 only. Empty in a scenario without `ipv6`."""
        hosts = {wire.host for wire in self.net.wires if wire.gateway is station}
        return [wire_network6(wire.number) for wire in self.net.wires if wire.host in hosts and self.site.scenario.ipv6]


class RunningProtocol:
    """A running protocol; the defaults are for one without daemons and settling."""

    began_ns: int | None = None  # model time at which its start began

    def __init__(self, network: Network) -> None:
        self.network = network

    def before_traffic(self, say: Say) -> None:
        """Return when the flows may begin; RunError if they never can. The prompt does not call it."""

    @property
    def has_daemons(self) -> bool:
        """Whether `start_daemon` and `end_daemon` work; scenarios/events.py refuses events of daemons without."""
        return False

    def start_daemon(self, station: Station) -> None:
        """Start the station's daemon, which does not run; returns when it works. RunError if it runs, or does not start."""
        raise NotImplementedError

    def end_daemon(self, station: Station, *, kill: bool) -> None:
        """End the station's daemon, by SIGKILL or as at the end of a run. RunError if it does not run, or had ended before."""
        raise NotImplementedError

    def hops(self) -> dict[str, dict[str, int]]:
        """Path lengths that never change, of each station or host, by the destination's address. Daemons report their own."""
        return {}

    def processes(self) -> dict[str, list[int]]:
        """The process ids of each station's daemon and its helpers, by station; empty without daemons."""
        return {}

    def status(self) -> dict[str, dict[str, Any]]:
        """The status of each station's daemon, by station (formats/routing.md); empty for third-party daemons."""
        return {}

    def status_texts(self) -> dict[str, str]:
        """The text in which a third-party daemon shows its state, by station; empty for all others."""
        return {}


def names() -> list[str]:
    """The names of the protocols, as in scenarios."""
    own_files = (module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    return sorted([*own_files, *OWN_DAEMONS, *SHIPPED])


def running(network: Network) -> AbstractContextManager[RunningProtocol]:
    """Run the scenario's protocol until the block ends; UsageError for an unknown one."""
    routing = network.site.scenario.routing
    name = routing.protocol
    if routing.DESCRIPTION is not None:
        module = "shared.described"
    elif name in names():
        module = "shared.own" if name in OWN_DAEMONS else name.replace("-", "_")
    else:
        raise UsageError(f'routing "{name}" is not known; use one of {", ".join(names())}')
    protocol: AbstractContextManager[RunningProtocol] = importlib.import_module(f"{__name__}.{module}").running(network)
    return protocol
