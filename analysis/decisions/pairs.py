"""Cells compared seed by seed: two values of one key (an axis or the variant), with all other keys equal.

All cells of a seed have the same movement and random streams, so effects that both have cancel in the difference. Its mean over
the seeds has the interval of the campaigns' rule (analysis/decisions/rule.py). A comparison that a question of the experiment
asks has the question's answer: its pairs, interval and outcome. Any other is a single look at all its pairs. Intervals are not
corrected for the number of comparisons: of twenty without any effect one is expected to be called a difference.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from analysis.decisions.answers import Answered
from analysis.decisions.rule import Answer, Outcome, collapses, comparison
from analysis.tables.results import METRICS, Row, counts
from record.files import atomic_file

VARIANT = "variant"
COLUMNS = (
    "where", "compared", "with", "metric", "unit", "seeds", "mean", "mean_with", "difference", "low", "high", "method", "percent",
    "outcome",
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """`compared` minus `base` in a cell with the other keys `where`: `by_seed`, in the order of the seeds that count in both, and
    their mean `difference` with its interval, by the rule (`answer`); no interval for a single seed."""

    where: str
    compared: str
    base: str
    metric: str
    mean: float
    mean_base: float
    by_seed: tuple[float, ...]
    answer: Answer

    @property
    def seeds(self) -> int:
        """Number of seeds that count in both cells; of those, with a question the ones until its answer."""
        return len(self.by_seed)

    @property
    def difference(self) -> float:
        """Mean over the seeds."""
        return fmean(self.by_seed)

    @property
    def outcome(self) -> str:
        """`more`, `less`, `no difference that matters` (only with a question) or `undecided`."""
        return str(self.answer.outcome)

    @property
    def method(self) -> str | None:
        """How the interval was found."""
        return None if self.answer.method is None else str(self.answer.method)

    @property
    def percent(self) -> float | None:
        """The difference in percent of the base's mean; None if that is zero."""
        return 100 * self.difference / self.mean_base if self.mean_base else None


def pairs(
    rows: Iterable[Row],
    axes: Sequence[str],
    key: str,
    base: str,
    metrics: Iterable[str],
    compared: Sequence[str] | None = None,
    answers: Iterable[Answered] = (),
) -> list[Pair]:
    """Every value of `key` (or only `compared`) with its value `base`, for each metric and each combination of the other keys.
    `rows`: of the runs (kept_rows.rows_in), with the `axes` of the experiment. Only seeds that count in both cells enter.
    `answers`: to the questions of the experiment."""
    known = {_place(each, axes): each.answer for each in answers if isinstance(each.asked.base, dict)}
    keys = [name for name in (*axes, VARIANT) if name != key]
    by_place: dict[tuple[str, ...], dict[str, dict[int, Row]]] = {}
    for run in rows:
        if counts(run):
            where = tuple(str(run[name]) for name in keys)
            by_place.setdefault(where, {}).setdefault(str(run[key]), {})[run["seed"]] = run
    compared_pairs = []
    for where, by_value in by_place.items():
        for value, runs in by_value.items():
            if value == base or base not in by_value or (compared is not None and value not in compared):
                continue
            compared_pairs += [
                pair
                for metric in metrics
                if (pair := _pair(where, value, base, metric, runs, by_value[base], known.get((key, where, value, base, metric))))
            ]
    return compared_pairs


def _place(each: Answered, axes: Sequence[str]) -> tuple[str, tuple[str, ...], str, str, str]:
    """The place of a question: the key compared, the values of the others, both values of the key, and the metric."""
    key, cell = each.asked.question.key, each.asked.compared
    assert isinstance(each.asked.base, dict)
    where = tuple(str(cell.get(name, "")) for name in (*axes, VARIANT) if name != key)
    return key, where, str(cell[key]), str(each.asked.base[key]), each.asked.question.metric


def _pair(
    where: tuple[str, ...], value: str, base: str, metric: str, runs: dict[int, Row],
    base_runs: dict[int, Row], asked: Answer | None,
) -> Pair | None:  # fmt: skip
    both = [
        (run[metric], base_runs[seed][metric])
        for seed, run in sorted(runs.items())
        if seed in base_runs and run[metric] is not None and base_runs[seed][metric] is not None
    ]
    if not both:
        return None
    if asked is not None and asked.pairs:
        both = both[: asked.pairs]  # later seeds do not change an answer
    by_seed = tuple(one - other for one, other in both)
    answer = asked if asked is not None and asked.pairs else comparison(by_seed, collapses(both))
    if asked is not None and not asked.pairs:
        answer = replace(answer, outcome=Outcome.UNDECIDED)  # the question's first look is yet to come
    means = (fmean(one for one, _ in both), fmean(other for _, other in both))
    return Pair(" ".join(filter(None, where)), value, base, metric, *means, by_seed, answer)


def write_pairs(path: Path, differences: Iterable[Pair]) -> Path:
    """A row for each pair; returns the path."""
    with atomic_file(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for pair in differences:
            numbers = (pair.mean, pair.mean_base, pair.difference, pair.answer.low, pair.answer.high)
            unit = METRICS[pair.metric][0]
            writer.writerow([
                pair.where, pair.compared, pair.base, pair.metric, unit, pair.seeds,
                *map(_digits, numbers), pair.method or "", _digits(pair.percent), pair.outcome,
            ])  # fmt: skip
    return path


def _digits(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
