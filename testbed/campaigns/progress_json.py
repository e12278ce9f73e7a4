"""Progress for programs: a JSON object a line on standard error (`manet run --progress json`, formats/serve.md).

`{"event": "expect", "runs", "jobs"}`, `{"event": "stage", "run", "stage", "fraction", "done", "total", "left_s"}` when a stage
begins and now and then within it (about one line in EVERY_S for all runs together), `{"event": "run", "run", "outcome", "done",
"total", "left_s"}`, `{"event": "note", "text"}`.
"""

import json
import time
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from testbed.campaigns.progress import Progress
from testbed.campaigns.remaining import Work

EVERY_S = 1.0
KEYS = {
    "expect": ("runs", "jobs"),
    "stage": ("run", "stage", "fraction", "done", "total", "left_s"),
    "run": ("run", "outcome", "done", "total", "left_s"),
    "note": ("text",),
}


class JsonProgress(Progress):
    """Like Progress, in lines that begin with `{`."""

    def __init__(self, stream: TextIO | None = None, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream, now=now)
        self.live = False
        self._sent: dict[str, tuple[str, float]] = {}  # of each run under way: the stage that was sent last, and when
        self._left_s, self._estimated = 0.0, float("-inf")  # the estimate takes long if many runs wait

    def expect(self, works: Iterable[Work], jobs: int, starts: int) -> None:
        """Set the work, and send its size."""
        super().expect(works, jobs, starts)
        with self._lock:
            self._send(event="expect", runs=self.total, jobs=jobs)

    def stage(self, name: str, stage: str, fraction: float | None = None) -> None:
        """Send a stage when it begins, and its fraction now and then."""
        super().stage(name, stage, fraction)
        with self._lock:
            before, sent = self._sent.get(name, ("", 0.0))
            if stage == before and self._now() - sent < EVERY_S * len(self._sent):
                return
            self._sent[name] = (stage, self._now())
            share = None if fraction is None else round(fraction, 3)
            self._send(event="stage", run=name, stage=stage, fraction=share, **self._state())

    def finished(self, name: str, outcome: str) -> None:
        """Send the outcome of a run."""
        with self._lock:
            self.done += 1
            self._sent.pop(name, None)
            self.remaining.finished(name, self._now())
            self._send(event="run", run=name, outcome=outcome, **self._state())

    def _state(self) -> dict[str, Any]:
        if self._now() - self._estimated >= EVERY_S or self.done == self.total:
            self._left_s, self._estimated = self.seconds_left(), self._now()
        return {"done": self.done, "total": self.total, "left_s": round(self._left_s, 1)}

    def _say(self, line: str) -> None:
        self._send(event="note", text=line.strip())

    def _send(self, **message: object) -> None:
        self.stream.write(json.dumps(message) + "\n")
        self.stream.flush()


def event_of(line: str) -> dict[str, Any] | None:
    """The line as an event of progress; None if it is none, such as a line of a user's program that begins with `{`."""
    try:
        message = json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not isinstance(message.get("event"), str):
        return None
    keys = KEYS.get(message["event"])
    is_known = keys is not None and message.keys() == {"event", *keys} and isinstance(message.get("run", ""), str)
    return message if is_known else None
