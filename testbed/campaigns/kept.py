"""Runs that are kept as rows (analysis/tables/kept_rows.py): those that a campaign counts as done, and how runs are kept.

docs/results/<experiment>/runs.csv of the checkout has the rows of all machines. Experiments share scenarios: plain Reno of one
figure is that of the next. A campaign copies the rows that count, of whichever experiment, into its folder (kept.csv), from which
its answers follow, whatever happens to the checkout meanwhile.
"""

import ast
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from record.files import read_object, write_atomic
from scenarios.identity import identity
from scenarios.scenario import Scenario
from testbed.campaigns.experiment import Experiment, load
from testbed.campaigns.figures import FIGURES
from testbed.campaigns.library import find, names
from testbed.campaigns.request import Request
from testbed.errors import UsageError
from testbed.programs import ROOT

if TYPE_CHECKING:  # importing it imports Polars, which most verbs do not need
    from analysis.tables.kept_rows import KeptRow

FOLDER = ROOT / "docs" / "results"
COMMON = ("acked_kbps", "expected_kbps", "percent")  # where measured; other experiments have the same scenarios
Runs = list[dict[str, Any]]


def file_of(experiment: str, folder: Path = FOLDER) -> Path:
    """The file of an experiment's rows."""
    from analysis.tables.kept_rows import FILE

    return folder / experiment / FILE


@dataclass(frozen=True)
class SortedRows:
    """The rows of an experiment. `rows` count as done. `others`: how many do not, by the reason. `not_valid`: those of them whose
    verdict is not valid."""

    rows: "list[KeptRow]"
    others: Mapping[str, int]
    not_valid: "list[KeptRow]"

    def line(self, experiment: str) -> str:
        """One line about the rows; empty without any."""
        parts = [f"{len(self.rows)} kept {'row counts' if len(self.rows) == 1 else 'rows count'} as done"] if self.rows else []
        parts += [f"{count} {reason}" for reason, count in sorted(self.others.items())]
        return f"{experiment}: {'; '.join(parts)} (docs/results/{experiment}/runs.csv)" if parts else ""


def rows_that_count(experiment: Experiment, rows: "Iterable[KeptRow]") -> SortedRows:
    """The rows of the experiment's scenarios with a valid verdict and all metrics that its questions need."""
    identities, needed = {cell.identity for cell in experiment.cells}, {question.metric for question in experiment.questions}
    counted, not_valid, others = [], [], Counter[str]()
    for row in rows:
        if row.scenario not in identities:
            others["of another scenario or size (count for nothing)"] += 1
        elif row.verdict != "valid":
            others["not valid (run again)"] += 1
            not_valid.append(row)
        elif not needed <= row.metrics.keys():
            others["without a metric of the questions (run again)"] += 1
        else:
            counted.append(row)
    return SortedRows(counted, others, not_valid)


def rows_of(experiment: Experiment, folder: Path = FOLDER) -> SortedRows:
    """The rows of the experiment that count as done: those of its own file, and those that other experiments have of the same
    scenarios and seeds."""
    from analysis.tables.kept_rows import FILE, VARIANT, merged
    from analysis.tables.results import plain

    file = file_of(experiment.name, folder)
    own = rows_that_count(experiment, _read(file))
    elsewhere = [row for path in sorted(folder.glob(f"*/{FILE}")) if path != file for row in _read(path)]
    cells = {
        cell.identity: {VARIANT: cell.variant or ""} | {axis: str(plain(cell.axes.get(axis))) for axis in experiment.axes}
        for cell in experiment.cells
    }
    shared, has = rows_that_count(experiment, elsewhere), {row.key for row in own.rows}
    counted = merged(own.rows, [replace(row, cell=cells[row.scenario]) for row in shared.rows if row.key not in has])
    done = {row.key for row in counted}
    not_valid = merged(row for row in [*own.not_valid, *shared.not_valid] if row.key not in done)
    return SortedRows(counted, own.others, not_valid)


def _read(path: Path) -> "tuple[KeptRow, ...]":
    """The rows of a file. Each experiment looks into the files of all others, so a file is read again only if it changed."""
    if not path.exists():
        return ()
    status = path.stat()
    return _read_at(path, (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=256)
def _read_at(path: Path, _state: tuple[int, int]) -> "tuple[KeptRow, ...]":
    from analysis.tables.kept_rows import read

    return tuple(read(path))


def lay_out(experiment: Experiment, directory: Path, folder: Path = FOLDER) -> SortedRows:
    """Copy the rows that count into the experiment's folder of results; rows of an earlier call stay."""
    from analysis.tables.kept_rows import KEPT, merged, read, write

    kept_rows = rows_of(experiment, folder)
    before = rows_that_count(experiment, read(directory / KEPT))
    if kept_rows.rows or before.rows:
        write(directory / KEPT, merged(before.rows, kept_rows.rows))
    return kept_rows


def is_folder_of_rows(directory: Path) -> bool:
    """Whether a folder has rows, and no runs: docs/results/NAME."""
    from analysis.tables.kept_rows import FILE

    with suppress(OSError):  # a name too long for a file
        return (directory / FILE).is_file() and not (directory / "experiment.json").exists()
    return False


def without_runs(rows: Path, results: Path) -> Path:
    """Make a folder of results that has the kept rows of an experiment, docs/results/NAME, and no run: `results`/NAME-rows. Its
    size is the one that has more rows. UsageError without any that counts. The folder asks for no seed: its rows are those that
    were kept, however many its campaign needed, so none is missing."""
    from analysis.tables.kept_rows import KEPT, merged, write

    if rows.name not in names():
        raise UsageError(f"{rows}: {rows.name} is no experiment of this checkout; rows are kept of those in experiments/ only")
    sizes = [load(find(rows.name), Request(quick)) for quick in (True, False)]
    experiment, counted = max(((size, rows_of(size, rows.parent)) for size in sizes), key=lambda size: len(size[1].rows))
    if not counted.rows:
        raise UsageError(f"{rows}: no row counts for an experiment of today; run it: ./manet campaign {rows.name} --quick")
    directory = results / f"{rows.name}-rows"
    directory.mkdir(parents=True, exist_ok=True)
    write_atomic(directory / "experiment.json", replace(experiment, seeds=0).to_json())
    write(directory / KEPT, merged(counted.rows, counted.not_valid))
    return directory


def keep(directory: Path, description: Mapping[str, Any], runs: Runs, folder: Path = FOLDER) -> tuple[Path, int, int]:
    """Merge the runs of a folder of results (rows of table.csv) into the rows of its experiment; returns the file, the number of
    its rows, and how many of them are new."""
    from analysis.tables.kept_rows import merged, read, row_of_run, write
    from analysis.tables.results import place

    axes, metrics = list(description["axes"]), metrics_of(description, runs)
    sums = {cell["name"]: cell.get("identity") for cell in description["cells"]}
    fresh = []
    for run in runs:
        cell, _ = place(run)
        sums[cell] = sums.get(cell) or _identity_of(directory / run["run_dir"])
        if row := row_of_run(run, sums[cell], axes, metrics):
            fresh.append(row)
    path = file_of(description["name"], folder)
    before = read(path)
    after = merged(before, fresh)
    write(path, after)
    return path, len(after), len({row.key for row in after} - {row.key for row in before})


def metrics_of(description: Mapping[str, Any], runs: Runs) -> list[str]:
    """The metrics that rows keep: those of the questions and checks, what the experiment shows, and of the figure's those that
    some run has; without any, those of the whole."""
    from analysis.tables.results import METRICS, SHOWN

    named = {question["metric"] for question in description.get("questions", ())} | set(description.get("shown", ()))
    named |= {check["metric"] for check in (description.get("expect") or {}).get("checks", ())}
    named |= {name for name in COMMON for run in runs if run[name] is not None}
    figure = description.get("figure")
    drawn = _metrics_in(figure) if figure else frozenset(SHOWN)
    measured = {name for run in runs for name in (*drawn, *SHOWN) if run[name] is not None}
    chosen = named | (drawn & measured)
    return [name for name in METRICS if name in (chosen or set(SHOWN) & measured)]


@cache
def _metrics_in(figure: str) -> frozenset[str]:
    """The metrics that a figure's module names; read as text, because importing it takes as long as matplotlib."""
    from analysis.tables.results import METRICS

    tree = ast.parse((FIGURES / f"{figure}.py").read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(texts & METRICS.keys())


def _identity_of(run: Path) -> str:
    """Compute the identity of a run whose experiment.json has none, being older."""
    try:
        return identity(Scenario.from_json(json.dumps(read_object(run / "scenario.json"))))
    except ValidationError:
        raise UsageError(f"{run}/scenario.json: is of another version of this project; run it again to keep it") from None
