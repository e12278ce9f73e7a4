"""Cells compared seed by seed: two values of one key (an axis or the variant), with all other keys equal.

All cells of a seed have the same movement and random streams, so effects that both have cancel in the difference. Its mean over
the seeds has a 95 % interval by Student's t; a difference whose interval includes zero is undecided. Intervals are not corrected
for the number of comparisons: of twenty without any effect one is expected to be called a difference.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from analysis.files import atomic_file
from analysis.tables import METRICS, counts, mean_and_interval

VARIANT = "variant"
COLUMNS = (
    "where", "compared", "with", "metric", "unit", "seeds", "mean", "mean_with", "difference", "ci95", "percent", "outcome",
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """`compared` minus `base` in a cell with the other keys `where`: `by_seed`, in the order of the seeds that count in both, and
    their mean `difference`. `ci95` is None for a single seed."""

    where: str
    compared: str
    base: str
    metric: str
    mean: float
    mean_base: float
    by_seed: tuple[float, ...]
    ci95: float | None

    @property
    def seeds(self) -> int:
        """Number of seeds that count in both cells."""
        return len(self.by_seed)

    @property
    def difference(self) -> float:
        """Mean over the seeds."""
        return fmean(self.by_seed)

    @property
    def outcome(self) -> str:
        """`more`, `less` or `undecided`."""
        if self.ci95 is None or abs(self.difference) <= self.ci95:
            return "undecided"
        return "more" if self.difference > 0 else "less"

    @property
    def percent(self) -> float | None:
        """The difference in percent of the base's mean; None if that is zero."""
        return 100 * self.difference / self.mean_base if self.mean_base else None


def pairs(
    rows: Iterable[dict[str, Any]],
    axes: Sequence[str],
    key: str,
    base: str,
    metrics: Iterable[str],
    compared: Sequence[str] | None = None,
) -> list[Pair]:
    """Every value of `key` (or only `compared`) with its value `base`, for each metric and each combination of the other keys.
    `rows`: of the runs (collect_runs), with the experiment's `axes`. Only seeds that count in both cells enter."""
    keys = [name for name in (*axes, VARIANT) if name != key]
    found: dict[tuple[str, ...], dict[str, dict[int, dict[str, Any]]]] = {}
    for run in rows:
        if counts(run):
            where = tuple(str(run[name]) for name in keys)
            found.setdefault(where, {}).setdefault(str(run[key]), {})[run["seed"]] = run
    answer = []
    for where, by_value in found.items():
        for value, runs in by_value.items():
            if value == base or base not in by_value or (compared is not None and value not in compared):
                continue
            answer += [
                pair
                for metric in metrics
                if (pair := _pair(" ".join(filter(None, where)), value, base, metric, runs, by_value[base]))
            ]
    return answer


def _pair(
    where: str, value: str, base: str, metric: str, runs: dict[int, dict[str, Any]], base_runs: dict[int, dict[str, Any]]
) -> Pair | None:
    both = [
        (run[metric], base_runs[seed][metric])
        for seed, run in sorted(runs.items())
        if seed in base_runs and run[metric] is not None and base_runs[seed][metric] is not None
    ]
    if not both:
        return None
    by_seed = tuple(one - other for one, other in both)
    means = (fmean(one for one, _ in both), fmean(other for _, other in both))
    return Pair(where, value, base, metric, *means, by_seed, mean_and_interval(list(by_seed))["ci95"])


def write_pairs(path: Path, found: Iterable[Pair]) -> Path:
    """A row for each pair; returns the path."""
    with atomic_file(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for pair in found:
            numbers = (pair.mean, pair.mean_base, pair.difference, pair.ci95, pair.percent)
            unit = METRICS[pair.metric][0]
            writer.writerow([
                pair.where, pair.compared, pair.base, pair.metric, unit, pair.seeds,
                *("" if number is None else f"{number:.6g}" for number in numbers), pair.outcome,
            ])  # fmt: skip
    return path
