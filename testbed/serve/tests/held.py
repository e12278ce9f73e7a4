"""A server whose runs never start, for tests of the interface itself: a run lasts until it is stopped, or ends at once.

`python -m testbed.serve.tests.held FOLDER [--end]`
"""

import sys
import threading
from collections.abc import Callable
from pathlib import Path

from testbed.serve.job import Job
from testbed.serve.service import serve_folder

NO_PROGRESS = ('{"a": 1}', '{"event": "stage"}', '{"event": ["stage"]}', '{"event": "run", "run": {}}', "{")  # of other programs


class Held:
    """A child that ends when it is asked to, as an interrupted `manet run`."""

    def __init__(self) -> None:
        self._stop = threading.Event()

    def wait(self, timeout_s: float | None = None) -> int | None:
        return 130 if self._stop.wait(timeout_s) else None

    def stop(self) -> None:
        self._stop.set()

    def last_lines(self, count: int = 5) -> list[str]:
        return ["manet run: interrupted; everything was taken down"][:count]


def start(_job: Job, on_line: Callable[[str], None]) -> Held:
    on_line('{"event": "stage", "run": "all seed 1", "stage": "traffic", "fraction": 0.5, "done": 0, "total": 1, "left_s": 9.5}')
    on_line("a word of the run")
    for line in NO_PROGRESS:
        on_line(line)
    return Held()


def start_and_end(job: Job, on_line: Callable[[str], None]) -> Held:
    child = start(job, on_line)
    child.stop()
    return child


if __name__ == "__main__":
    serve_folder(Path(sys.argv[1]), None, start_and_end if "--end" in sys.argv else start, check_machine=False)
