"""Variants compared seed by seed: all variants have the same movement and random streams, so common effects cancel.

Runs over moving stations scatter by tens of percent from pattern to pattern; the difference on one pattern scatters less. Its
mean over the patterns has the interval of the campaigns' rule, which is the answer's where a question asks for it
(analysis/decisions/pairs.py).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.axes import Axes

from analysis.decisions.answers import answers_in
from analysis.decisions.pairs import VARIANT, Pair, pairs
from analysis.drawing import shared, style
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import read_summary

METRIC = "acked_kbps"
AXIS = "speed"


def gains(out_dir: Path, base: str, variants: Sequence[str]) -> list[Pair]:
    """Each variant minus `base` (kbit/s) at each speed, by seed."""
    return pairs(rows_in(out_dir, (AXIS,)), (AXIS,), VARIANT, base, (METRIC,), variants, answers_in(out_dir))


def draw(out_dir: Path, name: str, base: str, against: str, height_in: float = 4.6) -> list[Path]:
    """Above: the mean of each variant with its interval over the axis. Below: its gain on `base`, per pattern (dots) and in the
    mean.

    `against` is the label of the lower axis. Draws from `out_dir`/summary.csv and the runs below it; returns the files.
    """
    summary = read_summary(out_dir)
    measured = shared.series(summary, METRIC, AXIS)
    with style.page(out_dir, name, height_in, nrows=2, sharex=True, height_ratios=[1.4, 1]) as (axes, written):
        _draw_means(axes[0], measured)
        others = [variant for variant in measured if variant != base]
        _draw_differences(axes[1], gains(out_dir, base, others), list(measured))
        axes[1].set_ylabel(against)
        axes[1].set_xlabel("mean speed (m/s)")
        speeds = sorted({row[AXIS] for rows in measured.values() for row in rows})
        shared.label_ticks(axes[1].xaxis, speeds)
        if speeds:
            axes[1].set_xlim(speeds[0] - 2, speeds[-1] + 2)
        axes[1].figure.supxlabel(shared.origin(out_dir, summary, METRIC), fontsize=6.5, color=style.GREY)
    return written


def _aside(position: int, count: int) -> float:
    """Horizontal offset (m/s) that keeps equal means apart."""
    return 0.3 * (position - (count - 1) / 2)


def _draw_means(axes: Axes, measured: dict[str, list[dict]]) -> None:
    suspects: list[tuple[float, float]] = []
    for position, (variant, rows) in enumerate(measured.items()):
        mark = style.of_variant(variant, position)
        places = [row[AXIS] + _aside(position, len(measured)) for row in rows]
        means = [row["mean"] for row in rows]
        suspects += [(place, row["mean"]) for place, row in zip(places, rows, strict=True) if row["suspect"]]
        axes.errorbar(places, means, yerr=shared.half_widths(rows), color=mark.colour, marker=mark.marker,
                      capsize=2.5, elinewidth=0.9, label=mark.name)  # fmt: skip
    rings = shared.ring_suspects(axes, suspects)
    if rings is not None:
        rings.set_label("with a suspect run")
    axes.set_ylabel("acknowledged (kbit/s)")
    axes.set_ylim(bottom=0)
    # Outside the panel: with four curves no corner is free.
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _draw_differences(axes: Axes, found: Iterable[Pair], order: Iterable[str]) -> None:
    axes.axhline(0, color=style.BLACK, linewidth=0.6)
    listed = list(order)
    for pair in found:
        position = listed.index(pair.compared)
        mark = style.of_variant(pair.compared, position)
        at = float(pair.where) + _aside(position, len(listed))  # the only other key is the axis
        axes.plot([at] * pair.seeds, pair.by_seed, color=mark.colour, marker="o", markersize=2.5, linestyle="", alpha=0.45)
        low, high = pair.answer.low, pair.answer.high
        ends = None if low is None or high is None else [[pair.difference - low], [high - pair.difference]]
        axes.errorbar([at + 0.1], [pair.difference], yerr=ends,
                      color=mark.colour, marker=mark.marker, markeredgecolor=style.BLACK, capsize=3)  # fmt: skip
