"""Runs whose files were changed after their rows were written: a query shows what was measured then, a report what is there."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from analysis import manifest
from analysis.store.files import read_folder


def changed_runs(out_dir: Path) -> dict[str, str]:
    """The difference of each run that counts in the store of a folder of results, by its directory. None of a store that is kept
    without its runs, and of runs without a manifest."""
    table = read_folder(out_dir)
    table = table.filter(table["counts"]).select(["run_dir", "written"])
    rows = [(row["run_dir"], row["written"]) for row in table.to_pylist()]
    if not any((out_dir / name).exists() for name, _ in rows):
        return {}

    def of_row(row: tuple[str, datetime | None]) -> str | None:
        run_dir, written = out_dir / row[0], row[1]
        if not run_dir.exists():
            return "is gone"
        since_ns = int(written.timestamp() * 1e9) if written is not None else 0
        return manifest.changed_since(run_dir, since_ns) if (run_dir / manifest.NAME).exists() else None

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        reasons = list(pool.map(of_row, rows))
    return {name: why for (name, _), why in zip(rows, reasons, strict=True) if why is not None}
