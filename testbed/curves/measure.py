"""Measure a chain curve: a campaign of static chains in a temporary folder."""

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analysis import tables
from testbed.campaigns.campaign import Campaign
from testbed.campaigns.cells import Cell
from testbed.campaigns.expectations import Expected
from testbed.campaigns.experiment import Experiment
from testbed.campaigns.progress import Progress
from testbed.campaigns.report import Report
from testbed.campaigns.schedule import Runner
from testbed.campaigns.side_by_side import default_jobs
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
    """Measure the curve and write it into the cache; returns the file's content. Raises RunError if a run fails or is void."""
    experiment = chains(curve)
    folder = Path(tempfile.mkdtemp(prefix="manet-curve-"))
    try:
        side_by_side = jobs or default_jobs(cell.scenario for cell in experiment.cells)
        outcomes = Campaign(experiment, folder / "runs", side_by_side, progress, runner).run(resume=False)
        bad = next((outcome for outcome in outcomes if outcome.status != "complete" or outcome.verdict == "void"), None)
        if bad is not None:
            raise RunError(f"chain curve {curve.name}: {bad.task.name}: {bad.text()}; run again on a quieter machine")
        Report(folder / "runs").make()
        rows = [row for row in tables.read_summary(folder / "runs") if row["metric"] == METRIC]
        values = {int(row["hops"]): float(row["mean"]) for row in rows if row["mean"] is not None}
        ci95 = {int(row["hops"]): row["ci95"] for row in rows}
        return store(curve, values, _provenance(outcomes, ci95))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def chains(curve: Curve) -> Experiment:
    """The experiment: chains of 1 to MAX_HOPS hops, SEEDS runs each."""
    hops = list(range(1, MAX_HOPS + 1))
    cells = tuple(Cell(f"hops{count}", "", {"hops": count}, curve.chain(count)) for count in hops)
    return Experiment(
        name=f"curve-{curve.name}", question="", source=None, figure=None, published=None, ns2=None, quick=False,
        axes={"hops": hops}, variants=(), seeds=SEEDS, cells=cells, expect=Expected(),
    )  # fmt: skip


def _provenance(outcomes: list, ci95: dict[int, float | None]) -> dict[str, Any]:
    verdicts = [outcome.verdict for outcome in outcomes]
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "commit": metadata.commit(), "host": metadata.host()["name"],
        "seeds": SEEDS, "duration_s": DURATION_S, "ci95_kbps": {str(hops): value for hops, value in sorted(ci95.items())},
        "verdicts": {kind: verdicts.count(kind) for kind in sorted(set(verdicts))},
    }  # fmt: skip
