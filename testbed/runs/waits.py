"""Whether the host had time for a run's programs: the half of the verdict that the medium cannot judge (docs/verdict.md).

The medium has a real-time priority; routing daemons and the applications of TCP have none. On an overloaded host the air is
in time while daemons handle timers and packets late. Once a second of the traffic, this measures how long programs waited
for a processor. A second in which they waited MAX_WAIT_MS a turn or longer, on average, is starved; the share of such
seconds decides.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from testbed.host.run_queue import RunQueue, WaitTime

WINDOW_S = 1.0
MAX_WAIT_MS = 10.0  # thirty DSDV daemons that all have news at once wait 5 to 8 ms a turn on a sufficient machine
MIN_TURNS = 20  # of a window: a delay of the few programs that run without traffic is no starvation
SUSPECT_SHARE = 0.05
VOID_SHARE = 0.20


@dataclass
class WaitSummary:
    """The waits of a run's programs during its traffic. Times in seconds, waits in milliseconds a turn."""

    total: WaitTime = field(default_factory=WaitTime)
    seconds: float = 0.0
    starved_s: float = 0.0
    worst_ms: float = 0.0
    last_ms: float = 0.0

    def add(self, waited: WaitTime, seconds: float) -> None:
        """Add one window: the waits of all programs, and its length in seconds."""
        mean_ms = waited.ns / 1e6 / max(waited.turns, MIN_TURNS)
        self.total = WaitTime(self.total.ns + waited.ns, self.total.turns + waited.turns)
        self.seconds += seconds
        self.worst_ms, self.last_ms = max(self.worst_ms, mean_ms), mean_ms
        if mean_ms >= MAX_WAIT_MS:
            self.starved_s += seconds

    @property
    def starved_share(self) -> float:
        """Share of the time, 0 to 1, that was starved."""
        return self.starved_s / self.seconds if self.seconds else 0.0

    def judgement(self) -> tuple[str, list[str]]:
        """`valid`, `suspect` or `void`, as in the medium's verdict, and the reasons."""
        share = self.starved_share
        if share < SUSPECT_SHARE:
            return "valid", []
        wait = f"{MAX_WAIT_MS:g} ms"
        reason = (
            f"programs of the stations waited {wait} or longer for a processor in {share * 100:.0f} % of the traffic's "
            f"time ({self.worst_ms:.0f} ms in the worst second): fewer runs side by side, or nothing else on this machine"
        )
        return ("void" if share >= VOID_SHARE else "suspect"), [reason]

    def void_reason(self) -> str | None:
        """The reason for which the run is void; None if it is not."""
        verdict, reasons = self.judgement()
        return reasons[0] if verdict == "void" else None

    def report(self) -> dict[str, object] | None:
        """`programs` of verdict.json (formats/air.md); None if the kernel keeps no wait times."""
        if not self.total.turns:
            return None
        return {
            "turns": self.total.turns,
            "mean_wait_ms": round(self.total.ns / 1e6 / self.total.turns, 3),
            "worst_window_ms": round(self.worst_ms, 3),
            "starved_share": round(self.starved_share, 4),
            "seconds": round(self.seconds, 1),
            "thresholds": {
                "window_s": WINDOW_S,
                "wait_ms": MAX_WAIT_MS,
                "suspect_starved_share": SUSPECT_SHARE,
                "void_starved_share": VOID_SHARE,
            },
        }


class Waits:
    """Samples the waits of a run's control group once in WINDOW_S; `tick` may be called more often."""

    def __init__(
        self,
        group: Path | None,
        *,
        without: Collection[Path] = (),
        queue: RunQueue | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`without`: as of RunQueue."""
        self._queue, self._clock = queue or RunQueue(group, without=without), clock
        self.summary = WaitSummary()
        self._last: dict[int, WaitTime] = {}
        self._at_s: float | None = None

    def begin(self) -> None:
        """Start: the traffic begins, and earlier waits do not count."""
        self._last, self._at_s = self._queue.read(), self._clock()

    def tick(self) -> None:
        """Close the window if it is over."""
        if self._at_s is not None and self._clock() - self._at_s >= WINDOW_S:
            self._window()

    def end(self) -> WaitSummary:
        """Stop: the traffic is over. The rest of a window counts if it is at least half a window."""
        if self._at_s is not None and self._clock() - self._at_s >= WINDOW_S / 2:
            self._window()
        self._at_s = None
        self._queue.close()
        return self.summary

    def starved(self) -> str | None:
        """The reason if the programs wait too long now, or waited so long in the traffic that the run is void; else None."""
        summary = self.summary
        if summary.last_ms >= MAX_WAIT_MS:
            return f"programs of the stations waited {summary.last_ms:.0f} ms for a processor in the last second"
        return summary.void_reason()

    def _window(self) -> None:
        assert self._at_s is not None
        tasks, now_s = self._queue.read(), self._clock()
        since = [waited - self._before(task, waited) for task, waited in tasks.items()]
        self.summary.add(WaitTime(sum(w.ns for w in since), sum(w.turns for w in since)), now_s - self._at_s)
        self._last, self._at_s = tasks, now_s

    def _before(self, task: int, waited: WaitTime) -> WaitTime:
        """The wait at the last window's end; none if another thread has its number now, since the kernel's counts only rise."""
        before = self._last.get(task, WaitTime())
        return before if before.turns <= waited.turns and before.ns <= waited.ns else WaitTime()
