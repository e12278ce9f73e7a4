"""Processor time that programs beyond a run take: how much of a delay the host's other work can explain.

/proc/stat (proc_stat(5)) has the busy time of all processors, cpu.stat of the run's control group (cgroup-v2) that of the run; of
a run without a group, its processes and those that they have waited for (proc_pid_stat(5)), in ticks of 10 ms.
Work of the kernel for the run that is in no group (softirqs, workers) counts as others'.
"""

import os
from contextlib import suppress
from pathlib import Path

from testbed.host import cgroup

STAT = Path("/proc/stat")
IDLE = (3, 4)  # columns: idle, iowait
OWN = slice(11, 15)  # behind the name, of /proc/PID/stat: utime, stime, cutime, cstime
COUNTED = 8  # guest and guest_nice, the columns after them, are in user and nice already


class OtherLoad:
    """The time since it was made."""

    def __init__(self, group: Path | None, stat: Path = STAT) -> None:
        """`group`: the control group of the run; None: as of cgroup.members."""
        self._group, self._stat = group, stat
        self._began_s = self._now_s()

    def seconds(self) -> float:
        """Processor time of other programs since then, seconds, of all processors together; infinite if it is unknown."""
        now_s = self._now_s()
        return float("inf") if now_s is None or self._began_s is None else max(0.0, now_s - self._began_s)

    def _now_s(self) -> float | None:
        try:
            ticks = [int(word) for word in self._stat.read_text().split("\n", 1)[0].split()[1:]][:COUNTED]
            own_s = _own_s() if self._group is None else cgroup.numbers(self._group / "cpu.stat")["usage_usec"] / 1e6
        except (OSError, ValueError, KeyError):
            return None
        busy = sum(count for column, count in enumerate(ticks) if column not in IDLE)
        return busy / os.sysconf("SC_CLK_TCK") - own_s


def _own_s() -> float:
    """Processor time of all processes of the run's pid namespace until now, seconds."""
    ticks = 0
    for pid in (1, *cgroup.processes()):
        with suppress(OSError):  # it has just ended, and is in its parent's time
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[OWN]))
    return ticks / os.sysconf("SC_CLK_TCK")
