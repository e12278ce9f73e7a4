"""Our own daemons (routing/, formats/routing.md): one process a station, in its namespace.

A run keeps of each station in `routing/`: <station>.config.json, the notes <station>.jsonl, the event log <station>.events.jsonl
(with the configuration a replay file), and <station>.status.json of the start and the end of the traffic.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from scenarios.routing import DAEMONS
from testbed.host import namespace, offloads
from testbed.host.processes import Child
from testbed.stages import iproute, kernel_tcp
from testbed.stages.daemon import TUN, daemon_config
from testbed.stages.routing import Network, Say
from testbed.stages.routing.shared.settle import wait_until_settled
from testbed.stages.routing.shared.station_processes import StationDaemons, StationProcesses
from testbed.stages.site import SOCKETS
from testbed.stages.station import Station
from testbed.stages.status import ask, status_socket

READY_DEADLINE_S = 30.0


class Daemons(StationDaemons):
    """The daemons of all stations; `settles`: the protocol is proactive."""

    def __init__(self, network: Network, daemons: StationProcesses, *, settles: bool) -> None:
        super().__init__(network, daemons)
        self.settles = settles

    def before_traffic(self, say: Say) -> None:
        """Wait for routes, at most `routing.settle` seconds, if the protocol is proactive."""
        if self.settles:
            wait_until_settled(self.network, say)

    def check_end(self, ended: Child) -> None:
        """See `StationDaemons`: our own daemons end with status 0."""
        if ended.popen.returncode != 0:
            raise ended.failure()

    def processes(self) -> dict[str, list[int]]:
        """See `RunningProtocol`."""
        running = self.daemons.running
        return {station.name: [running[station].pid] for station in self.network.stations if station in running}

    def status(self) -> dict[str, dict[str, Any]]:
        """The answer of each daemon's status socket, by station; without those whose daemon an event has ended."""
        running = [station for station in self.network.stations if station in self.daemons.running]
        return {station.name: ask(status_socket(station.name), "status") for station in running}


@contextmanager
def running(network: Network) -> Iterator[Daemons]:
    """See `testbed.stages.routing`; every daemon has printed `ready` on entry. RunError if one failed at its end."""
    site, children = network.site, network.children
    name = site.scenario.routing.protocol
    program = site.programs.daemon(name)
    (SOCKETS / "routing").mkdir(exist_ok=True)
    epoch_ns = network.medium.ask("status")["epoch_ns"]

    def start(station: Station) -> Child:
        path = site.folder("routing") / f"{station.name}.config.json"
        mtu = namespace.within(station.netns, partial(offloads.mtu, station.radio.name))
        config = daemon_config(site, station.name, station.number, wires=network.wires_of(station), mtu=mtu, epoch_ns=epoch_ns)
        path.write_text(json.dumps(config, indent=1) + "\n")
        remedy = f"the routes went with it; see log/{name}-{station.name}.log and run it again"
        return children.start(
            f"{name}-{station.name}", [program, "run", path], netns=station.netns, pids=station.pids, remedy=remedy
        )

    def ready(started: Mapping[Station, Child]) -> None:
        children.wait_for_text(started.values(), "ready\n", within_s=READY_DEADLINE_S)
        set_devices(network, TUN, list(started))

    daemons = StationProcesses(children, start, ready)
    try:
        daemons.start(network.stations)
        yield Daemons(network, daemons, settles=DAEMONS[name].rules.settle_s is not None)
    finally:
        ended = daemons.end_all()
    failed = [daemon for daemon in ended if daemon.popen.returncode != 0]
    if failed:
        raise failed[0].failure()


def set_devices(network: Network, device: str, stations: Sequence[Station] | None = None) -> None:
    """Apply the radio's offload settings (testbed/stages/addresses.py) to `device` of these stations (default: of all): TCP
    uses those of its route's device, which is the TUN while there is no route, and always with DSR."""
    offload = kernel_tcp.profile(network.site.scenario.profile).get("offload", {})
    stations = network.stations if stations is None else stations
    for station in stations:
        namespace.within(station.netns, lambda: offloads.set_offloads(device, offload))
    if "gso_max_segs" in offload:
        line = f"link set {device} gso_max_segs {offload['gso_max_segs']}"
        iproute.batches({station: [line] for station in stations}, device, network.site.log)
