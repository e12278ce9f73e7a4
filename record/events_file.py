"""events.csv of a run: what changed stations, links, daemons, commands and flows (formats/results.md). The run writes it
(testbed/stages/event_log.py)."""

import csv
from pathlib import Path

from record.files import plain_text

EVENTS_FILE = "events.csv"
HEADER = ("t_s", "at_s", "event", "station", "detail", "source")
SCENARIO, VIEW, PROMPT, SCRIPT, MESH, EXEC = "scenario", "view", "prompt", "script", "mesh", "exec"  # the sources


def read_events(directory: Path) -> list[dict[str, str]]:
    """The rows of a run's events.csv; empty without the file. Older files have no column `source`: all is the scenario's."""
    path = directory / EVENTS_FILE
    if not path.exists():
        return []
    with plain_text(path) as file:
        return [{"source": SCENARIO, **row} for row in csv.DictReader(file)]
