"""The progress of runs, as a function of the caller sees it."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from testbed.campaigns.progress import Progress as Reporter
from testbed.campaigns.progress import duration_text
from testbed.campaigns.remaining import TRAFFIC, Work

PARTS = 4  # reports during the traffic of a run


@dataclass(frozen=True)
class Progress:
    """One step of the work; `str()` is a line. `run`: cell and seed, empty for a note; `stage`: the stage that it has reached,
    its outcome or the note; `fraction`: the part of the stage that is over, 0 to 1, or None; `done` of `total` runs have ended;
    `left_s`: estimated time to the end, s; `ended`: whether this is the end of a run."""

    run: str
    stage: str
    fraction: float | None
    done: int
    total: int
    left_s: float
    ended: bool = False

    def __str__(self) -> str:
        if not self.run:
            return self.stage
        percent = "" if self.fraction is None else f" {100 * self.fraction:.0f} %"
        left = f", about {duration_text(self.left_s)} left" if self.done < self.total else ""
        return f"[{self.done}/{self.total}] {self.run}: {self.stage}{percent}{left}"


Callback = Callable[[Progress], object]


class CalledBack(Reporter):
    """Reports to a callback instead of a terminal: begin, each quarter of the traffic, and end of each run, and notes. The runs'
    threads call it, one at a time. If it raises, `stop` is set, the runs end in order, and `problem` is the error."""

    def __init__(self, callback: Callback | None, stop: threading.Event) -> None:
        super().__init__(quiet=True)
        self.problem: BaseException | None = None
        self._callback, self._stop = callback, stop
        self._seen: dict[str, tuple[str, int]] = {}  # stage and part of each run that was reported last
        self._one = threading.Lock()

    def stage(self, name: str, stage: str, fraction: float | None = None) -> None:
        """See Reporter."""
        super().stage(name, stage, fraction)
        place = (stage, int(PARTS * (fraction or 0.0)))
        if (stage == TRAFFIC or name not in self._seen) and self._seen.get(name) != place:
            self._seen[name] = place
            self._call(name, stage, fraction)

    def finished(self, name: str, outcome: str) -> None:
        """See Reporter."""
        super().finished(name, outcome)
        self._seen.pop(name, None)
        self._call(name, outcome, ended=True)

    def fewer(self, jobs: int, reason: str) -> None:
        """See Reporter."""
        super().fewer(jobs, reason)
        self._call("", reason)

    def rerun(self, work: Work, reason: str) -> None:
        """See Reporter."""
        super().rerun(work, reason)
        self._call("", f"{work.name}: {reason}")

    def withdraw(self, names: Iterable[str], reason: str) -> None:
        """See Reporter."""
        super().withdraw(names, reason)
        self._call("", reason)

    def note(self, text: str) -> None:
        """See Reporter."""
        super().note(text)
        self._call("", text)

    def _call(self, run: str, stage: str, fraction: float | None = None, *, ended: bool = False) -> None:
        if self._callback is None or self.problem is not None:
            return
        with self._lock:  # other threads change what is estimated
            step = Progress(run, stage, fraction, self.done, self.total, self.seconds_left(), ended)
        with self._one:
            try:
                self._callback(step)
            except BaseException as problem:
                self.problem = problem
                self._stop.set()
