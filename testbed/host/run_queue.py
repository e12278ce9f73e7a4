"""Time for which a run's programs were ready to run but waited for a processor: /proc/PID/task/TID/schedstat.

The file has three numbers a task (the kernel's Documentation/scheduler/sched-stats.rst): nanoseconds on a processor, nanoseconds
waiting for one, and the number of time slices. They only rise, and the kernel keeps them anyway. A kernel without scheduler
information has no such file, or zeroes in it.
"""

from pathlib import Path
from typing import NamedTuple, Self

from testbed.host import cgroup

# The medium reports its own lateness; captures, TCP samples and the stations' idle shells change nothing on the air.
IGNORED_PROGRAMS = frozenset({"manet-medium", "manet-tcp", "tcpdump", "bash"})


class WaitTime(NamedTuple):
    """Time for which one or several tasks waited for a processor (ns), and number of time slices (turns)."""

    ns: int = 0
    turns: int = 0

    def __sub__(self, other: Self) -> "WaitTime":
        return WaitTime(self.ns - other.ns, self.turns - other.turns)

    @classmethod
    def parse(cls, schedstat: str) -> Self:
        """Parse the content of a schedstat file. Raises ValueError."""
        _ran_ns, waited_ns, turns = schedstat.split()
        return cls(int(waited_ns), int(turns))


class RunQueue:
    """The tasks of a control group; `read` gives the wait of each since it started."""

    def __init__(self, group: Path, proc: Path = Path("/proc")) -> None:
        self.group, self.proc = group, proc
        self._programs: dict[int, str] = {}

    def read(self) -> dict[int, WaitTime]:
        """The wait by thread id. A task that ends meanwhile is left out."""
        tasks: dict[int, WaitTime] = {}
        for pid in cgroup.members(self.group):
            try:
                if self._program(pid) not in IGNORED_PROGRAMS:
                    for task in (self.proc / str(pid) / "task").iterdir():
                        tasks[int(task.name)] = WaitTime.parse((task / "schedstat").read_text())
            except (OSError, ValueError):
                continue
        return tasks

    def _program(self, pid: int) -> str:
        """Its name. A child that has just been forked has its parent's, so only ignored programs are remembered."""
        if pid in self._programs:
            return self._programs[pid]
        name = (self.proc / str(pid) / "comm").read_text().strip()
        if name in IGNORED_PROGRAMS:
            self._programs[pid] = name
        return name
