"""Our own daemons (routing/, formats/routing.md): one process a station, in its namespace.

A run keeps of each station in `routing/`: <station>.config.json, the notes <station>.jsonl, the event log <station>.events.jsonl
(with the configuration a replay file), and <station>.status.json of the start and the end of the traffic.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from scenarios.routing import DAEMONS
from testbed.host import namespace, offloads
from testbed.stages import iproute, kernel_tcp
from testbed.stages.daemon import TUN, daemon_config
from testbed.stages.routing import Network, Protocol, Say
from testbed.stages.routing.shared.settle import wait_until_settled
from testbed.stages.site import SOCKETS
from testbed.stages.station import Station
from testbed.stages.status import ask, status_socket

READY_DEADLINE_S = 30.0


class Daemons(Protocol):
    """The daemons of all stations; `settles`: the protocol is proactive."""

    def __init__(self, network: Network, *, settles: bool) -> None:
        super().__init__(network)
        self.settles = settles

    def before_traffic(self, say: Say) -> None:
        """Wait for routes, at most `routing.settle` seconds, if the protocol is proactive."""
        if self.settles:
            wait_until_settled(self.network, self.network.site.scenario.routing.settle, say)

    def status(self) -> dict[str, dict]:
        """The answer of each daemon's status socket, by station."""
        return {station.name: ask(status_socket(station.name), "status") for station in self.network.stations}


@contextmanager
def running(network: Network) -> Iterator[Daemons]:
    """See `testbed.stages.routing`; every daemon has printed `ready` on entry. RunError if one failed at its end."""
    site, children = network.site, network.children
    name = site.scenario.routing.protocol
    program = site.programs.daemon(name)
    (SOCKETS / "routing").mkdir(exist_ok=True)
    epoch_ns = network.medium.ask("status")["epoch_ns"]
    daemons = []
    for station in network.stations:
        path = site.folder("routing") / f"{station.name}.config.json"
        config = daemon_config(
            site, station.name, station.number, wires=network.wires_of(station), mtu=_mtu(station), epoch_ns=epoch_ns
        )
        path.write_text(json.dumps(config, indent=1) + "\n")
        remedy = f"the routes went with it; see log/{name}-{station.name}.log and run it again"
        daemons.append(children.start(f"{name}-{station.name}", [program, "run", path], netns=station.netns, remedy=remedy))
    children.wait_for_text(daemons, "ready\n", within_s=READY_DEADLINE_S)
    set_devices(network, TUN)
    try:
        yield Daemons(network, settles=DAEMONS[name].rules.settle_s is not None)
    finally:
        children.stop(daemons)
    failed = [daemon for daemon in daemons if daemon.popen.returncode != 0]
    if failed:
        raise failed[0].failure()


def _mtu(station: Station) -> int:
    return namespace.within(station.netns, lambda: offloads.mtu(station.radio.name))


def set_devices(network: Network, device: str) -> None:
    """Apply the radio's offload settings (testbed/stages/addresses.py) to `device`: TCP uses those of its route's device, which
    is the TUN while there is no route, and always with DSR."""
    offload = kernel_tcp.profile(network.site.scenario.profile).get("offload", {})
    for station in network.stations:
        namespace.within(station.netns, lambda: offloads.set_offloads(device, offload))
    if "gso_max_segs" in offload:
        line = f"link set {device} gso_max_segs {offload['gso_max_segs']}"
        iproute.batches({station: [line] for station in network.stations}, device, network.site.log)
