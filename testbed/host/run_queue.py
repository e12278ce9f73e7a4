"""How long a run's programs stood ready to run before a processor took them: /proc/PID/task/TID/schedstat.

Three numbers a task (the kernel's Documentation/scheduler/sched-stats.rst): nanoseconds on a processor, nanoseconds ready
but waiting for one, and how often it was given one. They only rise, and cost the kernel nothing that it does not do anyway.
A kernel without scheduler information has no such file, or zeroes in it.
"""

from pathlib import Path
from typing import NamedTuple, Self

from testbed.host import cgroup

# The medium tells its own lateness; captures, samples of TCP and the stations' idle shells change nothing on the air.
ASIDE = frozenset({"manet-medium", "manet-tcp", "tcpdump", "bash"})


class Waited(NamedTuple):
    """Of one task, or of many, in some time: how long it waited for a processor, and in how many turns."""

    ns: int = 0
    turns: int = 0

    def __sub__(self, other: Self) -> "Waited":
        return Waited(self.ns - other.ns, self.turns - other.turns)

    @classmethod
    def parse(cls, schedstat: str) -> Self:
        _ran_ns, waited_ns, turns = schedstat.split()
        return cls(int(waited_ns), int(turns))


class RunQueue:
    """The tasks of a control group; `look` reads what each has waited since it began."""

    def __init__(self, group: Path, proc: Path = Path("/proc")) -> None:
        self.group, self.proc = group, proc
        self._programs: dict[int, str] = {}

    def look(self) -> dict[int, Waited]:
        """By task; one that ends while it is looked at is left out."""
        tasks: dict[int, Waited] = {}
        for pid in cgroup.members(self.group):
            try:
                if self._program(pid) not in ASIDE:
                    for task in (self.proc / str(pid) / "task").iterdir():
                        tasks[int(task.name)] = Waited.parse((task / "schedstat").read_text())
            except (OSError, ValueError):
                continue
        return tasks

    def _program(self, pid: int) -> str:
        """Its name. A child that has just been forked has its parent's, so only those set aside are remembered."""
        if pid in self._programs:
            return self._programs[pid]
        name = (self.proc / str(pid) / "comm").read_text().strip()
        if name in ASIDE:
            self._programs[pid] = name
        return name
