"""The disk budget of a campaign: which files of measured runs stay.

A run of thirty stations leaves 20 MB, most of it packet captures and the air's log. Their figures are in metrics.json when the
run is measured; the files are needed again only to look into a run or to measure it anew. What is deleted stays in the run's
manifest.json with size and hash (`dropped`).
"""

from collections.abc import Iterable
from pathlib import Path

from record import manifest

LARGE = ("captures/", "air.csv", "air.pcapng", "inputs.jsonl")  # names or folders of the files that may go


def apply(rule: str, run: Path, seed: int) -> int:
    """Delete what `rule` does not keep of a measured run; returns the bytes. A run that is not measured keeps all. Rules keep the
    files of all runs (`all`), of each cell's seed 1 (`first`), of no run (`none`)."""
    if rule == "all" or (rule == "first" and seed == 1):
        return 0
    return drop(run)


def drop(run: Path) -> int:
    """Delete the large files of a measured run; returns the bytes."""
    if not (run / "metrics.json").exists() or not (run / manifest.NAME).exists():
        return 0
    names = [str(path.relative_to(run)) for path in sorted(run.rglob("*")) if path.is_file()]
    return manifest.drop(run, [name for name in names if name.startswith(LARGE)])


def within(budget_bytes: float, runs: Iterable[Path]) -> tuple[int, int]:
    """Delete the large files of the last of the `runs` until all are within the budget; returns the number of runs that lost
    files, and the bytes."""
    runs = list(runs)
    left = sum(path.stat().st_size for run in runs for path in run.rglob("*") if path.is_file()) - budget_bytes
    changed = total = 0
    for run in reversed(runs):
        if left <= 0:
            break
        gone = drop(run)
        left, total, changed = left - gone, total + gone, changed + (gone > 0)
    return changed, total
