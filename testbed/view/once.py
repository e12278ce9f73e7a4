"""A value that the first question makes and that is kept. Several threads may ask at once."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """`make`: makes the value; if it raises, the next question tries again."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: list[T] = []

    def __call__(self) -> T:
        """The value. While one thread makes it, threads that need it wait, and no others."""
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]
