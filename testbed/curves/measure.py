"""Measure a chain curve: a campaign of static chains in a temporary folder.

Every percentage of expected throughput rests on the curve, and it is kept: only valid runs are in it. Others are repeated, one at
a time.
"""

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analysis.tables import results as tables
from testbed.campaigns.campaign import Campaign
from testbed.campaigns.cells import Cell
from testbed.campaigns.expectations import Expected
from testbed.campaigns.experiment import Experiment
from testbed.campaigns.measuring import is_measured, measure_runs
from testbed.campaigns.progress import Progress
from testbed.campaigns.report import Report
from testbed.campaigns.schedule import RETRIES, Runner, move_aside, read_verdict
from testbed.campaigns.side_by_side import default_jobs
from testbed.campaigns.task import Outcome
from testbed.curves.curve import DURATION_S, MAX_HOPS, SEEDS, Curve, store
from testbed.errors import RunError
from testbed.runs import metadata

METRIC = "acked_kbps"


def measured_now(curve: Curve, jobs: int | None) -> dict[str, Any]:
    """Measure a curve with its own progress display; returns the content of its file."""
    from testbed.host.requirements import require_for_runs
    from testbed.runs.run import run_scenario

    require_for_runs()
    progress = Progress()
    progress.note(f"chain curve {curve.name}: {curve.scenario['tcp']} over {curve.scenario['radio']}, once for all")
    try:
        return measure(curve, run_scenario, progress, jobs)
    finally:
        progress.close()


def measure(curve: Curve, runner: Runner, progress: Progress, jobs: int | None = None) -> dict[str, Any]:
    """Measure the curve and write it into the cache; returns the file's content. Raises RunError if a run fails, or a chain has
    no valid run."""
    experiment = chains(curve)
    folder = Path(tempfile.mkdtemp(prefix="manet-curve-"))
    runs = folder / "runs"
    try:
        side_by_side = jobs or default_jobs(cell.scenario for cell in experiment.cells)
        doubtful = _doubtful(curve, Campaign(experiment, runs, side_by_side, progress, runner).run(resume=False))
        for _ in range(RETRIES):
            if doubtful:
                progress.note(f"chain curve {curve.name}: {len(doubtful)} runs are not valid; each is repeated alone")
                doubtful = _doubtful(curve, Campaign(experiment, runs, 1, progress, runner).run(resume=True))
        Report(runs).make()
        rows = [row for row in tables.read_summary(runs) if row["metric"] == METRIC and row["mean"] is not None]
        values = {int(row["hops"]): float(row["mean"]) for row in rows}
        if missing := next((count for count in experiment.axes["hops"] if count not in values), None):
            text = f"no run of {missing} hops is valid after {1 + RETRIES} tries; run again on a quieter machine"
            raise RunError(f"chain curve {curve.name}: {text}")
        measured = _provenance({int(row["hops"]): row["ci95"] for row in rows}, sum(int(row["n"]) for row in rows), doubtful)
        return store(curve, values, measured)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _doubtful(curve: Curve, outcomes: list[Outcome]) -> list[str]:
    """The verdicts of the runs that are not valid, after their cross-checks; they are put aside. RunError for a failed run."""
    failed = next((outcome for outcome in outcomes if outcome.status == "failed" and not outcome.host_late), None)
    if failed is not None:
        raise RunError(f"chain curve {curve.name}: {failed.task.name}: {failed.text()}; run again on a quieter machine")
    runs = [outcome.task.directory for outcome in outcomes]
    measure_runs(run for run in runs if not is_measured(run))
    verdicts = {run: verdict for run in runs if (verdict := read_verdict(run)) != "valid"}
    for run in verdicts:
        move_aside(run)
    return list(verdicts.values())


def chains(curve: Curve) -> Experiment:
    """The experiment: chains of 1 to MAX_HOPS hops, SEEDS runs each."""
    hops = list(range(1, MAX_HOPS + 1))
    cells = tuple(Cell(f"hops{count}", "", {"hops": count}, curve.chain(count)) for count in hops)
    return Experiment(
        name=f"curve-{curve.name}", question="", source=None, figure=None, published=None, ns2=None, quick=False,
        axes={"hops": hops}, variants=(), seeds=SEEDS, cells=cells, expect=Expected(),
    )  # fmt: skip


def _provenance(ci95: dict[int, float | None], valid: int, left_out: list[str]) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "commit": metadata.commit(), "host": metadata.host()["name"],
        "seeds": SEEDS, "duration_s": DURATION_S, "ci95_kbps": {str(hops): value for hops, value in sorted(ci95.items())},
        "verdicts": {"valid": valid}, "left_out": {kind: left_out.count(kind) for kind in sorted(set(left_out))},
    }  # fmt: skip
