"""Runs that were changed or exchanged after their rows were written: a query shows what was measured, a report what is there."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from analysis.store.files import read_folder
from record.files import read_object
from record.found_runs import changed, misplaced

MAX_COMPARED = 5_000  # runs of a store, each some 0.7 ms of CPU


class Changed(NamedTuple):
    """`reasons`: the difference of each changed run, by its directory; `compared` of the store's `runs` that count were looked
    at."""

    reasons: dict[str, str]
    compared: int
    runs: int


def changed_runs(out_dir: Path) -> Changed:
    """The runs that count in the store of a folder of results and differ from it; of more than MAX_COMPARED only every second,
    third, ... is compared. None of a store that is kept without its runs, and of runs without a manifest in results that may be
    older than manifests."""
    table = read_folder(out_dir)
    table = table.filter(table["counts"]).select(["run_dir", "written", "run_id"])
    every = max(1, -(-len(table) // MAX_COMPARED))
    rows = table.to_pylist()[::every]
    if not any((out_dir / row["run_dir"]).exists() for row in rows):
        return Changed({}, 0, 0)

    def of_row(row: dict[str, Any]) -> str | None:
        run_dir, written = out_dir / row["run_dir"], row["written"]
        if not run_dir.exists():
            return "is gone"
        since_ns = int(written.timestamp() * 1e9) if written is not None else 0
        if (why := changed(run_dir, since_ns) or misplaced(run_dir)) is not None:
            return why
        same = read_object(run_dir / "run.json").get("id") == row["run_id"]
        return None if same else "is another run (id of run.json)"

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        reasons = list(pool.map(of_row, rows))
    differing = {row["run_dir"]: why for row, why in zip(rows, reasons, strict=True) if why is not None}
    return Changed(differing, len(rows), len(table))
