"""Why not to trust a run, in one line: its verdict and status with their reasons.

What the captures are behind the air shows in a story as packets that arrive before they were sent.
"""

from pathlib import Path
from typing import Any

from analysis.files import read_object

LATE_US = 5000  # as the medium's default (medium/src/verdict.rs)
MAX_LENGTH = 600  # characters


def doubt(directory: Path) -> str | None:
    """`suspect: <reasons>; captures up to 109 ms behind the air`, `failed: <error>`; None of a run that is valid."""
    run, verdict = read_object(directory / "run.json"), read_object(directory / "verdict.json")
    parts = []
    if run.get("status") in ("failed", "interrupted"):
        parts.append(f"{run['status']}: {run.get('error') or 'run.json gives no reason'}")
    if verdict.get("verdict") in ("suspect", "void"):
        parts.append(f"{verdict['verdict']}: {'; '.join([*map(str, verdict.get('reasons') or ()), *_behind(verdict)])}")
    return " ".join("; ".join(parts).split())[:MAX_LENGTH] or None


def _behind(verdict: dict[str, Any]) -> list[str]:
    """A host, whose capture has it then, is handed a frame later than it arrived on the air."""
    max_us = (verdict.get("lateness") or {}).get("max_us") or 0
    late_us = (verdict.get("thresholds") or {}).get("late_us", LATE_US)
    return [f"captures up to {max_us / 1000:.0f} ms behind the air"] if max_us > late_us else []
