"""Runs whose files stay in memory: the last ones that were asked about. Several threads may ask at once."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class OpenRuns(Generic[T]):
    """`most`: how many are kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._runs: OrderedDict[Path, T] = OrderedDict()
        self._lock = threading.Lock()

    def opened(self, directory: Path, make: Callable[[], T], is_current: Callable[[T], bool] = lambda _run: True) -> T:
        """The run in `directory`: the kept one if it is current, else a new one by `make`, which reads no large file."""
        with self._lock:
            run = self._runs.pop(directory, None)
            if run is None or not is_current(run):
                run = make()
            self._runs[directory] = run
            while len(self._runs) > self._most:
                self._runs.popitem(last=False)
            return run

    def kept(self, directory: Path) -> T | None:
        """The kept run in `directory`, if there is one."""
        with self._lock:
            return self._runs.get(directory)
