"""The tables that a campaign prints: for each traffic kind its metrics (analysis/tables/shown.py), with published and ns-2's
values and ratios; and the rate of each of several flows.

They fit a terminal of 80 columns: a column that is empty in every row is left out, and so are the last metrics if all are too
wide together.
"""

import textwrap
from statistics import fmean
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from analysis.tables.digits import rounded
from analysis.tables.results import OF_KINDS, Results, cell_of, counts, endings_of_cells
from analysis.tables.shown import flows_of, kinds_in, kinds_of_cells, shown_of
from traffic.shared.kind import Shown

REFERENCES = ("paper", "to\npaper", "ns-2.35", "to\nns-2")
WIDTH = 80  # columns of the terminal
HEADING_COLUMNS = 14  # at most so wide is the heading of one of several metrics, unless a word is wider
FLOW_ROWS = 24  # metrics.json has the others


def result_table(results: Results) -> Group:
    """For each traffic kind a title and a row per cell; then the results of the cross-checks (a table may be narrower)."""
    parts = [part for kind in kinds_in(results) for part in _kind_table(results, kind)]
    return Group(*parts, Text(_caption(results.rows), style="dim"))


def _kind_table(results: Results, kind: str) -> list[Text | Table]:
    """Title and table of the flows of a kind, with a row per cell that has any."""
    description = results.experiment
    shown = shown_of(results, kind)
    kinds = kinds_of_cells(results)
    cells = [row for cell, row in _row_of_each_cell(results.summary, description.axes).items() if kind in kinds[cell]]
    with_variants = any(row["variant"] for row in cells)
    profiles = {row["profile"] for row in cells if row["profile"]} if "profile" not in description.axes else set()
    axes = (*description.axes, *(["profile"] if len(profiles) > 1 else []))
    table = Table()
    _add_names(table, axes, with_variants)
    summary = {(row["metric"], cell_of(row, description.axes)): row for row in results.summary}
    blocks = [_columns(one, [_metric(summary, one, row, description.axes) for row in cells], len(shown) == 1) for one in shown]
    count = _fitting(blocks, [*axes, *(["variant"] if with_variants else [])])
    shown, columns = shown[:count], [column for block in blocks[:count] for column in block]
    empty = not any(text for _, texts in columns for text in texts)
    if empty:
        columns = []  # a metric's name would promise a figure
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    endings = endings_of_cells(results)
    for number, row in enumerate(cells):
        texts = [texts[number] for _, texts in columns]
        runs = "\n".join(endings.get(cell_of(row, description.axes), ["none"]))
        table.add_row(*_names(row, axes, with_variants), *texts, runs)
    title = f"{description.name}: {'; '.join(one.label for one in shown)}"
    over_all = flows_of(results, kind) > 1 and any(one.metric in OF_KINDS for one in shown)
    title += _unit(shown[0]) if len(shown) == 1 else f" ({kind}{', all flows' if over_all else ''})"
    title += f", profile {next(iter(profiles))}" if len(profiles) == 1 else ""
    if empty:
        title = f"{description.name}: no figures{'' if any(map(counts, results.rows)) else ', as no run counts'}"
    return [Text(title, style="italic"), table]


def _fitting(blocks: list[list[tuple[str, list[str]]]], names: list[str]) -> int:
    """How many of the metrics fit, the first in any case. Names are folded to their heading, and a border takes three columns."""
    used = sum(len(name) + 3 for name in names) + len("9 suspect") + 3 + 1
    for number, block in enumerate(blocks):
        for heading, texts in block:
            if any(texts):
                used += max(len(line) for text in (heading, *texts) for line in (text.splitlines() or [""])) + 3
        if used > WIDTH and number > 0:
            return number
    return len(blocks)


def _unit(shown: Shown) -> str:
    return f", {shown.unit}" if shown.unit else ""


def _metric(
    summary: dict[tuple[str, tuple[Any, ...]], dict[str, Any]], shown: Shown, cell: dict[str, Any], axes: tuple[str, ...]
) -> dict[str, Any]:
    """The figures of a metric in a cell as they are printed: mean, interval, references, and the mean of the whole."""
    row = summary.get((shown.metric, cell_of(cell, axes)), {})
    figures = {key: row.get(key) for key in ("mean", "ci95", "published", "ns2")}
    return shown.scaled(figures) | {"of": summary.get((shown.of, cell_of(cell, axes)), {}).get("mean")}


def _columns(shown: Shown, rows: list[dict[str, Any]], alone: bool) -> list[tuple[str, list[str]]]:
    """Headings and texts of the columns of a metric, without those that are empty in every row."""
    if alone:
        headings = ["mean", "±95 %"]
        measured = [[_value(row), rounded(row["ci95"])] for row in rows]
    else:
        headings = [textwrap.fill(shown.label + _unit(shown), HEADING_COLUMNS, break_long_words=False)]
        measured = [[_value(row) + (f" ±{rounded(row['ci95'])}" if row["ci95"] is not None else "")] for row in rows]
    texts = [[*own, *_references(row)] for own, row in zip(measured, rows, strict=True)]
    columns = [(heading, [row[number] for row in texts]) for number, heading in enumerate([*headings, *REFERENCES])]
    return [column for number, column in enumerate(columns) if number == 0 or any(column[1])]


def flows_table(results: Results) -> Table | None:
    """A row for each flow of each cell with its mean rate over the runs that count. None if no run that counts has several flows,
    or none a rate."""
    axes, runs = results.experiment.axes, results.rows
    if all(len(run["flow_metrics"]) < 2 for run in runs):
        return None
    rows: dict[tuple[str, ...], list[float]] = {}
    with_variants = any(run["variant"] for run in runs)
    for run in runs:
        if not counts(run):
            continue
        for name, flow in run["flow_metrics"].items():
            kinds = ["acked"] if flow.get("acked_bps") is not None else ["delivered"] if "delivered_bps" in flow else []
            kinds += ["back_delivered"] if flow.get("back_delivered_bps") else []
            ends = f"{flow.get('from', '')} to {flow.get('to', '')}"
            for kind in kinds:
                values = rows.setdefault((*_names(run, axes, with_variants), name, ends, kind.replace("_", " ")), [])
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
        table.add_row(*names, rounded(fmean(values) if values else None))
    return table


def _add_names(table: Table, axes: tuple[str, ...], with_variants: bool) -> None:
    """The columns that name a cell; long values wrap, headings never do."""
    for heading in [*axes, *(["variant"] if with_variants else [])]:
        table.add_column(heading, justify="left" if heading == "variant" else "right", overflow="fold", min_width=len(heading))


def _names(row: dict[str, Any], axes: tuple[str, ...], with_variants: bool) -> list[str]:
    return [str(row[axis]) for axis in axes] + ([row["variant"] or ""] if with_variants else [])


def _value(row: dict[str, Any]) -> str:
    """The mean, or `3 of 4`; empty without one."""
    whole = f" of {rounded(row['of'])}" if row["of"] is not None else ""
    return rounded(row["mean"]) + (whole if row["mean"] is not None else "")


def _references(row: dict[str, Any]) -> list[str]:
    texts = []
    for reference in (row["published"], row["ns2"]):
        texts += [rounded(reference), f"{row['mean'] / reference:.2f}" if row["mean"] is not None and reference else ""]
    return texts


def _row_of_each_cell(summary: list[dict[str, Any]], axes: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The first row of each cell, which names it."""
    cells: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in summary:
        cells.setdefault(cell_of(row, axes), row)
    return cells


def _caption(runs: list[dict[str, Any]]) -> str:
    """The failed cross-checks, and the file with the reasons."""
    # the files of a run that failed or was interrupted may agree or not, which proves nothing: run.json says why it ended
    compared = [run for run in runs if run["status"] == "complete"]
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
