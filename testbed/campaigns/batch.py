"""A batch: the runs that one worker carries out in a row, some ten minutes of them, as a file that names all it needs.

Runs last 30 to 90 s, so a single one is too short for a cluster's queue. Inside a batch our own schedule keeps as many side by
side as the machine bears. A worker that was ended in mid-batch loses only the runs under way: the next one keeps the others.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from record.files import write_atomic
from scenarios.scenario import Scenario
from testbed.campaigns.cells import Cell
from testbed.campaigns.remaining import DEFAULT_COSTS, Work
from testbed.campaigns.task import Task
from testbed.errors import UsageError

FORMAT = "manet-batch/1"
DONE = "manet-batch-done/1"
TARGET_S = 600.0  # wall time of a batch


@dataclass(frozen=True)
class Batch:
    """`jobs`: parallel runs, None for as many as the worker bears. `captures`: the rule of captures.py."""

    tasks: tuple[Task, ...]
    jobs: int | None = None
    captures: str = "all"
    kernel: str | None = None
    allow_internet: bool = False

    def write(self, path: Path) -> None:
        """Write the file; folders of runs relative to it."""
        base = path.resolve().parent
        runs = [
            {"experiment": task.experiment, "cell": task.cell.name, "variant": task.cell.variant, "axes": task.cell.axes,
             "seed": task.seed, "directory": os.path.relpath(task.directory.resolve(), base),
             "scenario": task.cell.content}
            for task in self.tasks
        ]  # fmt: skip
        text = {"format": FORMAT, "jobs": self.jobs, "captures": self.captures, "kernel": self.kernel}
        write_atomic(path, json.dumps(text | {"allow_internet": self.allow_internet, "runs": runs}, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Batch":
        """The batch in a file; UsageError for any other content."""
        try:
            content = json.loads(path.read_text())
            if content["format"] != FORMAT:
                raise ValueError(f"not {FORMAT}")
            cells: dict[tuple[str, str], tuple[Any, Cell]] = {}
            tasks = tuple(_task(run, path.resolve().parent, cells) for run in content["runs"])
            return cls(tasks, content["jobs"], content["captures"], content["kernel"], content["allow_internet"])
        except OSError as problem:
            raise UsageError(f"{path}: {problem.strerror}; `manet campaign` writes batches") from None
        except (ValueError, KeyError, TypeError, ValidationError) as problem:
            raise UsageError(
                f"{path}: is no batch of this version ({type(problem).__name__}); start the campaign again"
            ) from None


def _task(run: dict[str, Any], base: Path, cells: dict[tuple[str, str], tuple[Any, Cell]]) -> Task:
    """The task of an entry. `cells`: those read so far, with the text of their entry: checking a scenario takes time, and the
    seeds of a cell share it."""
    place, text = (run["experiment"], run["cell"]), (run["variant"], run["axes"], run["scenario"])
    if place not in cells or cells[place][0] != text:
        cells[place] = text, Cell(run["cell"], run["variant"], run["axes"], Scenario.model_validate(run["scenario"]))
    return Task(run["experiment"], cells[place][1], run["seed"], Path(os.path.normpath(base / run["directory"])))


def split(tasks: Sequence[Task], jobs: int, target_s: float = TARGET_S) -> list[tuple[Task, ...]]:
    """Batches of about `target_s` with `jobs` runs side by side, in the order of the tasks."""
    batches: list[list[Task]] = [[]]
    left_s = target_s * jobs
    costs_s: dict[int, float] = {}
    for task in tasks:
        cell = task.cell
        if id(cell) not in costs_s:
            work = Work.of("", cell.scenario)
            costs_s[id(cell)] = DEFAULT_COSTS[work.virtual].whole_s(work)
        cost_s = costs_s[id(cell)]
        if batches[-1] and cost_s > left_s:
            batches.append([])
            left_s = target_s * jobs
        batches[-1].append(task)
        left_s -= cost_s
    return [tuple(batch) for batch in batches if batch]


def renew(path: Path, jobs: int | None, captures: str) -> None:
    """Give a batch these options, on which no result depends. A worker that has it keeps its own: its lock is on the file."""
    batch = Batch.read(path)
    if (batch.jobs, batch.captures) == (jobs, captures):
        return
    with path.open() as file, suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        replace(batch, jobs=jobs, captures=captures).write(path)


@contextmanager
def claimed(path: Path, say: Callable[[str], object]) -> Iterator[None]:
    """Lock the batch for this worker; waits for a worker that an earlier campaign left. (The kernel frees the lock of a worker
    that was killed.)"""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{path.name}: waiting for the worker that has it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
