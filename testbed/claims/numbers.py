"""The numbers of the claims: computed from kept rows (docs/results/NAME/runs.csv), else from committed tables of means.

The rows are those that a campaign of the experiment would count as done, so its answers are those of the page.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from analysis.decisions.answers import Answered, answers_of
from analysis.decisions.pairs import pairs
from analysis.decisions.question import VARIANT
from analysis.references import same_value
from analysis.tables.digits import rounded
from analysis.tables.results import counts, mean_and_interval, plain
from record.files import plain_text
from testbed.campaigns import kept
from testbed.campaigns.experiment import load
from testbed.campaigns.library import find
from testbed.campaigns.request import Request
from testbed.claims.source import Asked, Level, Mean, Number, Pair, Selection, Size
from testbed.errors import UsageError

ROWS, TABLES, NONE = "rows", "tables", "none"  # sources of a number
Row = Mapping[str, Any]


@dataclass(frozen=True)
class NumberText:
    """The texts of a number by form ("" is the usual one), and its source."""

    forms: Mapping[str, str]
    source: str


@dataclass(frozen=True)
class Sized:
    """An experiment at a size, with its kept rows as rows of table.csv."""

    axes: tuple[str, ...]
    cells: tuple[Row, ...]
    runs: list[dict[str, Any]]
    answers: list[Answered]

    def counted(self, where: Row) -> list[dict[str, Any]]:
        """The runs there that may stand in a mean."""
        return [run for run in self.runs if counts(run) and agrees(run, where)]


@dataclass
class Numbers:
    """The numbers by the results in a folder, docs/results of the checkout."""

    folder: Path = kept.FOLDER
    load: Callable[[str, Size], Sized] = field(init=False)

    def __post_init__(self) -> None:
        self.load = cache(self._load)

    def sized(self, selection: Selection) -> Sized:
        """The experiment of a selection."""
        return self.load(selection.experiment, selection.size)

    def find(self, number: Number) -> NumberText | None:
        """The texts of a number; None without rows and table. UsageError for cells that the experiment lacks."""
        return self._mean(number) if isinstance(number, Mean) else self._pair(number)

    def _load(self, name: str, size: Size) -> Sized:
        experiment = load(find(name), Request(quick=size == "quick"))
        values = {
            cell.identity: {axis: plain(cell.axes.get(axis)) for axis in experiment.axes} | {VARIANT: cell.variant or ""}
            for cell in experiment.cells
        }
        rows = kept.rows_of(experiment, self.folder)
        runs = [row.as_run(values[row.scenario]) for row in (*rows.rows, *rows.not_valid)]
        answers = answers_of(json.loads(experiment.to_json()), runs)
        return Sized(tuple(experiment.axes), tuple(values.values()), runs, answers)

    def _mean(self, number: Mean) -> NumberText | None:
        self.require_cell(number, number.where)
        spread = mean_and_interval([run[number.mean] for run in self.sized(number).counted(number.where)])
        source = ROWS
        if not spread["n"]:
            row = self.mean_of_table(number, number.where, number.mean)
            if row is None:
                return None
            spread, source = {name: float(row[name]) if row[name] else None for name in ("mean", "ci95", "n")}, TABLES
        usual = _text(number, spread["mean"])
        interval = f" ±{_text(number, spread['ci95'])}" if spread["ci95"] is not None else ""
        return NumberText({"": usual, "interval": f"{usual}{interval}", "runs": f"{spread['n']:.0f}"}, source)

    def _pair(self, number: Pair) -> NumberText | None:
        sized = self.sized(number)
        for value in (number.compared, number.base):
            self.require_cell(number, {**number.where, number.key: value})
        runs = sized.counted(number.where)
        answered = pairs(runs, sized.axes, number.key, str(number.base), (number.pair,), (str(number.compared),), sized.answers)
        if answered and answered[0].answer.low is not None:
            pair, source = answered[0], ROWS
            difference, low, high, percent, seeds = pair.difference, pair.answer.low, pair.answer.high, pair.percent, pair.seeds
        else:
            row = self.pair_of_table(number, sized.axes, number.key, number.compared, number.base, number.pair, number.table)
            if row is None:
                return None
            difference, low, high = row
            percent, seeds, source = None, 0, TABLES
        usual = f"{_text(number, difference, '+')} [{_text(number, low, '+')}, {_text(number, high, '+')}]"
        return NumberText({"": usual, "percent": "" if percent is None else f"{percent:+.0f} %", "pairs": f"{seeds}"}, source)

    def mean_of_table(self, chosen: Mean | Level | Asked, where: Row, metric: str) -> dict[str, str] | None:
        """The row of a cell and metric in the committed table that the selection names, if any."""
        if not chosen.table:
            return None
        rows = self._rows(chosen.experiment, chosen.table, {**where, "metric": metric})
        return next((row for row in rows if row["mean"]), None)

    def pair_of_table(
        self, chosen: Selection, axes: tuple[str, ...], key: str, compared: Any, base: Any, metric: str, table: str
    ) -> tuple[float, float, float] | None:
        """A difference of the committed table, with the ends of its interval; None without an interval."""
        keys = [name for name in (*axes, VARIANT) if name != key]
        where = " ".join(str(plain(chosen.where[name])) for name in keys if chosen.where.get(name) not in (None, ""))
        for row in self._rows(chosen.experiment, table, {"where": where, "compared": compared, "with": base, "metric": metric}):
            difference = float(row["difference"])
            if row.get("ci95"):  # of before intervals had two ends
                return difference, difference - float(row["ci95"]), difference + float(row["ci95"])
            if row.get("low") and row.get("high"):
                return difference, float(row["low"]), float(row["high"])
        return None

    def _rows(self, experiment: str, table: str, values: Row) -> Iterator[dict[str, str]]:
        """The rows of a committed table that have these values."""
        path = self.folder / experiment / table
        if path.exists():
            with plain_text(path) as file:
                for row in csv.DictReader(file):
                    if all(same_value(row.get(key, ""), plain(value)) for key, value in values.items()):
                        yield row

    def require_cell(self, selection: Selection, where: Row) -> None:
        """UsageError unless these values are of one cell."""
        cells = [cell for cell in self.sized(selection).cells if agrees(cell, where)]
        if len(cells) != 1:
            text = f"claims.toml: {selection.experiment} ({selection.size}) has {len(cells)} cells where {dict(where)}; name one"
            raise UsageError(text)


def agrees(cell: Row, where: Row) -> bool:
    """Whether a cell has these values of axes and variant."""
    return all(cell.get(key) == plain(value) for key, value in where.items())


def _text(number: Number, value: float | None, sign: str = "") -> str:
    if value is None or number.digits is None:
        return rounded(None if value is None else number.scale * value, sign)
    return f"{number.scale * value:{sign}.{number.digits}f}"
