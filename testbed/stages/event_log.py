"""events.csv of a run: what changed stations, links, daemons, commands and flows, in the order in which it was carried out.

The scenario's own events, the actions of a view and those of a prompt write to the same file, each with its source. The file is
made with the first row: a run without events has none.
"""

import csv
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from record.events_file import EVENTS_FILE, HEADER
from testbed.stages.control import MediumControl

if TYPE_CHECKING:
    from testbed.stages.medium import Medium


class EventLog:
    """The file of one run, for several threads and writers."""

    def __init__(self, directory: Path, *, of_run: bool = True) -> None:
        """`of_run`: its first one, which drops the file of an earlier run in this folder."""
        self.path = directory / EVENTS_FILE
        if of_run:
            self.path.unlink(missing_ok=True)
        self._turn = threading.Lock()

    def write(
        self, control: "MediumControl | Medium", at_s: float | None, event: str, station: str, detail: str, source: str
    ) -> None:
        """Add a row with the medium's time of now. `at_s`: the requested time, in s since the start of the traffic; None: there
        is no traffic (yet). Raises RunError, OSError."""
        with self._turn:
            now_ns = control.ask("status")["model_ns"]
            at = "" if at_s is None else f"{at_s:g}"
            with self.path.open("a", newline="") as file:
                log = csv.writer(file, lineterminator="\n")
                if file.tell() == 0:
                    log.writerow(HEADER)
                log.writerow([f"{now_ns / 1e9:.6f}", at, event, station, detail, source])
