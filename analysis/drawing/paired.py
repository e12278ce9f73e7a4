"""Variants compared seed by seed: all variants have the same movement and random streams, so common effects cancel.

Runs over moving stations scatter by tens of percent from pattern to pattern; the difference on one pattern scatters less. Its
mean over the patterns has the interval of the campaigns' rule, which is the answer's where a question asks for it
(analysis/decisions/pairs.py). The level of each variant is drawn pattern by pattern with its mean, without an interval: that
would be of the patterns and say nothing of the variants.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes

from analysis.decisions.answers import Answered, answers_in
from analysis.decisions.pairs import VARIANT, Pair, pairs
from analysis.drawing import shared, style
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import Row, counts, read_summary, standing

AXIS = "speed"
APART_MPS = 0.3  # between points of the same speed
BESIDE_MPS = 2.0  # on either side of the outermost
PERCENT, RATE = "percent", "acked_kbps"
LABELS = {PERCENT: "% of the expected", RATE: "acknowledged (kbit/s)", "total_acked_kbps": "acknowledged (kbit/s)"}
Levels = Mapping[str, Sequence[Row]]  # the runs of each variant that have a level


def draw(out_dir: Path, name: str, base: str, against: str, level: str, height_in: float = 4.6) -> list[Path]:
    """Above: `level`, a metric, of each variant over speed, per pattern (dots) and in the mean. Below: its gain in kbit/s on the
    variant `base`, per pattern (dots) and in the mean with its interval; `against` is the label of that axis. Draws from the runs
    and kept rows of `out_dir` and its summary.csv; returns the files written."""
    rows = rows_in(out_dir, (AXIS,))
    levels = levels_of(out_dir, rows, level)
    found = gains(rows, answers_in(out_dir), base, RATE, [variant for variant in levels if variant != base])
    with style.page(out_dir, name, height_in, nrows=2, sharex=True, height_ratios=[1.4, 1]) as (axes, written):
        draw_levels(axes[0], levels, level)
        draw_gains(axes[1], found, list(levels))
        axes[1].set_ylabel(against)
        # Outside the panel: with four curves no corner is free.
        axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        label_speeds(axes[1], levels)
        shared.write_origin(axes[1], out_dir, read_summary(out_dir), level, RATE)
    return written


def levels_of(out_dir: Path, rows: Iterable[Row], metric: str) -> dict[str, list[Row]]:
    """The rows of each variant that count and have a value of the metric, in the order of the experiment in `out_dir`."""
    having = [row for row in rows if counts(row) and row[metric] is not None]
    return {
        variant: [row for row in having if row[VARIANT] == variant]
        for variant in shared.in_order(out_dir, (row[VARIANT] for row in having))
    }


def gains(rows: Iterable[Row], answers: Iterable[Answered], base: str, metric: str, variants: Sequence[str]) -> list[Pair]:
    """Each variant minus `base` at each speed, by seed."""
    return pairs(rows, (AXIS,), VARIANT, base, (metric,), variants, answers)


def label_speeds(axes: Axes, levels: Levels) -> None:
    """Ticks at the speeds of the runs."""
    axes.set_xlabel("mean speed (m/s)")
    speeds = sorted({float(row[AXIS]) for rows in levels.values() for row in rows})
    shared.label_ticks(axes.xaxis, speeds)
    if speeds:
        axes.set_xlim(speeds[0] - BESIDE_MPS, speeds[-1] + BESIDE_MPS)


def _aside(position: int, count: int) -> float:
    """Horizontal offset (m/s) that keeps equal means apart."""
    return APART_MPS * (position - (count - 1) / 2)


def draw_levels(axes: Axes, levels: Levels, metric: str) -> None:
    """The metric of each variant: a dot for each run, a line through the means of the speeds."""
    suspects: list[tuple[float, float]] = []
    for position, (variant, rows) in enumerate(levels.items()):
        mark, aside = style.of_variant(variant, position), _aside(position, len(levels))
        at = [float(row[AXIS]) + aside for row in rows]
        axes.plot(at, [row[metric] for row in rows], color=mark.colour, marker="o", markersize=2.5, linestyle="", alpha=0.4)
        suspects += [(place, row[metric]) for place, row in zip(at, rows, strict=True) if standing(row) == "suspect"]
        speeds = sorted({float(row[AXIS]) for row in rows})
        means = [fmean(row[metric] for row in rows if float(row[AXIS]) == speed) for speed in speeds]
        axes.plot([speed + aside for speed in speeds], means, color=mark.colour, marker=mark.marker, label=mark.name)
    if (rings := shared.ring_suspects(axes, suspects, "suspect run")) is not None:
        rings.set_markersize(5)
    axes.set_ylabel(LABELS[metric])
    axes.set_ylim(bottom=0)


def draw_gains(axes: Axes, found: Iterable[Pair], order: Sequence[str]) -> None:
    """The differences of `gains`: a dot for each pattern, the mean with its interval. `order`: all variants of the figure."""
    axes.axhline(0, color=style.BLACK, linewidth=0.6)
    for pair in found:
        position = order.index(pair.compared)
        mark = style.of_variant(pair.compared, position)
        at = float(pair.where) + _aside(position, len(order))  # the only other key is the axis
        axes.plot([at] * pair.seeds, pair.by_seed, color=mark.colour, marker="o", markersize=2.5, linestyle="", alpha=0.45)
        low, high = pair.answer.low, pair.answer.high
        ends = None if low is None or high is None else [[pair.difference - low], [high - pair.difference]]
        axes.errorbar([at + 0.1], [pair.difference], yerr=ends,
                      color=mark.colour, marker=mark.marker, markeredgecolor=style.BLACK, capsize=3)  # fmt: skip
