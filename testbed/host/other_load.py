"""Processor time that programs beyond a run take: how much of a delay the host's other work can explain.

/proc/stat (proc_stat(5)) has the busy time of all processors, cpu.stat of the run's control group (cgroup-v2) that of the run.
Work of the kernel for the run that is in no group (softirqs, workers) counts as others'.
"""

import os
from pathlib import Path

from testbed.host import cgroup

STAT = Path("/proc/stat")
IDLE = (3, 4)  # columns: idle, iowait
COUNTED = 8  # guest and guest_nice, the columns after them, are in user and nice already


class OtherLoad:
    """The time since it was made."""

    def __init__(self, group: Path, stat: Path = STAT) -> None:
        """`group`: the control group of the run."""
        self._group, self._stat = group, stat
        self._began_s = self._now_s()

    def seconds(self) -> float:
        """Processor time of other programs since then, seconds, of all processors together; infinite if it is unknown."""
        now_s = self._now_s()
        return float("inf") if now_s is None or self._began_s is None else max(0.0, now_s - self._began_s)

    def _now_s(self) -> float | None:
        try:
            ticks = [int(word) for word in self._stat.read_text().split("\n", 1)[0].split()[1:]][:COUNTED]
            own_us = cgroup.numbers(self._group / "cpu.stat")["usage_usec"]
        except (OSError, ValueError, KeyError):
            return None
        busy = sum(count for column, count in enumerate(ticks) if column not in IDLE)
        return busy / os.sysconf("SC_CLK_TCK") - own_us / 1e6
