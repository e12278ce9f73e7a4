"""Measured against expected throughput, after Holland and Vaidya (1999), figures 3, 4 and 11.

From the top: throughput in percent of the expected throughput against speed, mean over movement patterns with 95 % intervals; the
same in kbit/s with the expected throughput (figure 3(a)); throughput of each pattern with plain Reno at the two highest speeds,
sorted by the lower one's (figure 3(b)); then a panel for each speed with one point per pattern (figures 4 and 11): on the line,
TCP reaches the expected throughput.
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis.drawing import shared, style
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import Row, counts, read_summary

AXES = ("speed",)  # of the experiment
AXIS = "speed"
PLAIN = "reno"  # the variant of figure 3(b)


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv and the runs below it; returns the files written."""
    summary = read_summary(out_dir)
    percent = shared.series(summary, "percent", AXIS)
    speeds = sorted({row[AXIS] for rows in percent.values() for row in rows})
    runs = [run for run in rows_in(out_dir, (AXIS,)) if counts(run) and run["expected_kbps"] is not None]
    panels = 3 + len(speeds)
    with style.page(out_dir, "hv_fig3", 2.2 * panels, nrows=panels) as (axes, written):
        axes[0].axhline(100, color=style.BLACK, linewidth=0.6)
        _draw_against_speed(axes[0], percent, speeds, "% of the expected")
        _draw_rates(axes[1], summary, speeds)
        _draw_sorted(axes[2], list(percent), runs, speeds[-2:])
        for panel, speed in zip(axes[3:], speeds, strict=True):
            _draw_patterns(panel, speed, list(percent), [run for run in runs if float(run[AXIS]) == speed])
        axes[-1].set_xlabel("expected (kbit/s)")
        shared.write_origin(axes[-1], out_dir, summary, "percent", "acked_kbps")
    return written


def _draw_rates(axes: Axes, summary: list[dict[str, Any]], speeds: list[float]) -> None:
    """Draw figure 3(a). The expected throughput follows from the movement, so it is the same for all variants."""
    expected = next(iter(shared.series(summary, "expected_kbps", AXIS).values()), [])
    axes.plot([row[AXIS] for row in expected], [row["mean"] for row in expected], color=style.BLACK, linestyle="--",
              label="expected")  # fmt: skip
    _draw_against_speed(axes, shared.series(summary, "acked_kbps", AXIS), speeds, "acknowledged (kbit/s)")


def _draw_against_speed(axes: Axes, of_variants: dict[str, list[dict[str, Any]]], speeds: list[float], label: str) -> None:
    for position, (variant, rows) in enumerate(of_variants.items()):
        mark = style.of_variant(variant, position)
        places = [row[AXIS] + 0.3 * (position - 0.5) for row in rows]
        axes.errorbar(places, [row["mean"] for row in rows], yerr=shared.half_widths(rows), color=mark.colour,
                      marker=mark.marker, capsize=2.5, label=mark.name)  # fmt: skip
    axes.set(xlabel="mean speed (m/s)", ylabel=label, ylim=(0, None))
    shared.label_ticks(axes.xaxis, speeds)
    axes.legend(loc="lower left")


def _draw_sorted(axes: Axes, variants: list[str], runs: list[Row], speeds: list[float]) -> None:
    """Draw figure 3(b), of plain Reno as in the paper, or without it of the first variant; dashed at the higher speed."""
    if not variants or not speeds:
        return
    shown = PLAIN if PLAIN in variants else variants[0]
    mark = style.of_variant(shown, variants.index(shown))
    own = [run for run in runs if (run["variant"] or "") == shown]
    by_speed = {speed: {run["seed"]: run["acked_kbps"] for run in own if float(run[AXIS]) == speed} for speed in speeds}
    order = sorted(by_speed[speeds[0]], key=by_speed[speeds[0]].__getitem__)
    for speed, line in zip(speeds, ("-", "--"), strict=False):
        axes.plot(range(1, len(order) + 1), [by_speed[speed].get(seed, float("nan")) for seed in order], color=mark.colour,
                  marker=mark.marker, linestyle=line, label=f"{mark.name}, {speed:g} m/s")  # fmt: skip
    axes.set(xlabel=f"pattern, by its throughput at {speeds[0]:g} m/s", ylabel="acknowledged (kbit/s)", ylim=(0, None))
    axes.legend(loc="upper left")


def _draw_patterns(axes: Axes, speed: float, variants: list[str], runs: list[Row]) -> None:
    highest = max((run["expected_kbps"] for run in runs), default=1.0)
    axes.plot([0, highest], [0, highest], color=style.BLACK, linewidth=0.6)
    for position, variant in enumerate(variants):
        mark = style.of_variant(variant, position)
        own = [run for run in runs if (run["variant"] or "") == variant]
        axes.plot([run["expected_kbps"] for run in own], [run["acked_kbps"] for run in own], color=mark.colour,
                  marker=mark.marker, linestyle="", alpha=0.8)  # fmt: skip
    axes.set(title=f"{speed:g} m/s", ylabel="measured (kbit/s)", xlim=(0, None), ylim=(0, None))
