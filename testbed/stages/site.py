"""The parameters of one run: its scenario, seed, folders and programs."""

import zlib
from dataclasses import dataclass, field
from functools import cached_property
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
    cgroup: Path | None  # of the run; None: an ordinary user's (testbed.host.cgroup)
    programs: Programs = BUILT
    outside: Path | None = None  # the network namespace of `manet`, if wired hosts may reach it
    # Bytes and CRC-32 of each file that `write` wrote, which testbed/runs/outputs.py compares; one with all copies by `replace`.
    wrote: dict[str, tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)

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
        if self.cgroup is None:
            return []
        return [self.cgroup / container.name for container in self.scenario.containers if container.cpu is not None]

    @cached_property
    def of_tcps(self) -> dict[str, bool]:
        """What the flows' TCPs need of the routing daemons; cached, since the configuration of every station asks for it."""
        scenario = self.scenario
        return {
            "error_notices": scenario.tcp_wants_error_notices, "notices": scenario.tcp_wants_notices,
            "tcp_unreachable": scenario.tcp_hears_unreachable,
        }  # fmt: skip

    def write(self, name: str, text: str, *, append: bool = False) -> None:
        """Write a text file of the run's directory, whose content at the end of the run is to be this."""
        content = text.encode()
        size, total = self.wrote.get(name, (0, 0)) if append else (0, 0)
        with (self.directory / name).open("ab" if append else "wb") as file:
            file.write(content)
        self.wrote[name] = size + len(content), zlib.crc32(content, total)

    def folder(self, name: str) -> Path:
        """A folder of the run's directory; it is made if missing."""
        path = self.directory / name
        path.mkdir(exist_ok=True)
        return path
