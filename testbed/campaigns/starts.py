"""How many runs may start up at once: each holds a place from its first process until its network stands."""

import threading
from types import TracebackType
from typing import Self

# The stages of a run (testbed.runs.run) that come when stations, medium and routing daemons have started.
STARTED = ("captures", "traffic")
POLL_S = 0.2


class Start:
    """A place among those that start, given back by `over()` or at the end of the block. `stop` ends the waiting."""

    def __init__(self, places: threading.Semaphore, stop: threading.Event) -> None:
        self._places, self._stop = places, stop
        self._held = False

    def __enter__(self) -> Self:
        while not self._held and not self._stop.is_set():
            self._held = self._places.acquire(timeout=POLL_S)
        return self

    def over(self) -> None:
        """The network stands; give the place free. A second call does nothing."""
        if self._held:
            self._held = False
            self._places.release()

    def __exit__(self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None) -> None:
        self.over()
