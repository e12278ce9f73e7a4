"""Time for which traffic stops when the relay in use fails and another path exists, by protocol, with and without link feedback.

A dot per run; the box is the quartiles, the bar in it the median; at the right median, quartiles (of several runs) and the number
of runs (and of those in which no datagram arrived again). The printed table has the mean. Time from the last datagram delivered
over the old relay to the first over the new one. The same numbers are in reaction.csv in the same folder.
"""

import csv
import math
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis.drawing import style
from analysis.drawing.shared import in_order
from analysis.tables.results import collect_runs, counts
from record.errors import RunFileError
from record.files import atomic_file

RUN_FILES = True  # it draws from them
COLUMNS = ("variant", "n", "never", "median_s", "quartile1_s", "quartile3_s", "least_s", "most_s")


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`; returns the files of the figure."""
    by_variant = reactions(out_dir)
    if not by_variant:
        raise RunFileError(f"{out_dir}: no runs; run the experiment first (`manet run routing-reaction`)")
    rows = [statistics(variant, values) for variant, values in by_variant.items()]
    _write(out_dir / "reaction.csv", rows)
    with style.page(out_dir, "routing_reaction", 1.0 + 0.36 * len(by_variant)) as (axes, written):
        _draw(axes[0], by_variant, rows)
    return written


def reactions(out_dir: Path) -> dict[str, list[float | None]]:
    """The times of each variant's runs that count, in the order of the experiment; None if no datagram arrived again."""
    runs = [run for run in collect_runs(out_dir, ()) if counts(run)]
    order = in_order(out_dir, (run["variant"] for run in runs))
    return {variant: [run["reaction_s"] for run in runs if run["variant"] == variant] for variant in order}


def statistics(variant: str, values: list[float | None]) -> dict[str, Any]:
    """None counts as longer than any time: the median is over all runs, and infinite if traffic did not recover in most of
    them."""
    times = sorted(float("inf") if value is None else value for value in values)
    low, middle, high = (_quantile(times, share) for share in (0.25, 0.5, 0.75))
    never = sum(value is None for value in values)
    figures = dict(zip(COLUMNS[3:], (middle, low, high, times[0], times[-1]), strict=True))
    return {"variant": variant, "n": len(values), "never": never, **figures}


def _quantile(times: list[float], share: float) -> float:
    """Linear between neighbours in rank (Hyndman and Fan's 7). Libraries return nan if one of weight 0 is infinite."""
    below, part = divmod(share * (len(times) - 1), 1)
    low, high = times[int(below)], times[math.ceil(below + part)]
    return low if low == high or part == 0 else low + part * (high - low)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    with atomic_file(path) as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{value:.4f}" if isinstance(value, float) else value for key, value in row.items()} for row in rows
        )


def _draw(axes: Axes, by_variant: dict[str, list[float | None]], rows: list[dict[str, Any]]) -> None:
    times = [value for values in by_variant.values() for value in values if value is not None] or [1.0]
    low, high = 0.5 * min(times), 2 * max(times)
    for place, (variant, values) in enumerate(by_variant.items()):
        row, colour = rows[place], style.of_variant(variant.removesuffix("-silence"), place).colour
        here = [value for value in values if value is not None]
        edges = [min(max(row[key], low), high) for key in ("quartile1_s", "quartile3_s", "median_s")]
        axes.barh(place, edges[1] - edges[0], left=edges[0], height=0.55, color="#eeeeee", edgecolor=style.GREY, linewidth=0.6)
        axes.plot([edges[2]] * 2, [place - 0.28, place + 0.28], color=style.BLACK, linewidth=1.4)
        # spread by rank, so that equal times stay visible
        spread = [place + 0.2 * ((index % 5) - 2) / 2 for index in range(len(here))]
        axes.plot(sorted(here), spread, color=colour, marker="o", markersize=3, linestyle="", alpha=0.8)
        axes.annotate(_words(row), (1.01, place), xycoords=("axes fraction", "data"), fontsize=7, va="center")
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_yticks(range(len(by_variant)), [_name(variant) for variant in by_variant])
    axes.invert_yaxis()
    axes.set_xlabel("time without deliveries (s)")
    axes.set_title("Time without deliveries after the relay in use dies", loc="left", pad=16)
    axes.annotate("median (quartiles), runs", (1.01, 1), xytext=(0, 4), xycoords="axes fraction", textcoords="offset points",
                  fontsize=7, fontweight="bold")  # fmt: skip


def _name(variant: str) -> str:
    protocol = variant.removesuffix("-silence")
    how = "no feedback" if variant.endswith("-silence") else "link feedback"
    return f"{style.of_variant(protocol).name}, {how}"


def _words(row: dict[str, Any]) -> str:
    never = f", {row['never']} never" if row["never"] else ""
    quartiles = f" ({row['quartile1_s']:.3g} to {row['quartile3_s']:.3g})" if row["n"] > 1 else ""
    return f"{row['median_s']:.3g} s{quartiles}, n = {row['n']}{never}"
