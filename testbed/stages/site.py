"""The parameters of one run: its scenario, seed, folders and programs."""

from dataclasses import dataclass
from pathlib import Path

from scenarios.scenario import Scenario
from testbed.host.state import STATE_FOLDER
from testbed.programs import BUILT, Programs

# The run's own folder in memory (a tmpfs in its mount namespace, the same path in every run): a Unix socket's path
# must be shorter than 108 bytes (unix(7)), which a results folder's need not be.
SOCKETS = STATE_FOLDER


@dataclass(frozen=True)
class Site:
    """The parameters that stages need before anything is started."""

    scenario: Scenario
    seed: int
    directory: Path
    cgroup: Path
    programs: Programs = BUILT
    outside: Path | None = None  # the network namespace of `manet`, if wired hosts may reach it

    @property
    def log(self) -> Path:
        """The run's folder for logs of the processes."""
        return self.directory / "log"

    @property
    def control_socket(self) -> Path:
        """The medium's control socket, in the run's own mount namespace."""
        return SOCKETS / "medium.sock"

    @property
    def feedback_folder(self) -> Path:
        """The folder of the link-feedback sockets, <station>.sock."""
        return SOCKETS / "feedback"

    @property
    def limited_groups(self) -> list[Path]:
        """The control groups whose programs have a limit of processor time, and therefore wait."""
        return [self.cgroup / one.name for one in self.scenario.containers if one.cpu is not None]

    def folder(self, name: str) -> Path:
        """A folder of the run's directory; it is made if missing."""
        path = self.directory / name
        path.mkdir(exist_ok=True)
        return path
