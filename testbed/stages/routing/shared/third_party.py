"""Third-party daemons: processes of each station, configured by files in the results' `routing/`.

They do not use link feedback, and set routes without `quickack` (quickack.py adds it).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import RunError
from testbed.host.processes import Child, limit_s
from testbed.stages.routing import Network
from testbed.stages.routing.shared.station_processes import StationProcesses
from testbed.stages.station import Station

READY_DEADLINE_S = 20.0
Argv = Callable[[Station], list[str]]


@dataclass(frozen=True)
class Sign:
    """A sign that a process of a station works: a socket on a port, a file as the process sees it, or a printed text."""

    udp: int | None = None
    tcp: int | None = None
    file: str | None = None
    text: str | None = None

    def seen(self, child: Child) -> bool:
        """Whether the process shows it."""
        if self.text is not None:
            return self.text in child.printed()
        if self.file is not None:
            return Path(f"/proc/{child.pid}/root{self.file}").exists()
        if self.tcp is not None:
            return child.listens("tcp", self.tcp)
        return self.udp is None or child.listens("udp", self.udp)

    def __str__(self) -> str:
        if self.text is not None:
            return f'"{self.text}" in its output'
        if self.file is not None:
            return f"file {self.file}"
        return f"socket on {'UDP' if self.tcp is None else 'TCP'} port {self.udp or self.tcp}"


@contextmanager
def processes_running(
    network: Network,
    name: str,
    argv: Argv,
    sign: Callable[[Station], Sign],
    *,
    stop: int,
    ready: Callable[[list[Station]], None] = lambda _stations: None,
) -> Iterator[StationProcesses]:
    """Run a process at each station, which has shown its sign on entry. Their output is in log/<name>-<station>.log. `ready` is
    called with the stations whose processes have shown it."""
    children, remedy = network.children, "the routes went with it; run it again"

    def start(station: Station) -> Child:
        return children.start(f"{name}-{station.name}", argv(station), netns=station.netns, pids=station.pids, remedy=remedy)

    def wait(started: Mapping[Station, Child]) -> None:
        _wait_for_signs(network, {child: sign(station) for station, child in started.items()})
        ready(list(started))

    processes = StationProcesses(children, start, wait, stop=stop)
    try:
        processes.start(network.stations)
        yield processes
    finally:
        processes.end_all()


def _wait_for_signs(network: Network, signs: dict[Child, Sign]) -> None:
    waiting = [*signs]
    within_s = limit_s(READY_DEADLINE_S, len(waiting))
    deadline = time.monotonic() + within_s
    while waiting := [child for child in waiting if not signs[child].seen(child)]:
        network.children.check()
        if time.monotonic() > deadline:
            child = waiting[0]
            raise RunError(f"{child.name}: no {signs[child]} within {within_s:g} s; see {child.log}")
        time.sleep(0.01)
