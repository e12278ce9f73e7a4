"""The table that a campaign prints: ours, published, ns-2's, and the ratios between them."""

from pathlib import Path
from typing import Any

from rich.table import Table

from analysis.style import variant_name
from analysis.tables import Experiment, collect_runs, summarise


def result_table(out_dir: Path, experiment: Any = None, metric: str = "acked_kbps") -> Table:
    """One row per cell. Print it with a rich Console; written to a file it is plain text."""
    out_dir = Path(out_dir)
    description = Experiment.of(experiment, out_dir)
    runs = collect_runs(out_dir, description.axes)
    cells = [row for row in summarise(runs, description) if row["metric"] == metric]
    with_variants = any(row["variant"] for row in cells)
    unit = cells[0]["unit"] if cells else ""
    table = Table(title=f"{description.name}: {metric.rpartition('_')[0] or metric}, {unit}", caption=_caption(runs))
    for heading in [*description.axes, *(["variant"] if with_variants else [])]:
        table.add_column(heading, justify="left" if heading == "variant" else "right")
    for heading in ("ours", "±95 %", "published", "ours/pub.", "ns-2", "ours/ns-2", "runs"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in cells:
        names = [str(row[axis]) for axis in description.axes]
        names += [variant_name(row["variant"])] if with_variants else []
        table.add_row(*names, *_figures(row), _standings(row))
    return table


def _figures(row: dict[str, Any]) -> list[str]:
    mean = row["mean"]
    figures = [_rounded(mean), _rounded(row["ci95"])]
    for reference in (row["published"], row["ns2"]):
        figures += [_rounded(reference), f"{mean / reference:.2f}" if mean is not None and reference else ""]
    return figures


def _standings(row: dict[str, Any]) -> str:
    """`3 valid`, or all kinds that occur."""
    return ", ".join(f"{row[kind]} {kind}" for kind in ("valid", "suspect", "void") if row[kind])


def _caption(runs: list[dict[str, Any]]) -> str:
    """Which cross-checks failed, and where to read why."""
    failed = [run for run in runs if run["checks"] != "ok"]
    if not failed:
        return f"{len(runs)} runs; captures, iperf3, air log and counters agree in all"
    shown = "\n".join(f"{run['run_dir']}: {run['checks']}" for run in failed[:5])
    return f"cross-checks failed in {len(failed)} of {len(runs)} runs (metrics.json says why):\n{shown}"


def _rounded(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
