"""Runs that are kept as rows: docs/results/<experiment>/runs.csv (formats/kept-rows.md), a row per run, without its files.

CSV and not Parquet: a change shows as lines, git merges the rows of two machines line by line, and in a repository it is smaller.
Git deflates 400 rows of hv-fig3 to 9.6 kB; their Parquet file (zstd) has 15.2 kB, and git keeps each version of it whole. Rows
have one order, so that the same runs give the same bytes.

A row is known by the identity of its scenario (scenarios/identity.py) and its seed. Of two runs of both, such as those of two
machines, the one with the better verdict stays, then the one that ended first: a row that is kept is never replaced by chance.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.tables.results import METRICS, Row, collect_runs, ending, joined, plain
from record.errors import RunFileError
from record.files import atomic_file, plain_text, read_object

FILE = "runs.csv"
KEPT = "kept.csv"  # in an experiment's folder of results: the rows that its campaign counts as done
VARIANT = "variant"
ENDINGS = ("valid", "suspect", "void", "failed")  # the best first; an interrupted run has no row
NONE = "NA"  # the run has no value; an empty field: the value was not kept
ORIGIN = ("commit", "version", "kernel", "ended")
FIRST = ("scenario", "seed", "verdict", *ORIGIN, "emulated_s")
REMEDY = "take it from git again"


@dataclass(frozen=True)
class KeptRow:
    """A row. `cell`: texts of variant and axes, for people; `metrics`: None for one that the run does not have."""

    scenario: str
    seed: int
    verdict: str
    cell: Mapping[str, str]
    metrics: Mapping[str, float | None]
    emulated_s: float = 0.0
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """The key of a run: its scenario and seed."""
        return self.scenario, self.seed

    @property
    def rank(self) -> tuple[int, str]:
        """The order among rows of one key: the best verdict, then the first end."""
        return ENDINGS.index(self.verdict), self.origin.get("ended", "")

    def as_run(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        """The row as one of table.csv, in the cell with these values of axes and variant. One that is not valid says that its run
        has ended, and counts in nothing."""
        run = dict.fromkeys(METRICS) | dict(self.metrics) | dict(cell)
        status = "complete" if self.verdict == "valid" else "failed"
        return run | {
            "seed": self.seed, "status": status, "verdict": self.verdict, "host_late": False, "emulated_s": self.emulated_s,
        }  # fmt: skip


def row_of_run(run: Mapping[str, Any], scenario: str, axes: Iterable[str], metrics: Iterable[str]) -> KeptRow | None:
    """The row of a run, a row of table.csv with its `record`; None for one that was interrupted."""
    verdict = ending(run)
    if verdict not in ENDINGS:
        return None
    record = run["record"]
    origin = {
        "commit": record["commit"][:12] + ("+" if record["commit"].endswith("+") else ""),
        "version": (record["versions"].get("manet-medium") or "").removeprefix("manet-medium "),
        "kernel": record["kernel"],
        "ended": record["ended"],
    }
    cell = {key: str(plain(run[key])) for key in (VARIANT, *axes)}
    values = {name: run[name] for name in metrics}
    return KeptRow(scenario, run["seed"], verdict, cell, values, run["emulated_s"], origin)


def read(path: Path) -> list[KeptRow]:
    """The rows of a file, none without it. RunFileError for a file that is damaged, such as by a merge."""
    if not path.exists():
        return []
    with plain_text(path) as file:
        reader = csv.DictReader(file, strict=True)
        names = reader.fieldnames or []
        missing = [name for name in FIRST if name not in names]
        if missing:
            raise RunFileError(f'{path}: has no column "{missing[0]}"; {REMEDY}')
        rows = []
        try:
            for row in reader:
                rows.append(_read_row(row))
        except (ValueError, KeyError, TypeError, csv.Error):
            raise RunFileError(f"{path}, line {reader.line_num}: is no row of a run; {REMEDY}") from None
    return rows


def merged(*groups: Iterable[KeptRow]) -> list[KeptRow]:
    """One row for each scenario and seed, in the file's order. Of the same run, the row of the later group, which may have more
    metrics."""
    best: dict[tuple[str, int], KeptRow] = {}
    for row in (row for group in groups for row in group):
        before = best.get(row.key)
        if before is None or row.rank <= before.rank:
            best[row.key] = row
    return sorted(best.values(), key=lambda row: ([_in_order(text) for text in row.cell.values()], row.scenario, row.seed))


def write(path: Path, rows: Sequence[KeptRow]) -> None:
    """Write the rows (of `merged`)."""
    cells = dict.fromkeys(key for row in rows for key in row.cell)
    known = {name for row in rows for name in row.metrics}
    metrics = [name for name in METRICS if name in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*FIRST, *cells, *metrics])
        for row in rows:
            writer.writerow([
                row.scenario, row.seed, row.verdict, *(row.origin.get(name, "") for name in ORIGIN), f"{row.emulated_s:.1f}",
                *(row.cell.get(key, "") for key in cells),
                *(_text(row.metrics[name]) if name in row.metrics else "" for name in metrics),
            ])  # fmt: skip


def runs_in(directory: Path, description: Mapping[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    """The kept rows of a folder of results as rows of table.csv, by cell and seed; of the scenarios of experiment.json only."""
    cells = {cell["identity"]: cell for cell in description["cells"] if cell.get("identity")}
    found = {}
    for row in read(directory / KEPT):
        cell = cells.get(row.scenario)
        if cell is not None:
            values = {axis: plain(cell["axes"].get(axis)) for axis in description["axes"]}
            columns = {"profile": cell.get("profile") or ""} | values | {VARIANT: cell["variant"] or ""}
            found[cell["name"], row.seed] = row.as_run(columns)
    return found


def rows_in(directory: Path, axes: Iterable[str]) -> list[Row]:
    """The runs of a folder of results and its kept rows, as rows of table.csv: those that its answers follow from."""
    runs = collect_runs(directory, axes)
    if not (directory / KEPT).exists():
        return list(runs)
    return joined(runs, runs_in(directory, read_object(directory / "experiment.json")))


def _read_row(row: Mapping[str, str]) -> KeptRow:
    if row["verdict"] not in ENDINGS or not row["scenario"]:
        raise ValueError(row["verdict"])
    metrics = {name: None if text == NONE else float(text) for name, text in row.items() if name in METRICS and text != ""}
    cell = {name: text for name, text in row.items() if name not in METRICS and name not in FIRST}
    if None in row or None in cell.values():  # more fields, or fewer, than columns
        raise ValueError("fields")
    origin = {name: row[name] for name in ORIGIN}
    return KeptRow(row["scenario"], int(row["seed"]), row["verdict"], cell, metrics, float(row["emulated_s"]), origin)


def _text(value: float | None) -> str:
    return NONE if value is None else f"{value:.6g}"


def _in_order(text: str) -> tuple[int, float, str]:
    try:
        return 0, float(text), ""
    except ValueError:
        return 1, 0.0, text
