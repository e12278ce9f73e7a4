"""Did the host have time for a run's programs? The half of the verdict that the medium cannot see (docs/verdict.md).

The medium has a real-time priority, routing daemons and TCP's applications have not: on a host with too much to do the air
is in time while daemons come to their timers and packets late. Once a second of the traffic this looks at how long they
waited for a processor. A second in which they waited MOST_MS a turn or longer, on average, is a starved one; the share
of such seconds decides.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from testbed.host.run_queue import RunQueue, WaitTime

WINDOW_S = 1.0
MOST_MS = 10.0  # thirty DSDV daemons that all have news at once wait 5 to 8 ms a turn on a sufficient machine
LEAST_TURNS = 20  # of a window: a hiccup of the few programs that a network without traffic wakes is no starvation
SUSPECT_SHARE = 0.05
VOID_SHARE = 0.20


@dataclass
class Seen:
    """What was seen of a run's programs while its traffic ran."""

    total: WaitTime = field(default_factory=WaitTime)
    seconds: float = 0.0
    starved_s: float = 0.0
    worst_ms: float = 0.0
    last_ms: float = 0.0

    def add(self, waited: WaitTime, seconds: float) -> None:
        """One window."""
        mean_ms = waited.ns / 1e6 / max(waited.turns, LEAST_TURNS)
        self.total = WaitTime(self.total.ns + waited.ns, self.total.turns + waited.turns)
        self.seconds += seconds
        self.worst_ms, self.last_ms = max(self.worst_ms, mean_ms), mean_ms
        if mean_ms >= MOST_MS:
            self.starved_s += seconds

    @property
    def starved_share(self) -> float:
        return self.starved_s / self.seconds if self.seconds else 0.0

    def judgement(self) -> tuple[str, list[str]]:
        """As the medium's: `valid`, `suspect` or `void`, and why."""
        share = self.starved_share
        if share < SUSPECT_SHARE:
            return "valid", []
        reason = (
            f"programs of the stations waited {MOST_MS:g} ms or longer for a processor in {share * 100:.0f} % of the traffic's "
            f"time ({self.worst_ms:.0f} ms in the worst second): fewer runs side by side, or nothing else on this machine"
        )
        return ("void" if share >= VOID_SHARE else "suspect"), [reason]

    def report(self) -> dict | None:
        """`programs` of verdict.json (formats/air.md); None where this kernel does not tell."""
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
                "wait_ms": MOST_MS,
                "suspect_starved_share": SUSPECT_SHARE,
                "void_starved_share": VOID_SHARE,
            },
        }


class Waits:
    """Looks at the run's control group now and then; `tick` may be called as often as one likes."""

    def __init__(self, group: Path, *, queue: RunQueue | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._queue, self._clock = queue or RunQueue(group), clock
        self.seen = Seen()
        self._last: dict[int, WaitTime] = {}
        self._at_s: float | None = None

    def begin(self) -> None:
        """The traffic begins: what was waited before does not count."""
        self._last, self._at_s = self._queue.read(), self._clock()

    def tick(self) -> None:
        if self._at_s is not None and self._clock() - self._at_s >= WINDOW_S:
            self._window()

    def end(self) -> Seen:
        """The traffic is over. What is left of a window is one if it is no mere remainder."""
        if self._at_s is not None and self._clock() - self._at_s >= WINDOW_S / 2:
            self._window()
        self._at_s = None
        return self.seen

    def starved(self) -> str | None:
        """That the programs have no processor now, or had none for so much of the traffic that the run is void; in words."""
        seen = self.seen
        if seen.last_ms >= MOST_MS:
            return f"programs of the stations waited {seen.last_ms:.0f} ms for a processor in the last second"
        verdict, reasons = seen.judgement()
        return reasons[0] if verdict == "void" else None

    def _window(self) -> None:
        assert self._at_s is not None
        tasks, now_s = self._queue.read(), self._clock()
        since = [waited - self._last.get(task, WaitTime()) for task, waited in tasks.items()]
        self.seen.add(WaitTime(sum(w.ns for w in since), sum(w.turns for w in since)), now_s - self._at_s)
        self._last, self._at_s = tasks, now_s
