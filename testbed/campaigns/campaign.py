"""Running an experiment: every cell and seed into one folder of results (formats/results.md).

Runs go side by side (testbed/campaigns/schedule.py). `--resume` keeps complete runs of the same scenario and runs the others.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from record.files import read_object, write_atomic
from record.folder_lock import lock
from testbed.campaigns.experiment import Experiment
from testbed.campaigns.progress import Progress
from testbed.campaigns.schedule import Pace, Runner, Schedule, is_of, move_aside, start_places
from testbed.campaigns.task import Outcome, Task
from testbed.errors import UsageError


@dataclass
class Campaign:
    """An experiment's runs in its folder of results."""

    experiment: Experiment
    directory: Path
    jobs: int
    progress: Progress
    runner: Runner
    again: str = ""  # the command that continues it
    only: str | None = None  # CELL/seed-N: do this run and leave the others missing
    before_runs: Callable[[], None] = lambda: None  # called once nothing is left that refuses the request
    starts: threading.Semaphore = field(default_factory=start_places)
    stop: threading.Event = field(default_factory=threading.Event)  # set from any thread: the runs end in order
    pace: Pace = field(default=Pace(0.0, 0.0), init=False)

    def run(self, resume: bool) -> list[Outcome]:
        """Run everything that is missing; returns the outcomes in the order of seeds and cells."""
        schedule = Schedule(self.jobs, self.progress, self.runner, self.again, starts=self.starts, stop=self.stop)
        with claimed(self.directory, self.experiment, resume, self.again):
            tasks = self._tasks()
            if resume:
                self._put_others_aside()
            self.before_runs()
            outcomes = schedule.run(tasks, resume)
        self.pace = schedule.pace
        return outcomes

    def _put_others_aside(self) -> None:
        """Move runs of another scenario away, also of seeds not requested now: they would be in the means of this one."""
        for cell in self.experiment.cells:
            for run in sorted((self.directory / cell.name).glob("seed-*")):
                if (run / "scenario.json").exists() and not is_of(run, cell):
                    self.progress.note(f"        {run}: is of another scenario; moved to {move_aside(run)}")

    def _tasks(self) -> list[Task]:
        tasks = tasks_of(self.experiment, self.directory)
        if self.only is None:
            return tasks
        chosen = [task for task in tasks if task.directory == self.directory / self.only]
        if not chosen:
            last = tasks[-1]
            names = ", ".join(dict.fromkeys(task.cell.name for task in tasks[:20]))
            raise UsageError(
                f"--only {self.only}: is no run of {last.experiment}; the cells are {names}, the seeds 1 to {last.seed}"
            )
        return chosen


def tasks_of(experiment: Experiment, directory: Path) -> list[Task]:
    """All cells at one seed before the next seed, so that a campaign cut short has every cell."""
    seeds = range(1, experiment.seeds + 1)
    return [
        Task(experiment.name, cell, seed, directory / cell.name / f"seed-{seed}") for seed in seeds for cell in experiment.cells
    ]


@contextmanager
def claimed(directory: Path, experiment: Experiment, resume: bool, again: str = "") -> Iterator[None]:
    """Lock the folder of results for this experiment until the block ends. UsageError if it is in use or holds other results."""
    description = directory / "experiment.json"
    descriptor = lock(directory, "another manet is writing there; give another folder with --out")
    try:
        if not resume and any(directory.iterdir()):
            raise UsageError(
                f"{directory}: holds results already; give another folder with --out, complete them with --resume, "
                "or remove the folder"
            )
        if resume and description.exists() and _name_in(description) != experiment.name:
            raise UsageError(f"{directory}: holds another experiment ({_name_in(description)}); give another folder with --out")
        write_atomic(description, experiment.to_json(again))
        yield
    finally:
        os.close(descriptor)


def _name_in(description: Path) -> str:
    return str(read_object(description).get("name", "unknown"))
