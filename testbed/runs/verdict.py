"""The medium's own judgement of a real-time run: verdict.json (formats/air.md)."""

import json
from pathlib import Path


def verdict_of(directory: Path) -> str | None:
    """`valid`, `suspect` or `void`; None if the medium did not get so far as to write it."""
    try:
        return json.loads((directory / "verdict.json").read_text())["verdict"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def reasons_of(directory: Path) -> list[str]:
    try:
        return list(json.loads((directory / "verdict.json").read_text())["reasons"])
    except (OSError, ValueError, KeyError, TypeError):
        return []
