"""events.csv of a run: what changed stations, links, daemons, commands and flows, in the order in which it was carried out.

The scenario's own events and the actions of a view write to the same file, each with its source. The file is made with the first
row: a run without events has none.
"""

import csv
import threading
from pathlib import Path

from analysis.events_file import EVENTS_FILE
from testbed.stages.control import MediumControl

HEADER = ("t_s", "at_s", "event", "station", "detail", "source")


class EventLog:
    """The file of one run, for several threads."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / EVENTS_FILE
        self._turn, self._begun = threading.Lock(), False

    def write(self, control: MediumControl, at_s: float | None, event: str, station: str, detail: str, source: str) -> None:
        """Add a row with the medium's time of now. `at_s`: the requested time, in s since the start of the traffic; None: there
        is no traffic (yet). Raises RunError, OSError."""
        with self._turn:
            now_ns = control.ask("status")["model_ns"]
            at = "" if at_s is None else f"{at_s:g}"
            with self.path.open("a" if self._begun else "w", newline="") as file:
                log = csv.writer(file, lineterminator="\n")
                if not self._begun:
                    log.writerow(HEADER)
                log.writerow([f"{now_ns / 1e9:.6f}", at, event, station, detail, source])
            self._begun = True
