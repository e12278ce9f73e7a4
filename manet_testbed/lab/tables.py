"""Rows of the analysis as frames of polars, and the units of their columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from analysis.decisions.answers import Answered
from analysis.decisions.pairs import VARIANT, pairs
from analysis.store.schema import OF_FLOWS
from analysis.tables.results import METRICS, Results, cell_of, plain

TEXTS = ("variant", "profile", "verdict", "status", "checks", "run_dir", "metric", "unit", "flow", "traffic", "from", "to")
WHOLE = ("seed", "n", "valid", "suspect", "void")
UNITS = {name: unit for name, (unit, _, _) in (METRICS | OF_FLOWS).items()}
COMPARED = ("compared", "with", "metric", "unit", "seeds", "mean", "mean_with", "difference", "low", "high", "method",
            "percent", "outcome")  # fmt: skip


def runs_frame(results: Results) -> pl.DataFrame:
    """A row for each run: the columns of table.csv, without the metrics that no run has."""
    axes = results.experiment.axes
    measured = [name for name in METRICS if any(row[name] is not None for row in results.rows)]
    return frame([*_cell(axes), "seed", "verdict", "status", *measured, "checks", "run_dir"], results.rows, axes)


def summary_frame(results: Results) -> pl.DataFrame:
    """A row for each cell and metric: the columns of summary.csv."""
    axes = results.experiment.axes
    columns = ["metric", "unit", "mean", "ci95", "n", "published", "ns2", "valid", "suspect", "void"]
    return frame([*_cell(axes), *columns], results.summary, axes)


def flows_frame(results: Results) -> pl.DataFrame:
    """A row for each flow of each run, with the metrics that any flow has."""
    rows = []
    for run in results.rows:
        for name, flow in run["flow_metrics"].items():
            values = {
                metric: None if flow.get(entry) is None else flow[entry] / divisor
                for metric, (_, entry, divisor) in OF_FLOWS.items()
            }
            rows.append(run | values | {"flow": name} | {key: flow.get(key) for key in ("traffic", "from", "to")})
    axes = results.experiment.axes
    measured = [name for name in OF_FLOWS if any(row[name] is not None for row in rows)]
    return frame([*_cell(axes), "seed", "verdict", "status", "flow", "traffic", "from", "to", *measured], rows, axes)


def comparison_frame(
    results: Results, key: str, compared: str, base: str, metric: str, answers: Sequence[Answered] = ()
) -> pl.DataFrame:
    """`compared` minus `base`, two values of `key`, seed by seed, for each combination of the other keys
    (analysis/decisions/pairs.py)."""
    others = [name for name in (*results.experiment.axes, VARIANT) if name != key]
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in results.rows:
        cells.setdefault(tuple(row[name] for name in others), []).append(row)
    rows = []
    for where, runs in cells.items():
        for pair in pairs(runs, results.experiment.axes, key, base, (metric,), (compared,), answers):
            found = (pair.compared, pair.base, metric, UNITS[metric], pair.seeds, pair.mean, pair.mean_base, pair.difference,
                     pair.answer.low, pair.answer.high, pair.method, pair.percent, pair.outcome)  # fmt: skip
            profiles = dict.fromkeys(run["profile"] for run in runs if str(run[key]) in (compared, base))
            cell = {"profile": " and ".join(profiles)} | dict(zip(others, where, strict=True))
            rows.append(cell | dict(zip(COMPARED, found, strict=True)))
    kept = [name for name in others if name != VARIANT or any(row[VARIANT] for row in rows)]
    kept += [] if "profile" in (*others, key) else ["profile"]
    return frame(
        [*kept, *COMPARED], rows, results.experiment.axes, texts=("compared", "with", "method", "outcome"), whole=("seeds",)
    )


def cells_with(results: Results, where: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The runs whose axes and variant have these values."""
    return [row for row in results.rows if all(row[key] == plain(value) for key, value in where.items())]


def values_of(results: Results, key: str) -> list[Any]:
    """The values of an axis or of the variant, in the order of the runs."""
    return list(dict.fromkeys(row[key] for row in results.rows))


def names_of_cells(results: Results) -> list[str]:
    """The folders of the cells, in the order of the runs."""
    return list(dict.fromkeys(row["run_dir"].split("/")[0] for row in results.rows))


def is_one_cell(results: Results, rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether all rows are of the same cell."""
    return len({cell_of(row, results.experiment.axes) for row in rows}) == 1


def frame(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], axes: Sequence[str], texts: Sequence[str] = (),
    whole: Sequence[str] = (),
) -> pl.DataFrame:  # fmt: skip
    """The rows as a frame: texts and whole numbers by name, axes as their values are, all other columns as floats."""

    def series(name: str) -> pl.Series:
        values = [row[name] for row in rows]
        if name in axes:
            return pl.Series(name, values, strict=False)
        kind = pl.String() if name in (*TEXTS, *texts) else pl.Int64() if name in (*WHOLE, *whole) else pl.Float64()
        return pl.Series(name, values, dtype=kind)

    return pl.DataFrame([series(name) for name in columns])


def _cell(axes: Sequence[str]) -> list[str]:
    return [*axes, "variant", *(["profile"] if "profile" not in axes else [])]
