"""Runs of an experiment, to their end (`run`) or next to other work of an event loop (`run_async`)."""

import asyncio
import shlex
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from manet_testbed.errors import MeshError, MissingRequirement, WrongRequest
from manet_testbed.lab.progress import Callback, CalledBack
from manet_testbed.lab.refusals import translated
from manet_testbed.lab.results import Results
from testbed.campaigns.experiment import Experiment as Definition
from testbed.commands.options import results_folder
from testbed.errors import UsageError
from testbed.host.requirements import require_for_runs
from testbed.workers.execution import Conditions, execute


class Stopped(Exception):
    """The runs have ended in order, because `stop` was set."""


@dataclass(frozen=True)
class Request:
    """The arguments of `run`, checked as far as they need no machine."""

    experiment: Definition
    directory: Path
    conditions: Conditions


class Runnable:
    """The runs of a scenario or an experiment."""

    _experiment: Definition
    _words: list[str]  # that name it on the command line, as `chain5 --set duration=10`

    @property
    def name(self) -> str:
        """The name, which is that of the default folder of results."""
        return self._experiment.name

    def run(
        self, *, seeds: int | None = None, out: Path | str | None = None, jobs: int | None = None, resume: bool = False,
        progress: Callback | None = None, allow_internet: bool = False, kernel: str | None = None,
    ) -> Results:  # fmt: skip
        """Run every cell with the seeds 1 to `seeds` (None: the number of the definition) into the folder `out` (None:
        results/NAME of the checkout), and measure the runs. Blocks until the last run has ended; KeyboardInterrupt, too, ends the
        runs in order, and keeps those that are complete.

        `jobs`: parallel runs, None for as many as this machine supports; `resume`: keep complete runs of the same scenario in the
        folder, instead of WrongRequest for a folder with results; `progress` is called with each step, in the threads of the
        runs, one at a time; `allow_internet` as --allow-internet; `kernel`: of the guests of a virtual clock.

        Void runs are repeated and never in a mean. A failed run is in the table, and no error. Raises MissingRequirement,
        WrongRequest, or MeshError for a machine or disk that ends the campaign."""
        stop = threading.Event()
        return _run(_request(self, seeds, out, jobs, resume, allow_internet, kernel, stop), progress)

    async def run_async(
        self, *, seeds: int | None = None, out: Path | str | None = None, jobs: int | None = None, resume: bool = False,
        progress: Callback | None = None, allow_internet: bool = False, kernel: str | None = None,
    ) -> Results:  # fmt: skip
        """Like `run`, in a thread: other tasks continue, and `progress` is called in the event loop. Cancelling the task ends
        the runs in order before CancelledError is raised."""
        loop, stop = asyncio.get_running_loop(), threading.Event()
        request = _request(self, seeds, out, jobs, resume, allow_internet, kernel, stop)
        callback = None if progress is None else lambda step: loop.call_soon_threadsafe(progress, step)
        work = asyncio.ensure_future(asyncio.to_thread(_run_in_thread, request, callback))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            with suppress(Stopped, MeshError):
                await work
            raise


def _request(
    runnable: Runnable, seeds: int | None, out: Path | str | None, jobs: int | None, resume: bool, allow_internet: bool,
    kernel: str | None, stop: threading.Event,
) -> Request:  # fmt: skip
    for name, value in (("seeds", seeds), ("jobs", jobs)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise WrongRequest(f"{name}={value!r}: is not a whole number of at least 1")
    if out is not None and not str(out).strip():
        raise WrongRequest(f"out={out!r}: give a folder's name")
    experiment = runnable._experiment
    directory = results_folder() / experiment.name if out is None else Path(out)
    words = ["./manet", "run", *runnable._words, *([] if seeds is None else ["--seeds", str(seeds)])]
    words += [*(["--allow-internet"] if allow_internet else []), *(["--kernel", kernel] if kernel else [])]
    again = shlex.join([*words, "--out", str(directory), "--resume"])
    conditions = Conditions(jobs, kernel, allow_internet, resume, again=again, stop=stop)
    return Request(experiment if seeds is None else replace(experiment, seeds=seeds), directory, conditions)


def _run(request: Request, callback: Callback | None) -> Results:
    _require(request.experiment)
    reporter = CalledBack(callback, request.conditions.stop)
    try:
        with translated():
            executed = execute(request.experiment, request.directory, request.conditions, reporter, reporter.note)
            return Results(executed.report)
    except KeyboardInterrupt:
        if reporter.problem is not None:
            raise reporter.problem from None
        raise


def _run_in_thread(request: Request, callback: Callback | None) -> Results:
    try:
        return _run(request, callback)
    except KeyboardInterrupt:  # in a thread `stop` alone has this effect
        raise Stopped from None


def _require(experiment: Definition) -> None:
    """MissingRequirement for the first that this machine lacks for runs in real time."""
    if any(cell.scenario.clock == "real" for cell in experiment.cells):
        try:
            require_for_runs()
        except UsageError as problem:
            raise MissingRequirement(str(problem)) from None
