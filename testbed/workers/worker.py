"""A worker of a campaign: checks its machine, finds its safe load, carries out a batch, measures its runs, applies the rule of
the disk budget.

What it did is in one file (DONE), written last. A worker that ends before leaves no such file; the next worker of the same batch
keeps the runs that are complete.
"""

import fcntl
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

from record.files import write_atomic
from testbed.campaigns import batch as batches
from testbed.campaigns import captures
from testbed.campaigns.batch import Batch
from testbed.campaigns.measuring import Processes, is_measured, measure_runs
from testbed.campaigns.progress import Progress
from testbed.campaigns.rounds import done_records, now
from testbed.campaigns.safe_load import SafeLoad, cpu_times
from testbed.campaigns.schedule import Schedule
from testbed.campaigns.side_by_side import MAX_JOBS, cost_cores, default_jobs, jobs_of_cost, usable_cores
from testbed.campaigns.task import Outcome
from testbed.campaigns.time_limit import TimeLimit
from testbed.errors import UsageError
from testbed.host.doctor import parts, percentile, timer_lateness_us
from testbed.host.privileges import rootless
from testbed.runs.template import TEMPLATE
from testbed.workers.runner import max_guests, runner_for

POLL_S = 1.0
MAX_SHARE = 3.0
PERCENTILES = (50, 95, 100)
Say = Callable[[str], None]


@contextmanager
def worker(driver: Path | None, say: Say) -> Iterator[Callable[[Path, Path], None]]:
    """What carries out the batch in a file and writes another: the checks of the machine and the processes that it needs serve
    all batches of a campaign. `driver`: a batch ends early when no campaign holds this folder. UsageError on an unfit machine."""
    TEMPLATE.warm()  # imports in the meantime
    require_fit_machine()
    with Processes() as measuring:
        yield lambda path, out: work(Batch.read(path), path, out, driver, say, measuring)


def work(batch: Batch, path: Path, out: Path, driver: Path | None, say: Say, measuring: Processes) -> None:
    """Carry out a batch on a machine that is fit (`worker`)."""
    timers_us = timer_lateness_us()  # of each batch: what else the machine does may change within a campaign
    scenarios = {task.full_name: task.cell.scenario for task in batch.tasks}
    runner = runner_for(
        scenarios, [task.seed for task in batch.tasks], say=say, tcp_place=path.name, kernel=batch.kernel,
        allow_internet=batch.allow_internet,
    )  # fmt: skip
    costs = {name: cost_cores(scenario) for name, scenario in scenarios.items()}
    median_cost = median(costs.values())
    adapts = batch.jobs is None and all(scenario.clock == "real" for scenario in scenarios.values())
    default = jobs_of_cost(median_cost) if adapts else default_jobs(scenarios.values(), max_guests)
    jobs = batch.jobs or (min(MAX_JOBS, max(1, round(default * found_share(path)))) if adapts else default)
    load = SafeLoad(jobs, MAX_JOBS) if adapts else None
    progress = Progress()
    schedule = Schedule(
        jobs, progress, runner, f"start the campaign again: {path} goes on", name_of=attrgetter("full_name"), load=load,
        weight_of=lambda task: costs[task.full_name] / median_cost,
        may_start=lambda: not TimeLimit.of(path.parent).is_reached,
    )  # fmt: skip
    with batches.claimed(path, say), stopped_without(driver, schedule.stop):
        before = cpu_times()
        try:
            outcomes = schedule.run(batch.tasks, resume=True)
            busy_s = (cpu_times()[0] - before[0]) / os.sysconf("SC_CLK_TCK")
            progress.note("measuring the captures")
            errors = measure([outcome for outcome in outcomes if outcome.status in ("complete", "kept")], measuring)
        finally:
            progress.close()
        dropped = [captures.apply(batch.captures, task.directory, task.seed) for task in batch.tasks]
        done = {
            "format": batches.DONE, "host": socket.gethostname(), "cores": usable_cores(),
            "timers_us": {str(p): round(percentile(timers_us, p), 1) for p in PERCENTILES},
            "jobs": [jobs, max([count for _, count in load.looks], default=jobs)] if load else [jobs, jobs],
            "load": load.looks if load else [], "default_jobs": default, "found_jobs": load.found() if load else None,
            "core_s": round(busy_s, 1), "wall_s": round(schedule.pace.wall_s, 1),
            "emulated_s": round(schedule.pace.emulated_s, 1), "ended": now(),
            "dropped": {"runs": sum(size > 0 for size in dropped), "bytes": sum(dropped)},
            "runs": [_entry(outcome, errors) for outcome in outcomes],
        }  # fmt: skip
        write_atomic(out, json.dumps(done, indent=1) + "\n")


def found_share(path: Path) -> float:
    """The parallel runs that the newest batch of this machine found, as a share of its default; 1 without one. `path`: the batch
    that begins. The share, since the default follows the cost of a batch's scenarios, roughly; hence MAX_SHARE at most."""
    here = socket.gethostname()
    records = [record for record in done_records(path.resolve().parent.parent.parent) if record.get("host") == here]
    shares = [record["found_jobs"] / record["default_jobs"] for record in records if record.get("found_jobs")]
    return min(MAX_SHARE, shares[-1]) if shares else 1.0


def require_fit_machine() -> None:
    """`manet doctor`'s needed checks; UsageError with the first remedy."""
    bad = next((check for check in parts() if check.needed and not check.ok_for(root=not rootless())), None)
    if bad is not None:
        raise UsageError(f"{socket.gethostname()}: {bad.name}: {bad.detail}; {bad.remedy} (`manet doctor` shows all)")


def measure(outcomes: list[Outcome], processes: Processes) -> dict[Path, str]:
    """metrics.json of each run that has none yet; the errors by run."""
    return measure_runs([o.task.directory for o in outcomes if not is_measured(o.task.directory)], processes)


@contextmanager
def stopped_without(driver: Path | None, stop: threading.Event) -> Iterator[None]:
    """Set `stop` when no process holds the lock of the folder `driver` any more: the campaign was killed."""
    over = threading.Event()

    def watch(descriptor: int) -> None:
        while not over.wait(POLL_S):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            stop.set()

    descriptor = os.open(driver, os.O_RDONLY) if driver is not None else -1
    thread = threading.Thread(target=watch, args=(descriptor,), name="driver", daemon=True)
    if driver is not None:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if driver is not None:
            thread.join()
            os.close(descriptor)


def _entry(outcome: Outcome, errors: dict[Path, str]) -> dict[str, Any]:
    task, error = outcome.task, outcome.reason or errors.get(outcome.task.directory)
    return {"experiment": task.experiment, "cell": task.cell.name, "seed": task.seed, "status": outcome.status,
            "verdict": outcome.verdict, "voids": outcome.voids, "error": error or None}  # fmt: skip
