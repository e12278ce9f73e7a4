"""The numbers of the claims: computed from kept rows (docs/results/NAME/runs.csv), else from committed tables of means."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from analysis.decisions.answers import Answered, answers_of
from analysis.decisions.question import VARIANT
from analysis.digits import rounded
from analysis.files import plain_text
from analysis.kept_rows import read
from analysis.references import same_value
from analysis.tables import counts, mean_and_interval, plain
from testbed.campaigns import kept
from testbed.campaigns.experiment import load
from testbed.campaigns.library import find
from testbed.campaigns.request import Request
from testbed.claims.source import Answer, Mean, Number, Pair, Source
from testbed.errors import UsageError

ROWS, TABLES, NONE = "rows", "tables", "none"  # sources of a number
MIN_PAIRS = 2  # an interval needs two
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
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


@dataclass
class Numbers:
    """The numbers by the results in a folder, docs/results of the checkout."""

    folder: Path = kept.FOLDER
    load: Callable[[str, str], Sized] = field(init=False)

    def __post_init__(self) -> None:
        self.load = cache(self._load)

    def find(self, number: Number) -> Found | None:
        """The texts of a number; None without rows and table. UsageError for a place that the experiment has not."""
        sized = self.load(number.experiment, number.size)
        if isinstance(number, Answer):
            return _answer(number, sized)
        return self._mean(number, sized) if isinstance(number, Mean) else self._pair(number, sized)

    def _load(self, name: str, size: str) -> Sized:
        experiment = load(find(name), Request(quick=size == "quick"))
        values = {
            cell.identity: {axis: plain(cell.axes.get(axis)) for axis in experiment.axes} | {VARIANT: cell.variant}
            for cell in experiment.cells
        }
        rows = read(kept.file_of(name, self.folder))
        runs = [row.as_run(values[row.scenario]) for row in rows if row.scenario in values]
        answers = answers_of(json.loads(experiment.to_json()), runs)
        return Sized(tuple(experiment.axes), tuple(values.values()), runs, answers)

    def _mean(self, number: Mean, sized: Sized) -> Found | None:
        found = mean_and_interval([run[number.mean] for run in _counted(sized, number.where)])
        if found["n"]:
            _require_one(number, [cell for cell in sized.cells if _agrees(cell, number.where)], "cells")
            return _of_mean(number, found["mean"], found["ci95"], found["n"], ROWS)
        row = next((row for row in self._table(number, number.where) if row["metric"] == number.mean and row["mean"]), None)
        if row is None:
            _require_one(number, [cell for cell in sized.cells if _agrees(cell, number.where)], "cells")
            return None
        return _of_mean(number, _number(row["mean"]), _number(row["ci95"]), _number(row["n"]), TABLES)

    def _pair(self, number: Pair, sized: Sized) -> Found | None:
        wanted = [{**number.where, number.key: value} for value in (number.compared, number.base)]
        places = [key for key in (*sized.axes, VARIANT) if key != number.key]
        where = " ".join(str(plain(number.where[key])) for key in places if number.where.get(key) not in (None, ""))
        compared, base = ({run["seed"]: run[number.pair] for run in _counted(sized, cell)} for cell in wanted)
        both = [(value, base[seed]) for seed, value in compared.items() if value is not None and base.get(seed) is not None]
        if len(both) >= MIN_PAIRS:
            self._require_cells(number, wanted, sized)
            found, mean = mean_and_interval([one - other for one, other in both]), fmean(other for _, other in both)
            percent = 100 * found["mean"] / mean if found["mean"] is not None and mean else None
            return _of_pair(number, found["mean"], found["ci95"], percent, found["n"], ROWS)
        asked = {"where": where, "compared": number.compared, "with": number.base, "metric": number.pair}
        for row in self._table(number, asked):
            if row.get("ci95"):
                difference, ci95, percent, seeds = (_number(row[key]) for key in ("difference", "ci95", "percent", "seeds"))
                return _of_pair(number, difference, ci95, percent, seeds, TABLES)
        self._require_cells(number, wanted, sized)
        return None

    def _require_cells(self, number: Pair, wanted: list[dict[str, Any]], sized: Sized) -> None:
        for cell in wanted:
            _require_one(number, [known for known in sized.cells if _agrees(known, cell)], "cells")

    def _table(self, number: Mean | Pair, wanted: Row) -> Iterator[dict[str, str]]:
        """The rows of the number's table that have these values."""
        path = self.folder / number.experiment / number.table
        if path.exists():
            with plain_text(path) as file:
                for row in csv.DictReader(file):
                    if all(same_value(row.get(key, ""), plain(value)) for key, value in wanted.items()):
                        yield row


def _answer(number: Answer, sized: Sized) -> Found | None:
    asked = [each for each in sized.answers if each.asked.question.question == number.question]
    found = _require_one(
        number, [each for each in asked if _agrees(each.asked.where, number.where)], f'questions "{number.question}"'
    )
    answer = found.answer
    if answer.pairs < MIN_PAIRS or found.means is None or answer.mean is None:
        return None
    low, high = _text(number, answer.low, "+"), _text(number, answer.high, "+")
    forms = {
        "": f"{_text(number, answer.mean, '+')} [{low}, {high}]",
        "answer": found.verdict,
        "pairs": str(answer.pairs),
        "end": f"{answer.pairs} pairs" + (f"; some {answer.needed} would decide" if answer.needed else ""),
        "compared": _text(number, found.means[0]),
        "with": _text(number, found.means[1]),
        "percent": f"{100 * answer.mean / found.means[1]:+.0f} %" if found.means[1] else "",
    }
    return Found(forms, ROWS)


def _of_mean(number: Mean, mean: float | None, ci95: float | None, runs: float | None, source: str) -> Found:
    usual = _text(number, mean)
    lost = "" if mean is None else f"{100 * (1 - mean):.0f}"
    return Found({"": usual, "interval": f"{usual} ±{_text(number, ci95)}", "lost": lost, "runs": f"{runs:.0f}"}, source)


def _of_pair(
    number: Pair, difference: float | None, ci95: float | None, percent: float | None, seeds: float | None, source: str
) -> Found:
    relative = "" if percent is None else f"{percent:+.0f} %"
    usual = f"{_text(number, difference, '+')} ±{_text(number, ci95)}"
    return Found({"": usual, "percent": relative, "pairs": f"{seeds:.0f}"}, source)


def _text(number: Source, value: float | None, sign: str = "") -> str:
    if value is None or number.digits is None:
        return rounded(None if value is None else number.scale * value, sign)
    return f"{number.scale * value:{sign}.{number.digits}f}"


def _require_one(number: Source, found: list[Any], what: str) -> Any:
    if len(found) != 1:
        text = f"claims.toml: {number.experiment} ({number.size}) has {len(found)} {what} where {number.where}; name one"
        raise UsageError(text)
    return found[0]


def _counted(sized: Sized, where: Row) -> list[dict[str, Any]]:
    """The runs there that may stand in a mean."""
    return [run for run in sized.runs if counts(run) and _agrees(run, where)]


def _agrees(cell: Row, where: Row) -> bool:
    return all(cell.get(key) == plain(value) for key, value in where.items())


def _number(text: str) -> float | None:
    return float(text) if text else None
