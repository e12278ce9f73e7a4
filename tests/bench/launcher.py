"""The time that ./manet adds to the Python it starts, when everything is up to date: the median of twenty calls.

The launcher runs with a stand-in for .venv/bin/python (true), so that only its own work is timed.
"""

import shutil
import statistics
import subprocess
import time
from pathlib import Path

from testbed.errors import RunError
from testbed.programs import ROOT
from tests.bench import Table
from tests.bench.runs import bench_folder

CALLS = 20


def measure() -> Table:
    table = Table("The launcher's own time", ["calls", "median ms", "max ms"], "less than 50 ms")
    if not (ROOT / ".build" / "ready").exists():
        raise RunError(f"{ROOT}: not set up; run ./setup.sh first")
    with bench_folder() as folder:
        launcher = _checkout(folder)
        times_ms = [_call_ms(launcher) for _ in range(CALLS)]
    table.rows.append([CALLS, statistics.median(times_ms), max(times_ms)])
    return table


def _checkout(folder: Path) -> Path:
    """The launcher over this checkout's own sources (by link), with a Python that does nothing."""
    shutil.copy(ROOT / "manet", folder / "manet")
    lines = (ROOT / ".build" / "ready").read_text().splitlines()
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").symlink_to("/bin/true")
    for line in lines:
        kind, _, value = line.partition(" ")
        if kind in ("watch", "file"):
            (folder / value).parent.mkdir(parents=True, exist_ok=True)
            _copy(ROOT / value, folder / value)
    (folder / ".build").mkdir(exist_ok=True)
    ready = [f"root {folder}" if line.startswith("root ") else line for line in lines]
    (folder / ".build" / "ready").write_text("\n".join(ready) + "\n")
    return folder / "manet"


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("target", "__pycache__"))
    elif not target.exists():
        shutil.copy(source, target)


def _call_ms(launcher: Path) -> float:
    began = time.perf_counter()
    subprocess.run([launcher], check=True, stdin=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - began)
