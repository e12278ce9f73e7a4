"""Progress of long work on standard error: the state of each run and the estimated time left.

On a terminal one line that is rewritten; elsewhere a plain line whenever a run ends.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TextIO

from testbed.campaigns.remaining import Remaining, Work
from testbed.output import exact, plain

REDRAW_S = 0.25
CLEAR = "\r\x1b[K"  # of the line on a terminal


def duration_text(seconds: float) -> str:
    """`48 s`, `3 min 05 s`, `1 h 12 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Progress:
    """Shows the progress of runs; safe from several threads. `now`: a monotonic clock, s."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False, now: Callable[[], float] = time.monotonic) -> None:
        self.quiet, self._now = quiet, now
        self.stream = stream or exact(sys.stderr)
        self.live = self.stream.isatty() and not quiet
        self.total = self.done = 0
        self.remaining = Remaining()
        self._drawn = now()
        self._stages: dict[str, str] = {}
        self._lock = threading.Lock()

    def expect(self, works: Iterable[Work], jobs: int, starts: int) -> None:
        """Set the work: `jobs` runs in parallel, of which `starts` may start up at once."""
        with self._lock:
            self.remaining = Remaining(jobs, starts, {work.name: work for work in works})
            self.total = len(self.remaining.waiting)

    def plan(self) -> str:
        """The work before its first run: `36 runs of 1 min 05 s, 8 side by side: about 5 min 30 s`. A run's length is that of its
        traffic and the time before it; what else it takes is a default, which the first runs that end replace."""
        works = list(self.remaining.waiting.values())
        lengths = sorted({round(work.before_s + work.traffic_s) for work in works})
        of = (
            f" of {duration_text(lengths[0])}"
            if len(lengths) == 1
            else f" of {duration_text(lengths[0])} to {duration_text(lengths[-1])}"
        )
        runs, jobs = "run" if len(works) == 1 else "runs", min(self.remaining.jobs, len(works))
        side = f", {jobs} side by side" if len(works) > 1 else ""
        return f"{len(works)} {runs}{of}{side}: about {duration_text(self.seconds_left())}"

    def stage(self, name: str, stage: str, fraction: float | None = None) -> None:
        """The run `name` has reached `stage`; `fraction` (0 to 1) of it is done."""
        with self._lock:
            self._stages[name] = stage if fraction is None else f"{stage} {100 * fraction:.0f} %"
            self.remaining.stage(name, stage, fraction, self._now())
            if self.live and self._now() - self._drawn >= REDRAW_S:
                self._draw()

    def finished(self, name: str, outcome: str) -> None:
        """The run has ended; print its outcome."""
        with self._lock:
            self.done += 1
            self._stages.pop(name, None)
            self.remaining.finished(name, self._now())
            left = f", about {duration_text(self.seconds_left())} left" if self.done < self.total else ""
            self._say(f"[{self.done}/{self.total}] {name}: {outcome}{left}")

    def will_repeat(self, work: Work) -> None:
        """The run is void and will be rerun after all others: one more unit of work."""
        with self._lock:
            self.total += 1
            self.remaining.repeats[work.name] = work

    def fewer(self, jobs: int, reason: str) -> None:
        """Reduce the number of parallel runs to `jobs`, and print the reason."""
        with self._lock:
            self.remaining.jobs = jobs
            self._say(f"        {reason}")

    def side_by_side(self, jobs: int) -> None:
        """Set the number of runs that may be under way."""
        with self._lock:
            self.remaining.jobs = jobs

    def rerun(self, work: Work, reason: str) -> None:
        """The run waits for its rerun now; print the reason."""
        with self._lock:
            self.total += work.name not in self.remaining.repeats
            self.remaining.repeats.pop(work.name, None)
            self.remaining.waiting[work.name] = work
            self._say(f"        {work.name}: {reason}")

    def withdraw(self, names: Iterable[str], reason: str) -> None:
        """These runs will not be started; print the reason."""
        with self._lock:
            withdrawn = [self.remaining.waiting.pop(name, None) for name in names]
            self.total -= len(withdrawn)
            self._say(f"        {reason}; {len(withdrawn)} are not started")

    def note(self, text: str) -> None:
        """Print a line without disturbing the progress line."""
        with self._lock:
            self._say(text)

    def close(self) -> None:
        """Clear the progress line."""
        with self._lock:
            if self.live:
                self._write(CLEAR)

    def seconds_left(self) -> float:
        """Estimated time until the last run ends, s."""
        return self.remaining.seconds_left(self._now())

    def _say(self, line: str) -> None:
        if self.quiet:
            return
        self._write(f"{CLEAR if self.live else ''}{plain(line)}\n")
        if self.live:
            self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        stages = "; ".join(f"{name} {stage}" for name, stage in self._stages.items())
        runs = "run" if self.total == 1 else "runs"
        text = f"{self.done}/{self.total} {runs}, about {duration_text(self.seconds_left())} left: {stages}"
        self._write(f"{CLEAR}{plain(text)[:118]}")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()
