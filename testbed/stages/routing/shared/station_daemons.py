"""A protocol with a daemon at each station, which events and the prompt start and end."""

from testbed.host.processes import Child
from testbed.stages.routing import Network, Protocol
from testbed.stages.routing.shared.station_processes import StationProcesses
from testbed.stages.station import Station


class StationDaemons(Protocol):
    """`daemons`: the daemon of each station that has one now."""

    def __init__(self, network: Network, daemons: StationProcesses) -> None:
        super().__init__(network)
        self.daemons = daemons

    @property
    def has_daemons(self) -> bool:
        """See `Protocol`."""
        return True

    def start_daemon(self, station: Station) -> None:
        """See `Protocol`. Helpers of a daemon run on while it does not."""
        self.daemons.start([station])

    def end_daemon(self, station: Station, *, kill: bool) -> None:
        """See `Protocol`; RunError also for an end that `check_end` refuses."""
        ended = self.daemons.end(station, kill=kill)
        if not kill:
            self.check_end(ended)

    def check_end(self, ended: Child) -> None:
        """RunError if the exit status of a daemon that was ended in order is no success; any is one by default."""
