"""What long work shows while it lasts: how far it is, and about how long it still takes. Always on standard error.

On a terminal one line that is rewritten; elsewhere a plain line whenever a run ends.
"""

import sys
import threading
import time
from typing import TextIO

REDRAW_S = 0.25


def duration_text(seconds: float) -> str:
    """`48 s`, `3 min 05 s`, `1 h 12 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Progress:
    """`total` units of work of known length each; runs call it from several threads."""

    def __init__(self, total: int, expected_s: float, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.total, self.expected_s, self.quiet = total, expected_s, quiet
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty() and not quiet
        self.done = 0
        self._began = self._drawn = time.monotonic()
        self._stages: dict[str, str] = {}
        self._lock = threading.Lock()

    def stage(self, name: str, stage: str) -> None:
        """The run `name` has come to `stage`."""
        with self._lock:
            self._stages[name] = stage
            if self.live and time.monotonic() - self._drawn >= REDRAW_S:
                self._draw()

    def finished(self, name: str, outcome: str) -> None:
        with self._lock:
            self.done += 1
            self._stages.pop(name, None)
            self._say(f"[{self.done}/{self.total}] {name}: {outcome}{self._left()}")

    def again(self, name: str, why: str, expected_s: float) -> None:
        """The run has to be done over: one more unit of work, of this length."""
        with self._lock:
            self.total += 1
            self.expected_s += expected_s
            self._say(f"        {name}: {why}")

    def note(self, text: str) -> None:
        with self._lock:
            self._say(text)

    def close(self) -> None:
        with self._lock:
            if self.live:
                self.stream.write("\r\x1b[K")
                self.stream.flush()

    def seconds_left(self) -> float:
        """From the lengths of the runs; once those are used up, from the pace so far."""
        gone_s = time.monotonic() - self._began
        if gone_s < self.expected_s or not self.done:
            return max(self.expected_s - gone_s, 0.0)
        return gone_s / self.done * (self.total - self.done)

    def _left(self) -> str:
        return f", about {duration_text(self.seconds_left())} left" if self.done < self.total else ""

    def _say(self, line: str) -> None:
        if self.quiet:
            return
        clear = "\r\x1b[K" if self.live else ""
        self.stream.write(f"{clear}{line}\n")
        if self.live:
            self._draw()
        self.stream.flush()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        stages = "; ".join(f"{name} {stage}" for name, stage in self._stages.items())
        runs = "run" if self.total == 1 else "runs"
        text = f"{self.done}/{self.total} {runs}, about {duration_text(self.seconds_left())} left: {stages}"
        self.stream.write(f"\r\x1b[K{text[:118]}")
        self.stream.flush()
