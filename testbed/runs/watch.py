"""A thread that samples the waits of a network's programs for as long as the network is up, as a run does during its traffic."""

import threading

from testbed.runs.waits import Waits

WATCH_INTERVAL_S = 0.25  # a window of Waits is a second


class Watch:
    """Samples how long the programs wait for a processor, until `end`."""

    def __init__(self, waits: Waits) -> None:
        self.waits, self._over = waits, threading.Event()
        waits.begin()
        self._thread = threading.Thread(target=self._watch, name="waits", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(WATCH_INTERVAL_S):
            self.waits.tick()

    def end(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()
        self.waits.end()
