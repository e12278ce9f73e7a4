"""Reasons not to trust a run, in one line: its verdict and its status, with their reasons.

If captures are later than the air log, a story shows packets that arrive before they were sent.
"""

from pathlib import Path
from typing import Any

from record.files import read_object

LATE_US = 5000  # as the medium's default (medium/src/run_verdict.rs)
MAX_LENGTH = 600  # characters


def doubt(directory: Path) -> str | None:
    """`suspect: <reasons>; captures up to 109 ms behind the air`, `failed: <error>`; None for a valid run."""
    run, verdict = read_object(directory / "run.json"), read_object(directory / "verdict.json")
    parts = []
    if run.get("status") in ("failed", "interrupted"):
        parts.append(f"{run['status']}: {run.get('error') or 'run.json gives no reason'}")
    if verdict.get("verdict") in ("suspect", "void"):
        parts.append(f"{verdict['verdict']}: {'; '.join([*map(str, verdict.get('reasons') or ()), *_behind(verdict)])}")
    return " ".join("; ".join(parts).split())[:MAX_LENGTH] or None


def _behind(verdict: dict[str, Any]) -> list[str]:
    """Delay between the arrival of a frame on the air and its delivery to the host, whose capture has it from then on."""
    max_us = (verdict.get("lateness") or {}).get("max_us") or 0
    late_us = (verdict.get("thresholds") or {}).get("late_us", LATE_US)
    return [f"captures up to {max_us / 1000:.0f} ms behind the air"] if max_us > late_us else []
