"""Third-party daemons: one process a station, configured by files in the results' `routing/`.

They do not use link feedback, and set routes without `quickack` (quickack.py adds it).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import RunError
from testbed.host.processes import Child
from testbed.stages.routing import Network, Protocol, Say
from testbed.stages.routing.shared.quickack import acks_at_once
from testbed.stages.routing.shared.settle import wait_until_settled
from testbed.stages.station import Station
from topologies.addresses import INTERFACE

READY_DEADLINE_S = 20.0
Argv = Callable[[Station], list[str | Path]]


class Settling(Protocol):
    """A proactive protocol; stations are reached over `device`."""

    def __init__(self, network: Network, device: str = INTERFACE) -> None:
        super().__init__(network)
        self.device = device

    def before_traffic(self, say: Say) -> None:
        """Wait for routes between the ends of all flows, at most `routing.settle` seconds."""
        wait_until_settled(self.network, self.network.site.scenario.routing.settle, say, devices=(self.device,))


@contextmanager
def daemons_running(network: Network, argv: Argv, *, port: int) -> Iterator[list[Child]]:
    """Run a daemon on each station; the sockets on UDP `port` are open on entry. Their output is in log/<name>-<station>.log."""
    name, children = network.site.scenario.routing.protocol, network.children
    remedy = "the routes went with it; run it again"
    daemons = [
        children.start(f"{name}-{station.name}", argv(station), netns=station.netns, remedy=remedy)
        for station in network.stations
    ]
    _wait_until_listening(network, daemons, port)
    try:
        with acks_at_once(network):
            yield daemons
    finally:
        children.stop(daemons)


def _wait_until_listening(network: Network, daemons: list[Child], port: int) -> None:
    deadline = time.monotonic() + READY_DEADLINE_S
    waiting = list(daemons)
    while waiting := [daemon for daemon in waiting if not _listening(daemon, port)]:
        network.children.check()
        if time.monotonic() > deadline:
            child = waiting[0]
            raise RunError(f"{child.name}: no socket on UDP port {port} within {READY_DEADLINE_S:g} s; see {child.log}")
        time.sleep(0.01)


def _listening(daemon: Child, port: int) -> bool:
    """Whether the daemon has its socket, by the namespace's tables (proc(5))."""
    for table in ("udp", "udp6"):
        try:
            lines = Path(f"/proc/{daemon.pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            return False
        if any(line.split()[1].endswith(f":{port:04X}") for line in lines):
            return True
    return False
