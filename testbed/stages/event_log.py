"""events.csv of a run: what changed stations, links, daemons, commands and flows, in the order in which it was carried out.

All sources write to the same file: the scenario, views, prompts, scripts and meshes. The file is made with the first row: a run
without events has none.
"""

import csv
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from record.events_file import EVENTS_FILE, HEADER
from testbed.errors import RunError

if TYPE_CHECKING:
    from testbed.stages.medium import Medium


class EventLog:
    """The file of one run, for several threads. One of an earlier run in this folder is dropped."""

    def __init__(self, directory: Path, medium: "Medium") -> None:
        self._path, self._medium, self._turn = directory / EVENTS_FILE, medium, threading.Lock()
        self._path.unlink(missing_ok=True)

    def write(self, at_s: float | None, event: str, station: str, detail: str, source: str) -> None:
        """Add a row with the medium's time of now. `at_s`: the requested time, in s since the start of the traffic or of the
        session; None: before it. Raises RunError."""
        with self._turn:
            now_ns = self._medium.ask("status")["model_ns"]
            at = "" if at_s is None else f"{at_s:g}"
            try:
                with self._path.open("a", newline="") as file:
                    log = csv.writer(file, lineterminator="\n")
                    if file.tell() == 0:
                        log.writerow(HEADER)
                    log.writerow([f"{now_ns / 1e9:.6f}", at, event, station, detail, source])
            except OSError as problem:
                text = f"{problem.strerror}; make room, or give another folder with --out"
                raise RunError(f"{self._path}: {text}") from None
