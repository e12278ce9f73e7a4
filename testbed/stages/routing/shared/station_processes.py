"""One process of a kind at each station, such as its routing daemon: all started together, then one at a time by events and the
prompt."""

import signal
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from testbed.errors import RunError
from testbed.host.processes import STARTS_AT_ONCE, Child, Processes
from testbed.stages.routing import Network, RunningProtocol
from testbed.stages.station import Station


class StationProcesses:
    """`running` has the process of each station that has one now. `start` starts it; `ready` waits until it works."""

    def __init__(
        self,
        children: Processes,
        start: Callable[[Station], Child],
        ready: Callable[[Mapping[Station, Child]], None],
        *,
        stop: int = signal.SIGTERM,
    ) -> None:
        self.running: dict[Station, Child] = {}
        self._children, self._start, self._ready, self._stop = children, start, ready, stop

    def start(self, stations: Iterable[Station]) -> None:
        """Start those of the stations, several at a time, and return when all of them work. RunError for one that runs."""
        stations = list(stations)
        for station in stations:
            before = self.running.get(station)
            if before is not None and before.running():
                raise RunError(f"{station.name}: its routing daemon runs; restart it, or stop it before")
            if before is not None:  # it had ended by itself, which a prompt survives
                self._children.release([before])
        with ThreadPoolExecutor(STARTS_AT_ONCE) as pool:
            started = dict(zip(stations, pool.map(self._start_one, stations), strict=True))
        self._ready(started)

    def _start_one(self, station: Station) -> Child:
        """Start one, which is known as running at once: also if the start of another one fails or is interrupted."""
        self.running[station] = child = self._start(station)
        return child

    def end(self, station: Station, *, kill: bool = False) -> Child:
        """End that of a station, by SIGKILL or by its own signal. RunError if it does not run, or has ended by itself."""
        process = self.running.get(station)
        if process is None:
            raise RunError(f"{station.name}: its routing daemon does not run; start it")
        if not process.running():
            raise process.failure()
        del self.running[station]
        self._children.stop([process], first=signal.SIGKILL if kill else self._stop)
        return process

    def end_all(self) -> list[Child]:
        """End all that are left; returns them."""
        left = list(self.running.values())
        self.running.clear()
        self._children.stop(left, first=self._stop)
        return left


class StationDaemons(RunningProtocol):
    """A protocol with a daemon at each station. `daemons`: that of each station that has one now."""

    def __init__(self, network: Network, daemons: StationProcesses) -> None:
        super().__init__(network)
        self.daemons = daemons

    @property
    def has_daemons(self) -> bool:
        """See `RunningProtocol`."""
        return True

    def start_daemon(self, station: Station) -> None:
        """See `RunningProtocol`. Helpers of a daemon run on while it does not."""
        self.daemons.start([station])

    def end_daemon(self, station: Station, *, kill: bool) -> None:
        """See `RunningProtocol`; RunError also for an end that `check_end` refuses."""
        ended = self.daemons.end(station, kill=kill)
        if not kill:
            self.check_end(ended)

    def check_end(self, ended: Child) -> None:
        """RunError if the exit status of a daemon that was ended in order is no success; any is one by default."""
