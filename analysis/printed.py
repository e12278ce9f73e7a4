"""The tables that a campaign prints: measured, published and ns-2's values with ratios, and the rate of each of several flows.

They fit a terminal of 80 columns: a column that is empty in every row is left out.
"""

from collections import Counter, defaultdict
from statistics import fmean
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from analysis.style import variant_name
from analysis.tables import ENDINGS, METRICS, OF_KINDS, Results, cell_of, counts, ending, shown_metric

HEADINGS = ("ours", "±95 %", "paper", "ours/\npaper", "ns-2.35", "ours/\nns-2")
FLOW_ROWS = 24  # metrics.json has the others


def result_table(results: Results) -> Group:
    """Title, a row per cell, and the results of the cross-checks (with their own width, as the table may be narrow)."""
    description, runs = results.experiment, results.rows
    metric = shown_metric(results.summary)
    cells = _row_of_each_cell(results.summary, description.axes, metric)
    with_variants = any(row["variant"] for row in cells)
    unit = METRICS[metric][0]
    flow = ", flow 1" if metric not in OF_KINDS and any(len(run["flow_metrics"]) > 1 for run in runs) else ""
    title = f"{description.name}: {metric.rpartition('_')[0] or metric}, {unit}{flow}"
    profiles = {row["profile"] for row in cells if row["profile"]} if "profile" not in description.axes else set()
    title += f", profile {next(iter(profiles))}" if len(profiles) == 1 else ""
    axes = (*description.axes, *(["profile"] if len(profiles) > 1 else []))
    table = Table()
    _add_names(table, axes, with_variants)
    figures = [_figures(row) for row in cells]
    kept = [column for column in range(len(HEADINGS)) if column == 0 or any(row[column] for row in figures)]
    if not any(map(any, figures)):  # the metric's name would promise a figure
        kept, title = [], f"{description.name}: no figures{'' if any(map(counts, runs)) else ', as no run counts'}"
    for column in kept:
        table.add_column(HEADINGS[column], justify="right", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    endings: defaultdict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for run in runs:
        endings[cell_of(run, description.axes)][ending(run)] += 1
    for row, texts in zip(cells, figures, strict=True):
        ended = _endings(endings[cell_of(row, description.axes)])
        table.add_row(*_names(row, axes, with_variants), *(texts[column] for column in kept), ended)
    return Group(Text(title, style="italic"), table, Text(_caption(runs), style="dim"))


def flows_table(results: Results) -> Table | None:
    """A row for each flow of each cell with its mean rate over the runs that count. None if no run that counts
    has several flows."""
    axes, runs = results.experiment.axes, results.rows
    if all(len(run["flow_metrics"]) < 2 for run in runs):
        return None
    rows: dict[tuple[str, ...], list[float]] = {}
    with_variants = any(run["variant"] for run in runs)
    for run in runs:
        if not counts(run):
            continue
        for name, flow in run["flow_metrics"].items():
            kind = "acked" if flow.get("acked_bps") is not None else "delivered"
            ends = f"{flow.get('from', '')} to {flow.get('to', '')}"
            values = rows.setdefault((*_names(run, axes, with_variants), name, ends, kind), [])
            values += [flow[f"{kind}_bps"] / 1e3] if flow.get(f"{kind}_bps") is not None else []
    if not rows:
        return None
    more = f"and {len(rows) - FLOW_ROWS} more: metrics.json of each run" if len(rows) > FLOW_ROWS else None
    table = Table(title="every flow, kbit/s", caption=more)
    _add_names(table, axes, with_variants)
    for heading in ("flow", "from, to", "rate"):
        table.add_column(heading, overflow="fold")
    table.add_column("kbit/s", justify="right", no_wrap=True)
    for names, values in list(rows.items())[:FLOW_ROWS]:
        table.add_row(*names, _rounded(fmean(values) if values else None))
    return table


def _add_names(table: Table, axes: tuple[str, ...], with_variants: bool) -> None:
    """The columns that name a cell; long values wrap, headings never do."""
    for heading in [*axes, *(["variant"] if with_variants else [])]:
        justify = "left" if heading == "variant" else "right"
        table.add_column(heading, justify=justify, overflow="fold", min_width=len(heading))


def _names(row: dict[str, Any], axes: tuple[str, ...], with_variants: bool) -> list[str]:
    return [str(row[axis]) for axis in axes] + ([variant_name(row["variant"])] if with_variants else [])


def _figures(row: dict[str, Any]) -> list[str]:
    mean = row["mean"]
    figures = [_rounded(mean), _rounded(row["ci95"])]
    for reference in (row["published"], row["ns2"]):
        figures += [_rounded(reference), f"{mean / reference:.2f}" if mean is not None and reference else ""]
    return figures


def _row_of_each_cell(summary: list[dict[str, Any]], axes: tuple[str, ...], metric: str) -> list[dict[str, Any]]:
    """The row of `metric` of each cell. A cell without it, such as one without a run that counts, has its first row without
    values."""
    cells: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in summary:
        if row["metric"] == metric or cell_of(row, axes) not in cells:
            cells[cell_of(row, axes)] = row
    nothing = {"metric": metric, "unit": METRICS[metric][0], "mean": None, "ci95": None, "n": 0, "published": None, "ns2": None}
    return [row if row["metric"] == metric else row | nothing for row in cells.values()]


def _endings(endings: Counter[str]) -> str:
    """`3 valid`, or all kinds that occur, one per line."""
    return "\n".join(f"{endings[kind]} {kind}" for kind in ENDINGS if endings[kind]) or "none"


def _caption(runs: list[dict[str, Any]]) -> str:
    """The failed cross-checks, and the file with the reasons."""
    # the files of an interrupted run may agree up to its end, which proves nothing
    compared = [run for run in runs if run["status"] == "complete" or run["checks"] not in ("ok", "no metrics")]
    failed = [run for run in compared if run["checks"] != "ok"]
    counted = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    if not failed:
        if not compared:
            return f"{counted}; none complete, no cross-checks"
        broken = len(runs) - len(compared)
        where = f" in {len(compared)}; {broken} not complete" if broken else " in all" if len(runs) > 1 else ""
        return f"{counted}; captures, iperf3, air log and counters agree{where}"
    shown = "\n".join(f"{run['run_dir']}: {run['checks']}" for run in failed[:5])
    return f"cross-checks failed in {len(failed)} of {counted} (metrics.json says why):\n{shown}"


def _rounded(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
