"""A gate for costly answers: one at a time, few wait, and all give way to the run under way."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.serve.queue import QueueFull
from testbed.web.server import NICE

MAX_WAITING = 4


class Gate:
    """`what`: the costly thing, in words of the error."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._places = threading.BoundedSemaphore(MAX_WAITING)
        self._one = threading.Lock()

    @contextmanager
    def passed(self) -> Iterator[None]:
        """The block runs alone, at NICE. Raises QueueFull if MAX_WAITING threads are in it or wait for it."""
        if not self._places.acquire(blocking=False):
            raise QueueFull(f"{MAX_WAITING} {self._what} are under way already; try again when one has ended")
        try:
            with self._one:
                # of this thread alone (setpriority(2), NOTES): a run that the queue starts has its own
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
                yield
        finally:
            self._places.release()
