"""The metrics that a campaign prints of each traffic kind: those that its experiment names, and those that the kind names."""

from dataclasses import replace
from typing import Any

from analysis.tables.results import (
    FLOW_METRICS,
    METRICS,
    OF_KINDS,
    OF_RUN,
    SOME_METRICS,
    SUM_METRICS,
    Results,
    cell_of,
    shown_metric,
)
from traffic import DEFAULT_KIND, kind_named
from traffic.shared.kind import Shown

WORDS_OF_UNITS = {"s": "s", "ms": "ms", "kbit/s": "kbps", "bit/s": "bps"}  # in names of metrics; a count names what it counts


def kinds_of_cells(results: Results) -> dict[tuple[Any, ...], set[str]]:
    """The traffic kinds of each cell; of a cell without metrics the first of all."""
    axes, first = results.experiment.axes, kinds_in(results)[0]
    kinds: dict[tuple[Any, ...], set[str]] = {cell_of(row, axes): set() for row in results.summary}
    for run in results.rows:
        kinds[cell_of(run, axes)] |= set(_traffic(run))
    return {cell: of_cell or {first} for cell, of_cell in kinds.items()}


def kinds_in(results: Results) -> list[str]:
    """The traffic kinds of the runs, in the order of their flows; the default kind if no run has metrics."""
    return list(dict.fromkeys(kind for run in results.rows for kind in _traffic(run))) or [DEFAULT_KIND]


def shown_of(results: Results, kind_name: str) -> list[Shown]:
    """Metrics to print for the flows of a kind: `metric` and `of` are metrics of the summary. At least one, measured or not."""
    kind = kind_named(kind_name)

    def column(metric: str) -> str:
        return f"{kind_name}_{metric}" if any(each.name == metric for each in kind.run_metrics) else metric

    measured = {row["metric"] for row in results.summary if row["mean"] is not None}
    wanted = [replace(shown, metric=column(shown.metric), of=shown.of and column(shown.of)) for shown in kind.shown]
    wanted = wanted or [plain(shown_metric(results.summary))]
    if kind_name == kinds_in(results)[0]:
        own = results.experiment.shown
        wanted = [*map(plain, own), *wanted, *(plain(metric) for metric in OF_RUN if metric in measured and metric not in own)]
    known = [
        shown
        for shown in wanted
        if shown.metric in measured
        and not _is_flow_1_alone(results, shown.metric)
        and not _is_of_another_kind(results, kind_name, shown.metric)
    ]
    return [replace(shown, label=shown.label + _scope(results, kind_name, shown.metric)) for shown in known or wanted[:1]]


def flows_of(results: Results, kind_name: str) -> int:
    """The largest number of flows of the kind in a run."""
    return max((_traffic(run).count(kind_name) for run in results.rows), default=0)


def plain(metric: str) -> Shown:
    """A metric that no kind describes, under its own name without the unit: `rtt mean` in ms."""
    unit = METRICS[metric][0]
    words = [word for word in metric.split("_") if word != WORDS_OF_UNITS.get(unit)]
    return Shown(metric, " ".join(words), unit)


def _is_flow_1_alone(results: Results, metric: str) -> bool:
    """Whether it is a sum that is flow 1's value in every run."""
    if metric not in SUM_METRICS:
        return False
    own = metric.removeprefix("total_")
    return all(run[metric] == run[own] for run in results.rows)


def _is_of_another_kind(results: Results, kind_name: str, metric: str) -> bool:
    """Whether it is flow 1's alone, and flow 1 is never of this kind."""
    firsts = {next(iter(kinds)) for run in results.rows if (kinds := _traffic(run))}
    return metric in FLOW_METRICS and bool(firsts) and kind_name not in firsts


def _scope(results: Results, kind_name: str, metric: str) -> str:
    """The flow whose value it is, if a run has several."""
    if metric in FLOW_METRICS and any(len(run["flow_metrics"]) > 1 for run in results.rows):
        return ", flow 1"
    if metric in SOME_METRICS and metric not in OF_KINDS and flows_of(results, kind_name) > 1:
        return ", first flow that has it"
    return ""


def _traffic(run: dict[str, Any]) -> list[str]:
    """The kind of each flow of a row of table.csv."""
    return [flow.get("traffic") or DEFAULT_KIND for flow in run["flow_metrics"].values()]
