"""Where one run takes place: its scenario, seed, folders, and the paths of the programs it needs."""

from dataclasses import dataclass
from pathlib import Path

from testbed.scenario import Scenario
from testbed.state import STATE_FOLDER

ROOT = Path(__file__).resolve().parent.parent
# The run's own folder in memory (a tmpfs in its mount namespace, the same path in every run): a Unix socket's path
# must be shorter than 108 bytes (unix(7)), which a results folder's need not be.
SOCKETS = STATE_FOLDER


@dataclass(frozen=True)
class Programs:
    """The programs of ours that a run starts, as setup.sh builds them."""

    medium: Path = ROOT / "target" / "release" / "manet-medium"
    kernel_tcp: Path = ROOT / ".build" / "kernel-tcp" / "manet-tcp"

    def as_arguments(self) -> dict[str, str]:
        return {"medium": str(self.medium), "kernel_tcp": str(self.kernel_tcp)}

    @classmethod
    def from_arguments(cls, paths: dict[str, str]) -> "Programs":
        return cls(**{name: Path(path) for name, path in paths.items()})


BUILT = Programs()


@dataclass(frozen=True)
class Site:
    """Everything a stage may want to know before anything is started."""

    scenario: Scenario
    seed: int
    directory: Path
    cgroup: Path
    programs: Programs = BUILT

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def control_socket(self) -> Path:
        return SOCKETS / "medium.sock"

    @property
    def feedback_folder(self) -> Path:
        return SOCKETS / "feedback"

    def folder(self, name: str) -> Path:
        path = self.directory / name
        path.mkdir(exist_ok=True)
        return path
