"""An experiment carried out on this machine: checked, run, measured, its tables and figure written."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from record.errors import DiskFullError
from testbed.campaigns.campaign import Campaign
from testbed.campaigns.cells import Cell
from testbed.campaigns.experiment import Experiment
from testbed.campaigns.progress import Progress
from testbed.campaigns.report import Report
from testbed.campaigns.schedule import Pace, Runner
from testbed.campaigns.side_by_side import default_jobs
from testbed.campaigns.task import Outcome
from testbed.errors import KeyRefused
from testbed.workers.runner import Say, max_guests, runner_for


@dataclass(frozen=True)
class Conditions:
    """How an experiment is carried out. `jobs`: parallel runs, None for as many as this machine supports; `kernel`: of guests,
    None for the default; `tcp_place`: the place that an error about a TCP names, empty for the experiment's name; `again`: the
    command that continues after a full disk; `only`: the one run CELL/seed-N to do; `stop`, set from any thread, ends the runs
    in order (KeyboardInterrupt)."""

    jobs: int | None = None
    kernel: str | None = None
    allow_internet: bool = False
    resume: bool = False
    tcp_place: str = ""
    again: str = ""
    only: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Executed:
    """The outcomes in the order of seeds and cells, the report of the folder, and the pace with `jobs` runs side by side."""

    outcomes: list[Outcome]
    report: Report
    pace: Pace
    jobs: int

    @property
    def bad(self) -> list[Outcome]:
        """The runs that failed or stayed void."""
        return [o for o in self.outcomes if o.status == "failed" or o.verdict == "void"]


def execute(experiment: Experiment, directory: Path, conditions: Conditions, progress: Progress, say: Say) -> Executed:
    """Run and analyse into `directory`. UsageError before anything starts; RunError if the machine is unsuitable; DiskFullError;
    KeyboardInterrupt once the runs have ended in order. `say` gets notes before the first run."""
    from testbed.runs.left_range import static_route_notes
    from testbed.stages.kernel_tcp import period_notes, without_root_notes

    scenarios = [cell.scenario for cell in experiment.cells]
    runner = runner_of(experiment, conditions, say)

    def say_notes() -> None:
        for note in [*without_root_notes(scenarios), *period_notes(scenarios), *static_route_notes(scenarios, 1)]:
            say(note)

    lay_out = _curves(experiment, conditions.jobs) if experiment.expected else lambda _directory: None
    jobs = conditions.jobs or default_jobs(scenarios, max_guests)
    try:
        campaign = Campaign(
            experiment, directory, jobs, progress, runner, conditions.again, conditions.only, say_notes, stop=conditions.stop
        )
        outcomes = campaign.run(conditions.resume)
        lay_out(directory)
        progress.note("measuring the captures")
        report = Report(directory, experiment.figure)
        report.make()
    except DiskFullError as problem:
        raise DiskFullError(problem.path, conditions.again) from None
    finally:
        progress.close()
    return Executed(outcomes, report, campaign.pace, jobs)


def _curves(experiment: Experiment, jobs: int | None) -> Callable[[Path], None]:
    """Measure the chain curves that are not in the cache; returns a function that writes those of the cells into the results."""
    from testbed.curves.curve import curves_of, lay_out
    from testbed.curves.measure import measured_now

    return partial(lay_out, curves_of(experiment, lambda needed: measured_now(needed, jobs)))


def runner_of(experiment: Experiment, conditions: Conditions, say: Say) -> Runner:
    """The runner of the experiment's runs. UsageError, which names the key, for what this machine lacks or a program would
    refuse; nothing has started then."""
    named = {name_of(experiment, cell): cell.scenario for cell in experiment.cells}
    try:
        return runner_for(
            named, range(1, experiment.seeds + 1), say=say, tcp_place=conditions.tcp_place or experiment.name,
            kernel=conditions.kernel, allow_internet=conditions.allow_internet,
        )  # fmt: skip
    except KeyRefused as problem:
        keys = next((cell.keys for cell in experiment.cells if cell.scenario is problem.scenario), None)
        raise (problem if keys is None else keys.refusal(problem.path, problem.text)) from None


def name_of(experiment: Experiment, cell: Cell) -> str:
    """The name of the cell in errors."""
    return experiment.name if len(experiment.cells) == 1 else f"{experiment.name}, cell {cell.name}"
