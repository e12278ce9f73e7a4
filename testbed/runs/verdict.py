"""The judgement of a real-time run: verdict.json (formats/air.md), the medium's, and of the stations' programs added to it."""

import json
from pathlib import Path

from analysis.files import write_atomic
from testbed.runs.waits import WaitSummary

BETTER_FIRST = ("valid", "suspect", "void")
VOID_REMEDY = "run it again on a quieter machine"


def verdict_of(directory: Path) -> str | None:
    """`valid`, `suspect` or `void`; None if the medium has not written it."""
    try:
        return json.loads((directory / "verdict.json").read_text())["verdict"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def reasons_of(directory: Path) -> list[str]:
    """The reasons of the verdict; empty if the medium has not written it."""
    try:
        return list(json.loads((directory / "verdict.json").read_text())["reasons"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def add_programs(directory: Path, summary: WaitSummary) -> None:
    """Add the judgement of the stations' programs to the medium's verdict.json; the worse of the two becomes the verdict."""
    path = directory / "verdict.json"
    verdict = json.loads(path.read_text())
    judged, reasons = summary.judgement()
    verdict["programs"] = summary.report()
    verdict["verdict"] = max(verdict["verdict"], judged, key=BETTER_FIRST.index)
    verdict["reasons"] += reasons
    write_atomic(path, json.dumps(verdict, indent=2, sort_keys=True) + "\n")  # on a full disk the medium's stays
