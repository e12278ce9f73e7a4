"""Runs side by side, on this machine: their starts, outcomes and reruns.

A void run, or one whose host was late, is moved to `<cell>/void/` and rerun when all others have ended, with fewer runs in
parallel each time, the last time alone (RERUN_DIVISORS). If the first two runs are void, the number of parallel runs is halved.
At most one run per core starts up at a time: the start of thirty stations uses a whole core, which would make running runs void.
A failed run does not stop the others; an unsuitable machine or a full disk does. Ctrl-C ends all runs and keeps their captures.
"""

import importlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from record import manifest
from record.files import read_object
from record.found_runs import exclusion_reason
from record.records import model_s
from testbed.campaigns.cells import Cell
from testbed.campaigns.progress import Progress
from testbed.campaigns.remaining import Work
from testbed.campaigns.safe_load import SafeLoad
from testbed.campaigns.side_by_side import usable_cores
from testbed.campaigns.task import Outcome, Task
from testbed.campaigns.turn import FIRST_VOIDS, Turn, evenly
from testbed.errors import RunError, UsageError

RERUN_DIVISORS = (4, math.inf)  # of the parallel runs, at each rerun of a void run; the last is alone
RETRIES = len(RERUN_DIVISORS)
GIVE_UP_AFTER = 3  # failures with nothing complete: the machine is at fault, not the cell
POLL_S = 0.2
# Stages of a run (testbed.runs.run) that follow the start of its stations, medium and routing daemons.
STARTED = ("captures", "traffic")
# The stage after the traffic: captures take a second to end, and the imports for an ended run as long. They begin here, and no
# earlier: in the traffic they would be other work of the host.
ENDING, NEEDED_AT_END = "stop", ("analysis.store.files", "analysis.metrics.analyse")


class Ended(Protocol):
    """A runner's result of a run (testbed.runs.run.RunResult)."""

    @property
    def status(self) -> str:
        """complete, failed or interrupted."""

    @property
    def verdict(self) -> str | None:
        """None if the medium wrote none."""

    @property
    def error(self) -> str | None:
        """One line with the remedy."""

    @property
    def host_late(self) -> bool:
        """Whether that is the only reason of the failure."""


# testbed.runs.run.run_scenario, or a stand-in for it in tests
Runner = Callable[..., Ended]


@dataclass(frozen=True)
class Pace:
    """Emulated time and the host's time for it, without the runs that `--resume` kept."""

    emulated_s: float
    wall_s: float

    def line(self) -> str:
        """One line: emulated seconds, seconds of the host, and their ratio."""
        rate = self.emulated_s / self.wall_s if self.wall_s else 0.0
        return f"{self.emulated_s:.0f} s on the air in {self.wall_s:.0f} s: {rate:.1f} a second"


def start_places() -> threading.Semaphore:
    """One place for each core."""
    return threading.Semaphore(usable_cores())


@dataclass
class Schedule:
    """Runs and their outcomes."""

    jobs: int
    progress: Progress
    runner: Runner
    again: str = ""  # the command that continues after a full disk
    outcomes: dict[Path, Outcome] = field(default_factory=dict)  # the last one of each run, by its folder
    pace: Pace = Pace(0.0, 0.0)
    stop: threading.Event = field(default_factory=threading.Event)
    starts: threading.Semaphore = field(default_factory=start_places)
    name_of: Callable[[Task], str] = attrgetter("name")  # different for each task; `full_name` for tasks of several experiments
    may_start: Callable[[], bool] = lambda: True  # False: no further run is started, for good
    not_started: list[Task] = field(default_factory=list)  # for that reason; they have no outcome
    load: SafeLoad | None = None  # changes the number of parallel runs while they run; else `jobs` is fixed
    weight_of: Callable[[Task], float] = evenly  # with `load`: the cost of a run, of which `jobs` are borne at once
    _failed: int = 0  # outcomes that failed, not for the host's lateness

    def run(self, tasks: Sequence[Task], resume: bool) -> list[Outcome]:
        """Carry out the tasks; with `resume` without those that are complete. Returns the outcomes in the order of the tasks."""
        with _ctrl_c_sets(self.stop):
            todo = [task for task in tasks if not (resume and self._keep(task))]
            self.progress.expect([self._work(task) for task in todo], self.jobs, usable_cores())
            if todo:
                self.progress.note(self.progress.plan())
            began = time.monotonic()
            voids = self._side_by_side(todo, self.jobs)
            most = self.load.jobs if self.load else self.jobs
            for jobs in (max(1, int(most // divisor)) for divisor in RERUN_DIVISORS):
                for outcome in voids:
                    self._put_aside(outcome, "alone" if jobs == 1 else "with fewer runs in parallel")
                voids = self._side_by_side([outcome.task for outcome in voids], jobs, adapts=False)
            # a void run that was put aside and not rerun has no outcome, as if it had been interrupted
            for task in self.not_started:
                self.outcomes.pop(task.directory, None)
            self.pace = Pace(sum(model_s(task.directory) for task in todo), time.monotonic() - began)
        return [self.outcomes[task.directory] for task in tasks if task.directory in self.outcomes]

    def _keep(self, task: Task) -> bool:
        if not is_complete(task):
            return False
        self.outcomes[task.directory] = Outcome(task, "kept", read_verdict(task.directory))
        return True

    def _side_by_side(self, tasks: list[Task], jobs: int, adapts: bool = True) -> list[Outcome]:
        """Run `tasks`; returns the void ones. An error that stops the campaign is raised when all have ended."""
        turn = Turn.of(tasks, jobs, adapts, self.load if adapts else None, self.weight_of if self.load else evenly)
        running: set[Future[Outcome]] = set()
        with ThreadPoolExecutor(turn.max_jobs, thread_name_prefix="run") as pool:
            try:
                while not turn.is_over:
                    if turn.waiting and not self.may_start():
                        self._leave(turn.withdraw())
                    running |= {pool.submit(self._one, task) for task in turn.starts()}
                    self.progress.side_by_side(max(1, len(running)))
                    for future in wait(running, timeout=POLL_S, return_when=FIRST_COMPLETED).done:
                        running.remove(future)
                        outcome = future.result()
                        self._record(outcome)
                        before = turn.jobs
                        if turn.ended(outcome) < before:
                            text = f"{turn.jobs} side by side from now on instead of {before}"
                            self.progress.fewer(turn.jobs, f"the first {FIRST_VOIDS} runs are void: {text}")
                    if self.stop.is_set():
                        raise KeyboardInterrupt
            except BaseException:
                self.stop.set()  # leaving the pool waits for the runs to end
                if running:
                    self.progress.note("ending the runs under way; those that are complete stay")
                raise
        return turn.voids

    def _leave(self, waiting: list[Task]) -> None:
        """These runs are not started."""
        self.progress.withdraw([self.name_of(task) for task in waiting], "time limit: the runs under way are the last")
        self.not_started += waiting

    def _one(self, task: Task) -> Outcome:
        """One run, in a thread of the pool. The failure of a run is an outcome; other failures are exceptions."""
        cell = task.cell
        clear(task.directory)
        with Start(self.starts, self.stop) as start:
            name = self.name_of(task)
            self.progress.stage(name, "starts")

            def report_stage(stage: str, fraction: float | None) -> None:
                self.progress.stage(name, stage, fraction)
                if stage in STARTED:
                    start.release()
                if stage == ENDING:
                    for module in NEEDED_AT_END:
                        importlib.import_module(module)

            try:
                ended = self.runner(
                    cell.scenario, task.seed, task.directory, progress=report_stage, cancel=self.stop,
                    experiment=task.experiment, cell=cell.name, variant=cell.variant, axes=cell.axes,
                )  # fmt: skip
            except UsageError as refusal:  # such as a guest's, whose kernel lacks something: other cells can run
                return Outcome(task, "failed", reason=str(refusal))
        _enter(task.directory, task.results)
        if ended.status == "complete":
            return Outcome(task, "complete", ended.verdict or "void")
        return Outcome(task, ended.status, ended.verdict or "", ended.error or "", host_late=ended.host_late)

    def _record(self, outcome: Outcome) -> None:
        """Record an outcome."""
        before = self.outcomes.pop(outcome.task.directory, None)
        if before is not None:
            outcome.voids = before.voids
        self.outcomes[outcome.task.directory] = outcome
        self._failed += _is_failure(outcome) - (before is not None and _is_failure(before))
        if outcome.should_rerun and outcome.voids < RETRIES:
            self.progress.will_repeat(self._work(outcome.task))
        self.progress.finished(self.name_of(outcome.task), outcome.text())
        if "disk full" in outcome.reason:
            raise RunError(f"{outcome.reason}; then {self.again}" if self.again else outcome.reason)
        if self._failed >= GIVE_UP_AFTER and self._failed == len(self.outcomes):
            raise RunError(f"the first {self._failed} runs failed, the last with: {outcome.reason}")

    def _put_aside(self, outcome: Outcome, how: str) -> None:
        outcome.voids += 1
        task = outcome.task
        put = move_aside(task.directory)
        _enter(put, task.results)
        reason, kind = ("the host was late", "late") if outcome.host_late else ("void", "void")
        rerun = f"rerun {how}" if self.may_start() else "not rerun, by the time limit"
        because = "" if outcome.host_late else first_reason(put)
        self.progress.rerun(self._work(task), f"{reason}{because}, {rerun} (the {kind} run is kept in {put.parent})")

    def _work(self, task: Task) -> Work:
        return Work.of(self.name_of(task), task.cell.scenario)


class Start:
    """A place among the starting runs: a run holds it from its first process until its network is up (`release`), or the block
    ends. `stop` ends the wait for a place."""

    def __init__(self, places: threading.Semaphore, stop: threading.Event) -> None:
        self._places, self._stop = places, stop
        self._held = False

    def __enter__(self) -> Self:
        while not self._held and not self._stop.is_set():
            self._held = self._places.acquire(timeout=POLL_S)
        return self

    def release(self) -> None:
        """Release the place; a second call does nothing."""
        if self._held:
            self._held = False
            self._places.release()

    def __exit__(self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None) -> None:
        self.release()


@contextmanager
def _ctrl_c_sets(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP (but under nohup(1)) set `stop`; a second one is raised at once, others are ignored.
    KeyboardInterrupt at the end of the block if `stop` was set, also by another thread.

    An exception while the pool starts a thread would leave that thread and its run unattended. Only the main thread may handle
    signals (module signal); in another one `stop` alone ends the runs.
    """

    def note(_number: int, _frame: object) -> None:
        if stop.is_set():
            for number in taken:
                signal.signal(number, signal.SIG_IGN)
            raise KeyboardInterrupt
        stop.set()

    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() else ()
    taken = [number for number in handled if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in taken}
    try:
        yield
        if stop.is_set():  # between two runs, or after the last
            raise KeyboardInterrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_failure(outcome: Outcome) -> bool:
    return outcome.status == "failed" and not outcome.host_late


def is_complete(task: Task) -> bool:
    """Whether the run is complete, not void, unchanged since its end, and of the same scenario as the task."""
    run = read_object(task.directory / "run.json")
    return is_of(task.directory, task.cell) and run.get("status") == "complete" and is_sound(task.directory)


def is_sound(directory: Path) -> bool:
    """Whether a complete run is not void and unchanged since its end.

    Without a manifest it is not: its worker was killed after run.json was written, and other files may be incomplete.
    """
    has_manifest = (directory / manifest.NAME).exists()
    return read_verdict(directory) in ("valid", "suspect") and has_manifest and exclusion_reason(directory) is None


def is_of(run: Path, cell: Cell) -> bool:
    """Whether the run in a folder has the scenario of this cell."""
    return read_object(run / "scenario.json") == cell.content


def clear(directory: Path) -> None:
    """Move an earlier, incomplete run to `void/`; it is never deleted."""
    if directory.exists() and any(directory.iterdir()):
        move_aside(directory)
    directory.mkdir(parents=True, exist_ok=True)


def move_aside(directory: Path) -> Path:
    """Move a run to `void/` of its cell, under the number of its try; returns its new place."""
    aside = directory.parent / "void"
    aside.mkdir(exist_ok=True)
    return directory.rename(aside / f"{directory.name}-try-{tries(directory) + 1}")


def tries(directory: Path) -> int:
    """The number of earlier tries of a run in `void/`."""
    return sum(1 for _ in (directory.parent / "void").glob(f"{directory.name}-try-*"))


def read_verdict(directory: Path) -> str:
    """The verdict of a run; `void` if the medium wrote none."""
    return read_object(directory / "verdict.json").get("verdict", "void")


def first_reason(directory: Path) -> str:
    """The first reason of a run's verdict in brackets, without its remedy; empty without one."""
    reasons = read_object(directory / "verdict.json").get("reasons")
    return f" ({str(reasons[0]).partition(': ')[0]})" if isinstance(reasons, list) and reasons else ""


def _enter(run_dir: Path, results: Path) -> None:
    """Enter an ended run into the result store; its metrics follow with the tables."""
    if (run_dir / "run.json").exists():
        from analysis.store.files import append

        append(run_dir, results)
