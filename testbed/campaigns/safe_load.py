"""The number of parallel runs that this machine supports, measured while they run.

It begins with the default of `--jobs` (side_by_side.py), which is an estimate for any machine, or with what the worker's last
batch found. Then the busy share of the cores decides. Below LOW more runs, in proportion to the idle share below it, at least
one; only one until the first run has ended, since a run loads the cores only when its traffic begins. Above HIGH one less.

A run that is not `valid` lowers the number by a quarter, and its limit to one less than it was. Runs that began before that do
not lower it again: one disturbance spoils all that are under way, as one congested moment loses many segments of a window
(RFC 6582, section 3.2). As many valid runs as the limit raise it again, REGAIN at most: by one, then by twice as many each time.
A disturbance while the number still rises would otherwise hold it there. So a worker finds its own load, the verdicts have the
last word, and what disturbed the machine for a minute does not slow a campaign of hours.
"""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from testbed.campaigns.side_by_side import MAX_JOBS

LOW, HIGH = 0.65, 0.85  # busy share of the cores
GAIN = 0.5  # of the runs that would fill the idle share: the newest ones load the cores several looks later
REGAIN = 10  # so that the search for the limit costs at most one run in ten
LOOK_S = 8.0  # longer than the start of a run, which keeps a core busy
MIN_LOOKS = 10  # of a batch that says something about the next one
STAT = Path("/proc/stat")
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
NICE, IDLE, IOWAIT = 1, 3, 4  # columns of the line `cpu` of /proc/stat (proc(5))


def cpu_times(stat: Path = STAT, autogroup: Path = AUTOGROUP) -> tuple[float, float]:
    """Ticks of all cores that were busy, and all ticks, since the boot. Work of low priority (nice) counts as busy only with
    autogroups: they give each session the same share, so that its nice value does not yield to the runs (sched(7))."""
    ticks = [int(word) for word in stat.read_text().split("\n", 1)[0].split()[1:9]]
    grouped = autogroup.exists() and autogroup.read_text().strip() == "1"
    return float(sum(ticks) - ticks[IDLE] - ticks[IOWAIT] - (0 if grouped else ticks[NICE])), float(sum(ticks))


class SafeLoad:
    """`jobs` parallel runs now, at most `limit` for now and `max_jobs` ever.

    `looks` has the busy share and the jobs after each look. `read`: see cpu_times. `now`: a monotonic clock, s.
    """

    def __init__(
        self,
        jobs: int,
        max_jobs: int = MAX_JOBS,
        read: Callable[[], tuple[float, float]] = cpu_times,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_jobs, self._read, self._now = max(1, max_jobs), read, now
        self.limit = self.max_jobs
        self.jobs = min(max(1, jobs), self.limit)
        self._any_ended = False
        self._valid = 0  # valid runs since the limit changed
        self._raise = 1  # by which the limit rises next
        self._lowered_s = now()
        self.looks: list[tuple[float, int]] = []
        self._looked_s, self._before = now(), read()

    def look(self, full: bool) -> int:
        """The jobs for now. Where not so many run that it is `full` the busy share says nothing about more of them."""
        if self._now() - self._looked_s < LOOK_S:
            return self.jobs
        ticks = self._read()
        busy = (ticks[0] - self._before[0]) / max(1.0, ticks[1] - self._before[1])
        self._looked_s, self._before = self._now(), ticks
        if busy > HIGH:
            self.jobs = max(1, self.jobs - 1)
        elif busy < LOW and full:
            more = max(1, round(GAIN * (LOW - busy) * self.jobs)) if self._any_ended else 1
            self.jobs = min(self.limit, self.jobs + more)
        self.looks.append((round(busy, 3), self.jobs))
        return self.jobs

    def found(self) -> int | None:
        """The median number of runs in the second half of the looks; None with fewer than MIN_LOOKS."""
        half = [jobs for _, jobs in self.looks[len(self.looks) // 2 :]]
        return round(median(half)) if len(self.looks) >= MIN_LOOKS else None

    def began(self) -> float:
        """The time at which a run begins, for `ended`."""
        return self._now()

    def ended(self, valid: bool, began_s: float) -> None:
        """A run has ended that began at `began_s`."""
        self._any_ended = True
        if not valid:
            if began_s >= self._lowered_s:
                self.limit = max(1, self.jobs - 1)
                self.jobs = max(1, self.jobs * 3 // 4)
                self._lowered_s = self._now()
            self._valid, self._raise = 0, 1
            return
        self._valid += 1
        if self._valid >= min(REGAIN, self.limit):
            self.limit = min(self.max_jobs, self.limit + self._raise)
            self._valid, self._raise = 0, 2 * self._raise
