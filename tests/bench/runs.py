"""Runs for the benchmark: in a folder that is gone afterwards, with the instants at which their stages began."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios.scenario import Scenario
from testbed.errors import RunError
from testbed.runs.run import RunResult, run_scenario


@contextmanager
def bench_folder() -> Iterator[Path]:
    """In /var/tmp, on a disk: /tmp may be memory, which a run's captures would fill."""
    folder = Path(tempfile.mkdtemp(prefix="manet-bench-", dir="/var/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def python_of(checkout: Path, *words: object, **options: Any) -> subprocess.Popen:
    """Start Python of a built checkout, which imports that checkout alone."""
    argv = [str(checkout / ".venv" / "bin" / "python"), "-P", *map(str, words)]
    return subprocess.Popen(argv, cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout)}, **options)


def number_of(file: Path, key: str) -> int:
    """The number in a line of a file of /proc: of memory in KiB."""
    return next(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(key))


@dataclass
class TimedRun:
    """A run that ended well: `stages` holds when each stage was entered, in seconds after the call."""

    result: RunResult
    stages: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def verdict(self) -> dict:
        """verdict.json (formats/air.md)."""
        return json.loads((self.result.directory / "verdict.json").read_text())


def timed_run(
    scenario: Scenario, directory: Path, seed: int = 1, *, entered: Callable[[str], None] = lambda _stage: None
) -> TimedRun:
    """Calls `entered` with each stage, once, when the run enters it."""
    began = time.monotonic()
    stages: dict[str, float] = {}

    def progress(stage: str, _fraction: float | None) -> None:
        if stage not in stages:
            stages[stage] = time.monotonic() - began
            entered(stage)

    result = run_scenario(scenario, seed, directory, progress=progress)
    if result.status != "complete":
        raise RunError(f"{directory.name}: {result.error}")
    return TimedRun(result, stages, time.monotonic() - began)


def chain(stations: int, duration_s: float) -> Scenario:
    """A chain with one bulk TCP flow over its first hops, so that every station is up and some of them work."""
    far = f"sta{min(stations, 10)}"
    flow = {"from": "sta1", "to": far, "traffic": "bulk"}
    return Scenario.model_validate(
        {"topology": "chain", "nodes": stations, "window": 8, "warmup": 2.0, "duration": duration_s, "flows": [flow]}
    )
