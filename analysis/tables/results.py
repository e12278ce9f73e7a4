"""table.csv (a row per run), summary.csv (a row per cell and metric) and the table printed after a campaign.

formats/results.md defines the columns. A mean is over the runs that are complete and not void; its interval is Student's t at 95
%. A run that is void, failed or without metrics is counted as void and never enters a mean.
"""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from analysis.captures.rundir import RunDirectory
from analysis.metrics import energy, verdict_file
from analysis.metrics.measures import metrics_of_captures
from analysis.references import Reference, references_of
from record.errors import RunFileError
from record.files import atomic_file, plain_text, read_object, read_text
from record.found_runs import find_runs
from traffic import kind_names, kinds
from traffic.shared.kind import Kind, Metric

CONFIDENCE = 0.95
Row = Mapping[str, Any]  # of table.csv
NO_ROWS: Mapping[tuple[str, int], Row] = {}
# Columns keep their places in the tables; a metric that is not in this list comes after it.
FIRST_COLUMNS = (
    "acked_kbps", "delivered_kbps", "goodput_kbps", "iperf3_kbps", "back_delivered_kbps", "air_kbps", "segments",
    "retransmissions", "back_retransmissions", "connections", "rtt_ms_mean", "rtt_ms_p95", "cwnd_mean", "timeouts",
    "spurious_timeouts", "longest_silence_s", "sent", "loss", "back_loss", "back_latency_ms_mean", "latency_ms_mean",
    "latency_ms_p95", "jitter_ms", "delivery", "latency_ms_p5", "latency_ms_p50", "latency_ms_p99", "latency_ms_max",
    "jitter_rfc3550_ms", "jitter_rfc3550_ms_mean", "reaction_s", "expected_kbps", "percent", "partitioned", "mean_hops",
    "path_changes", "hop_changes", "route_changes",
)  # fmt: skip


def flow_columns(metrics: Iterable[Metric]) -> dict[str, tuple[str, str, float]]:
    """Column of table.csv -> (unit, entry of metrics.json's flow, divisor)."""
    columns: dict[str, tuple[str, str, float]] = {}
    for metric in metrics:
        if metric.unit == "bit/s" and metric.column == "":
            columns[metric.name.removesuffix("_bps") + "_kbps"] = ("kbit/s", metric.name, 1e3)
        elif metric.column is not None:
            columns[metric.column or metric.name] = (metric.unit, metric.name, 1)
    return columns


_columns = flow_columns(metrics_of_captures())
_silence = {"silence_s": _columns.pop("silence_s")}
FLOW_METRICS = {name: _columns.pop(name) for name in FIRST_COLUMNS} | _columns
SUM_METRICS = {
    "total_acked_kbps": ("kbit/s", "acked_bps", 1e3),
    "total_delivered_kbps": ("kbit/s", "delivered_bps", 1e3),
}


def own_metrics(kinds: Iterable[Kind[Any]]) -> dict[str, tuple[str, str, float]]:
    """Metrics that traffic kinds take from their own reports, with the names and units that the kinds declare."""
    return {metric.name: (metric.unit, metric.name, 1) for kind in kinds for metric in kind.own_metrics}


# of the first flow that has it
SOME_METRICS = _silence | own_metrics(kinds().values())
# Jain's index of the flows of each kind (analysis/metrics/fairness.py) -> (unit, kind, divisor)
FAIRNESS = {f"jain_{name}": ("1", name, 1) for name in kind_names()}
# metrics over all flows of a kind (`kinds` of metrics.json) -> (unit, (kind, metric), divisor)
OF_KINDS = {
    f"{name}_{metric.name}": (metric.unit, (name, metric.name), 1)
    for name, kind in kinds().items()
    for metric in kind.run_metrics
}
# of the whole run (`energy` of metrics.json)
OF_RUN = {metric.name: (metric.unit, metric.name, 1) for metric in energy.OF_RUN}
METRICS = FLOW_METRICS | SUM_METRICS | SOME_METRICS | FAIRNESS | OF_KINDS | OF_RUN
ENDINGS = ("valid", "suspect", "void", "failed", "interrupted")  # of runs, in the words of `ending`
KEPT = "kept"
# The metric that stands for flows whose kind names none (analysis/tables/shown.py): the first that any run has. Flows of
# datagrams have no ACKs, flows without a known connection only the metrics of their reports.
SHOWN = ("acked_kbps", "reaction_s", *OF_KINDS, "delivered_kbps", *own_metrics(kinds().values()))


@dataclass(frozen=True)
class Experiment:
    """The properties of an experiment that the tables need."""

    name: str
    axes: tuple[str, ...]
    references: Mapping[str, Reference | None]  # `published` and `ns2`
    cells: tuple[Mapping[str, Any], ...] = ()  # of experiment.json; those without a run have a row, too
    shown: tuple[str, ...] = ()  # metrics that it prints before those of its traffic kinds

    @classmethod
    def of(cls, raw: Mapping[str, Any], out_dir: Path) -> "Experiment":
        """Build it from the content of an experiment.json; `out_dir`: of the results."""
        return cls(
            raw.get("name", out_dir.name),
            tuple(raw.get("axes") or ()),
            references_of(raw),
            tuple(cell for cell in raw.get("cells") or () if isinstance(cell, Mapping)),
            tuple(raw.get("shown") or ()),
        )


@dataclass(frozen=True)
class Results:
    """The runs of a folder of results. `rows` are those of table.csv, each with the `flows` of its metrics.json (`flow_metrics`),
    whether its host was late, and its origin (`record`); `summary` are those of summary.csv, which are of `kept`, too."""

    directory: Path
    experiment: Experiment
    rows: list[dict[str, Any]]
    summary: list[dict[str, Any]]
    kept: Mapping[tuple[str, int], Row] = field(default_factory=dict)  # rows of earlier runs that count, by cell and seed


def collect(
    out_dir: Path,
    experiment: Mapping[str, Any] | None = None,
    runs: Iterable[Path] | None = None,
    kept: Mapping[tuple[str, int], Row] = NO_ROWS,
) -> Results:
    """Read the runs of a folder. `experiment`: the content of experiment.json (default: the folder's); `runs`: their directories
    (default: `find_runs`). The summary also counts `kept`, rows of earlier runs by cell and seed (kept_rows.runs_in)."""
    if experiment is None:
        path = out_dir / "experiment.json"
        if not path.exists():
            raise RunFileError(f"{path}: missing; pass the experiment, or let `manet run` write it")
        experiment = _json(path)
    description = Experiment.of(experiment, out_dir)
    rows = _rows(out_dir, description.axes, find_runs(out_dir).runs if runs is None else runs)
    valid = {at: row for at, row in kept.items() if counts(row)}
    return Results(out_dir, description, rows, summarise(joined(rows, valid), description), valid)


def write_tables(results: Results) -> list[Path]:
    """Write both tables into the folder of the results; returns their paths."""
    out_dir, axes = results.directory, results.experiment.axes
    # the TCP profile decides the window, and SACK if the TCP does not set it
    cell_columns = [*axes, "variant", *(["profile"] if "profile" not in axes else [])]
    columns = [*cell_columns, "seed", "verdict", "status", *METRICS, "checks", "run_dir"]
    summary_columns = [
        *cell_columns, "metric", "unit", "mean", "ci95", "n", "published", "ns2", "valid", "suspect", "void",
    ]  # fmt: skip
    return [
        write_csv(out_dir / "table.csv", columns, results.rows),
        write_csv(out_dir / "summary.csv", summary_columns, results.summary),
    ]


def collect_runs(out_dir: Path, axes: Iterable[str]) -> list[dict[str, Any]]:
    """A row of table.csv for every run below `out_dir` that matches its place and manifest, in the order of cells and seeds."""
    return _rows(out_dir, tuple(axes), find_runs(out_dir).runs)


def _rows(out_dir: Path, axes: tuple[str, ...], runs: Iterable[Path]) -> list[dict[str, Any]]:
    rows = [run_row(run_dir, out_dir, axes) for run_dir in runs]
    return sorted(rows, key=lambda row: [_sortable(row[key]) for key in ("variant", *axes, "seed")])


def counted_runs(out_dir: Path) -> list[RunDirectory]:
    """The run directories below `out_dir` that may stand in a figure, in the order of cells and seeds."""
    return [RunDirectory(out_dir / row["run_dir"]) for row in collect_runs(out_dir, ()) if counts(row)]


def rows_to_draw(out_dir: Path, command: str) -> list[dict[str, Any]]:
    """The rows of table.csv of the runs below `out_dir` that may stand in a figure. RunFileError names `command`, which makes
    them, if there is none."""
    rows = [row for row in collect_runs(out_dir, ()) if counts(row)]
    if not rows:
        raise RunFileError(f"{out_dir}: no runs that count; run the experiment first (`{command}`)")
    return rows


def standing(run: Mapping[str, Any]) -> str:
    """The class of a row of table.csv: valid, suspect or void; from the verdict, and void for a run that has none or did not
    complete."""
    if run["status"] != "complete" or run["verdict"] not in ("valid", "suspect"):
        return "void"
    return run["verdict"]


def ending(run: Mapping[str, Any]) -> str:
    """Like `standing`, but `failed` or `interrupted` for a run that ended so, unless its host was too loaded."""
    return run["status"] if run["status"] in ("failed", "interrupted") and not run["host_late"] else standing(run)


def counts(run: Mapping[str, Any]) -> bool:
    """Whether a row of table.csv may stand in a mean or a figure."""
    return standing(run) != "void"


def joined(runs: Iterable[Row], kept: Mapping[tuple[str, int], Row]) -> list[Row]:
    """The runs of a folder and its kept rows; of the same cell and seed the run, if it counts."""
    runs = list(runs)
    of_runs = {place(run): run for run in runs if counts(run)}
    others = [run for run in runs if place(run) not in of_runs and place(run) not in kept]
    return [*of_runs.values(), *others, *_beside(of_runs.keys(), kept)]


def _beside(of_runs: Collection[tuple[str, int]], kept: Mapping[tuple[str, int], Row]) -> Iterator[Row]:
    """The kept rows for which no run that counts is in the folder."""
    return (row for at, row in kept.items() if at not in of_runs)


def place(run: Row) -> tuple[str, int]:
    """Cell and seed of a row of table.csv."""
    return Path(run["run_dir"]).parts[0], run["seed"]


def summarise(rows: Iterable[Row], experiment: Experiment) -> list[dict[str, Any]]:
    """A row of summary.csv for every cell and every metric that any of its runs has; one row for a cell without runs."""
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        cells.setdefault(cell_of(row, experiment.axes), []).append(row)
    profiles = _profiles_of_cells(experiment)
    summary = []
    for values in sorted(cells | dict.fromkeys(profiles), key=lambda cell: [_sortable(value) for value in (cell[-1], *cell)]):
        runs = cells.get(values, [])
        cell = {"profile": runs[0]["profile"] if runs else profiles[values]} | dict(
            zip((*experiment.axes, "variant"), values, strict=True)
        )
        standings = {kind: sum(standing(run) == kind for run in runs) for kind in ("valid", "suspect", "void")}
        for metric, (unit, _, _) in METRICS.items():
            if metric != "acked_kbps" and all(run[metric] is None for run in runs):
                continue  # a cell of void runs still gets its row, with no mean
            summary.append(
                cell
                | {"metric": metric, "unit": unit}
                | mean_and_interval([run[metric] for run in runs if counts(run)])
                | {kind: table.value(metric, cell) if table else None for kind, table in experiment.references.items()}
                | standings
            )
    return summary


def endings_of_cells(results: Results) -> dict[tuple[Any, ...], list[str]]:
    """`5 valid`, or `3 valid`, `2 void`, `4 kept`: the number of runs of each ending, and of kept rows, in a cell that has
    any."""
    counted: defaultdict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for run in results.rows:
        counted[cell_of(run, results.experiment.axes)][ending(run)] += 1
    for row in _beside({place(run) for run in results.rows if counts(run)}, results.kept):
        counted[cell_of(row, results.experiment.axes)][KEPT] += 1
    return {cell: [f"{count[kind]} {kind}" for kind in (*ENDINGS, KEPT) if count[kind]] for cell, count in counted.items()}


def cell_of(row: Mapping[str, Any], axes: Iterable[str]) -> tuple[Any, ...]:
    """The values that distinguish the cell of a row of either table from other cells."""
    return tuple(row[key] for key in (*axes, "variant"))


def _profiles_of_cells(experiment: Experiment) -> dict[tuple[Any, ...], str]:
    """The profile of each cell that experiment.json describes in full."""
    described = [cell for cell in experiment.cells if all(axis in cell.get("axes", {}) for axis in experiment.axes)]
    return {
        (*(plain(cell["axes"][axis]) for axis in experiment.axes), cell.get("variant") or ""): cell.get("profile") or ""
        for cell in described
    }


def size_of(experiment: Mapping[str, Any]) -> str:
    """`quick` or `full`; empty for results of no experiment."""
    return "" if experiment.get("quick") is None else "quick" if experiment["quick"] else "full"


def shown_metric(summary: list[dict[str, Any]]) -> str:
    """The first metric of SHOWN that some row of the summary has a mean of."""
    measured = {row["metric"] for row in summary if row["mean"] is not None}
    return next((metric for metric in SHOWN if metric in measured), SHOWN[0])


def mean_and_interval(values: list[float | None]) -> dict[str, float | int | None]:
    """Mean, half width of the 95 % interval by Student's t (None for fewer than two values), and number of values."""
    present = [value for value in values if value is not None]
    if not present:
        return {"mean": None, "ci95": None, "n": 0}
    if len(present) == 1:
        return {"mean": present[0], "ci95": None, "n": 1}
    from scipy import special  # takes longer to import than all else here, and single runs do not need it

    quantile = float(special.stdtrit(len(present) - 1, (1 + CONFIDENCE) / 2))
    return {"mean": fmean(present), "ci95": quantile * stdev(present) / len(present) ** 0.5, "n": len(present)}


def read_summary(out_dir: Path) -> list[dict[str, Any]]:
    """summary.csv with numbers as numbers; an empty field is None."""
    path = out_dir / "summary.csv"
    if not path.exists():
        raise RunFileError(f"{path}: missing; make the tables first (analysis.tables.results.write_tables, or `manet run`)")
    with plain_text(path) as file:
        return [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(file)]


def run_row(run_dir: Path, out_dir: Path, axes: tuple[str, ...]) -> dict[str, Any]:
    """The row of table.csv of one run below `out_dir`, with `flow_metrics`, `remarks`, `host_late`, `contradicted` (a cross-check
    failed) and `emulated_s`; metrics are None if it was not measured yet."""
    run = _json(run_dir / "run.json")
    scenario = read_object(run_dir / "scenario.json")  # of a run that counts it is whole (record/found_runs.py)
    metrics = _json(run_dir / "metrics.json")
    cell = run.get("axes") or {}
    flows = metrics.get("flows", {})
    first = flows.get("flow1", {})
    failed = [check["name"].replace(" ", ":") for check in metrics.get("checks", []) if not check["ok"]]
    row = {"profile": scenario.get("profile") or ""}
    row |= {axis: plain(cell.get(axis, scenario.get(axis))) for axis in axes}
    row |= {"variant": run.get("variant") or "", "seed": run.get("seed"), "status": run.get("status", "")}
    row["host_late"] = bool(run.get("host_late"))
    verdict = _json(run_dir / verdict_file.NAME)
    row["contradicted"] = verdict_file.CHECKS in verdict
    row["verdict"], row["emulated_s"] = verdict.get("verdict", ""), verdict.get("model_ns", 0) / 1e9
    row |= {name: scaled(first.get(entry), divisor) for name, (_, entry, divisor) in FLOW_METRICS.items()}
    for name, (_, entry, divisor) in SUM_METRICS.items():
        present = [flow[entry] for flow in flows.values() if flow.get(entry) is not None]
        row[name] = sum(present) / divisor if present else None
    for name, (_, entry, divisor) in SOME_METRICS.items():
        having = [flow for flow in flows.values() if flow.get(entry) is not None]
        if name == "silence_s":  # datagrams, such as the low-rate flow beside flow 1, come first
            having.sort(key=lambda flow: flow.get("sent") is None)
        row[name] = having[0][entry] / divisor if having else None
    row |= {name: metrics.get("fairness", {}).get(kind) for name, (_, kind, _) in FAIRNESS.items()}
    row |= {name: metrics.get("kinds", {}).get(kind, {}).get(entry) for name, (_, (kind, entry), _) in OF_KINDS.items()}
    row |= {name: metrics.get("energy", {}).get(name) for name in OF_RUN}
    row["checks"] = (";".join(failed) or "ok") if metrics else "no metrics"
    row["run_dir"] = str(run_dir.relative_to(out_dir))
    row["flow_metrics"] = flows
    row["remarks"] = metrics.get("remarks", [])
    row["record"] = _record(run, scenario)
    return row


def _record(run: dict[str, Any], scenario: dict[str, Any]) -> dict[str, Any]:
    """The origin of a run: texts, empty where it did not get that far; `duration` in s and `versions` by program."""
    texts = {key: run.get(key) or "" for key in ("commit", "kernel", "started", "ended")}
    texts |= {"host": (run.get("host") or {}).get("name") or "", "clock": (run.get("clock") or {}).get("kind") or ""}
    return texts | {"duration": scenario.get("duration"), "versions": run.get("versions") or {}}


def _json(path: Path) -> dict[str, Any]:
    """A JSON object; empty if the file is missing, as in a run that failed early."""
    if not path.exists():
        return {}
    try:
        return json.loads(read_text(path))
    except ValueError as problem:
        again = "run `manet report --again`" if path.name == "metrics.json" else "move the run out of the results"
        raise RunFileError(f"{path}: not JSON ({problem}); {again}") from None


def write_csv(path: Path, columns: list[str], rows: Iterable[Row]) -> Path:
    """Write a table with these columns; returns its path."""
    with atomic_file(path) as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: f"{row[key]:.6g}" if isinstance(row[key], float) else row[key] for key in columns} for row in rows)
    return path


def _number(text: str) -> float | str | None:
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def plain(value: Any) -> Any:
    """The value of an axis as a row has it: a table or list as JSON."""
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value


def scaled(value: float | None, divisor: float) -> float | None:
    """The value in the unit that a table has; None for none."""
    return None if value is None else value / divisor


def _sortable(value: Any) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))
