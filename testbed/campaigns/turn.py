"""Which of a worker's runs starts next, and what follows from its end: an automaton without threads, files or clock.

`Schedule` (schedule.py) drives it with threads and real runs, tests/bench/scale.py with simulated ones. Each step costs the same,
however many runs wait: a campaign on one machine is a single batch of up to 100,000 of them.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from testbed.campaigns.safe_load import SafeLoad
from testbed.campaigns.task import Outcome, Task

FIRST_VOIDS = 2  # with so many void runs at the beginning too many run in parallel


def evenly(_task: Task) -> float:
    """Each run counts as one."""
    return 1.0


@dataclass(frozen=True)
class Begun:
    """A run under way: its begin by the load's clock, and its weight."""

    time_s: float = 0.0
    weight: float = 1.0


@dataclass
class Turn:
    """Runs that take their turns, `jobs` side by side. `load` changes this number while they run; without one `adapts` halves it
    if the first two runs are void. `weight_of`: the cost of a run, of which `jobs` are borne at once."""

    jobs: int
    adapts: bool = False
    load: SafeLoad | None = None
    weight_of: Callable[[Task], float] = evenly
    waiting: deque[Task] = field(default_factory=deque)
    running: dict[Path, Begun] = field(default_factory=dict)
    voids: list[Outcome] = field(default_factory=list)  # to be rerun
    _firsts: int = 0  # runs that have ended, up to FIRST_VOIDS, if all are void

    @classmethod
    def of(
        cls,
        tasks: Iterable[Task],
        jobs: int,
        adapts: bool,
        load: SafeLoad | None = None,
        weight_of: Callable[[Task], float] = evenly,
    ) -> "Turn":
        """The turn of these tasks, in their order."""
        return cls(jobs, adapts and load is None, load, weight_of, deque(tasks))

    @property
    def is_over(self) -> bool:
        """Whether no run waits and none is under way."""
        return not self.waiting and not self.running

    @property
    def max_jobs(self) -> int:
        """The most runs that can be under way at once."""
        return max(self.jobs, self.load.max_jobs if self.load else 1)

    def starts(self) -> list[Task]:
        """The runs to start now; they are under way from this call on."""
        if self.load:
            self.jobs = self.load.look(self._is_full())
        started = []
        while self.waiting and not self._is_full():
            task = self.waiting.popleft()
            self.running[task.directory] = Begun(self.load.began() if self.load else 0.0, self.weight_of(task))
            started.append(task)
        return started

    def ended(self, outcome: Outcome) -> int:
        """A run has ended; returns the number of parallel runs, which is lower if the first runs are void."""
        begun = self.running.pop(outcome.task.directory)
        if outcome.should_rerun:
            self.voids.append(outcome)
        if self.load:
            self.load.ended(not outcome.should_rerun and outcome.verdict != "suspect", begun.time_s)
        elif self.adapts and self.jobs > 1 and self._firsts < FIRST_VOIDS:
            self._firsts = self._firsts + 1 if outcome.should_rerun else FIRST_VOIDS + 1
            if self._firsts == FIRST_VOIDS:
                self.jobs //= 2
        return self.jobs

    def withdraw(self) -> list[Task]:
        """The runs that wait; they do not start any more."""
        left = list(self.waiting)
        self.waiting.clear()
        return left

    def _is_full(self) -> bool:
        """Whether the next run would be more than `jobs` runs of weight 1 at once; a single run never is."""
        following = self.weight_of(self.waiting[0]) if self.waiting else 1.0
        over = sum(begun.weight for begun in self.running.values()) + following > self.jobs
        return bool(self.running) and (over or (self.load is not None and len(self.running) >= self.load.max_jobs))
