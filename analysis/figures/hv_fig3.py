"""Measured against expected throughput, after Holland and Vaidya (1999), figures 3, 4 and 11.

Above: throughput in percent of the expected, mean over movement patterns with 95 % intervals, against mean speed. Below, a panel
for each speed: one point a pattern; on the line TCP reaches what the movement allows.
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis import drawing, style
from analysis.tables import collect_runs, counts, read_summary

AXIS = "speed"


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv and the runs below it; returns the files written."""
    out_dir = Path(out_dir)
    summary = read_summary(out_dir)
    percent = drawing.series(summary, "percent", AXIS)
    speeds = sorted({row[AXIS] for rows in percent.values() for row in rows})
    runs = [run for run in collect_runs(out_dir, (AXIS,)) if counts(run) and run["expected_kbps"] is not None]
    panels = 1 + len(speeds)
    with style.page(out_dir, "hv_fig3", 2.2 * panels, nrows=panels) as (axes, written):
        _draw_percent(axes[0], percent, speeds)
        for panel, speed in zip(axes[1:], speeds, strict=True):
            _draw_patterns(panel, speed, list(percent), [run for run in runs if float(run[AXIS]) == speed])
        axes[-1].set_xlabel("expected (kbit/s)")
        axes[-1].figure.supxlabel(drawing.origin(out_dir, summary, "percent"), fontsize=6.5, color=style.GREY)
    return written


def _draw_percent(axes: Axes, percent: dict[str, list[dict[str, Any]]], speeds: list[float]) -> None:
    axes.axhline(100, color=style.BLACK, linewidth=0.6)
    for position, (variant, rows) in enumerate(percent.items()):
        look = style.look(variant, position)
        places = [row[AXIS] + 0.3 * (position - 0.5) for row in rows]
        axes.errorbar(places, [row["mean"] for row in rows], yerr=drawing.half_widths(rows), color=look.colour,
                      marker=look.marker, capsize=2.5, label=look.name)  # fmt: skip
    axes.set(xlabel="mean speed (m/s)", ylabel="% of the expected", ylim=(0, None))
    drawing.label_ticks(axes.xaxis, speeds)
    axes.legend(loc="lower left")


def _draw_patterns(axes: Axes, speed: float, variants: list[str], runs: list[dict[str, Any]]) -> None:
    most = max((run["expected_kbps"] for run in runs), default=1.0)
    axes.plot([0, most], [0, most], color=style.BLACK, linewidth=0.6)
    for position, variant in enumerate(variants):
        look = style.look(variant, position)
        own = [run for run in runs if (run["variant"] or "") == variant]
        axes.plot([run["expected_kbps"] for run in own], [run["acked_kbps"] for run in own], color=look.colour,
                  marker=look.marker, linestyle="", alpha=0.8)  # fmt: skip
    axes.set(title=f"{speed:g} m/s", ylabel="measured (kbit/s)", xlim=(0, None), ylim=(0, None))
