"""A limit on simultaneous starts: a run holds a place from its first process until its network is up."""

import threading
from types import TracebackType
from typing import Self

# Stages of a run (testbed.runs.run) after the start of stations, medium and routing daemons.
STARTED = ("captures", "traffic")
POLL_S = 0.2


class Start:
    """A place among the starting runs, held until `release()` or the end of the block. `stop` ends the wait for a place."""

    def __init__(self, places: threading.Semaphore, stop: threading.Event) -> None:
        self._places, self._stop = places, stop
        self._held = False

    def __enter__(self) -> Self:
        while not self._held and not self._stop.is_set():
            self._held = self._places.acquire(timeout=POLL_S)
        return self

    def release(self) -> None:
        """Release the place; a second call does nothing."""
        if self._held:
            self._held = False
            self._places.release()

    def __exit__(self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None) -> None:
        self.release()
