"""TCP over DSR with and without replies from route caches, against mean speed, after Holland and Vaidya (1999), figure 7.

Above: the mean over movement patterns with 95 % intervals; the patterns are the same for both and at all speeds. Below: without
minus with cache replies, pattern by pattern (dots), and the mean difference with its 95 % interval by Student's t: where the
interval leaves out zero, the switch matters.
"""

from pathlib import Path

from matplotlib.axes import Axes

from analysis import drawing, style
from analysis.tables import collect_runs, mean_and_interval, read_summary

METRIC = "acked_kbps"
WITH, WITHOUT = "cache-replies", "no-cache-replies"


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv and the runs below it; returns the files written."""
    out_dir = Path(out_dir)
    summary = read_summary(out_dir)
    ours = drawing.series(summary, METRIC, "speed")
    with style.page(out_dir, "hv_fig7", 4.6, nrows=2, sharex=True, height_ratios=[1.4, 1]) as (axes, written):
        suspects: list[tuple[float, float]] = []
        for position, (variant, rows) in enumerate(ours.items()):
            look = style.look(variant, position)
            aside = 0.3 * (position - (len(ours) - 1) / 2)  # so that equal means stay apart
            speeds, means = [row["speed"] + aside for row in rows], [row["mean"] for row in rows]
            suspects += [(place, row["mean"]) for place, row in zip(speeds, rows, strict=True) if row["suspect"]]
            axes[0].errorbar(speeds, means, yerr=drawing.half_widths(rows), color=look.colour, marker=look.marker,
                             capsize=2.5, elinewidth=0.9, label=look.name)  # fmt: skip
        rings = drawing.ring_suspects(axes[0], suspects)
        if rings is not None:
            rings.set_label("with a suspect run")
        axes[0].set_ylabel("acknowledged (kbit/s)")
        axes[0].set_ylim(bottom=0)
        axes[0].legend(loc="lower left")
        _draw_differences(axes[1], differences(out_dir))
        speeds = sorted({row["speed"] for rows in ours.values() for row in rows})
        drawing.label_ticks(axes[1].xaxis, speeds)
        if speeds:
            axes[1].set_xlim(speeds[0] - 2, speeds[-1] + 2)
        axes[1].figure.supxlabel(drawing.origin(out_dir, summary, METRIC), fontsize=6.5, color=style.GREY)
    return written


def differences(out_dir: Path) -> dict[float, list[float]]:
    """For each speed, what a pattern gains without replies from caches (kbit/s); patterns that both variants have."""
    found: dict[tuple[str, float, int], float] = {}
    for run in collect_runs(out_dir, ("speed",)):
        if run["status"] == "complete" and run["verdict"] in ("valid", "suspect") and run[METRIC] is not None:
            found[run["variant"], float(run["speed"]), run["seed"]] = run[METRIC]
    pairs: dict[float, list[float]] = {}
    for (variant, speed, seed), value in found.items():
        if variant == WITHOUT and (WITH, speed, seed) in found:
            pairs.setdefault(speed, []).append(value - found[WITH, speed, seed])
    return dict(sorted(pairs.items()))


def _draw_differences(axes: Axes, found: dict[float, list[float]]) -> None:
    axes.axhline(0, color=style.BLACK, linewidth=0.6)
    for speed, values in found.items():
        axes.plot([speed] * len(values), values, color=style.GREY, marker="o", markersize=2.5, linestyle="", alpha=0.7)
        mean = mean_and_interval(list(values))
        axes.errorbar([speed + 0.35], [mean["mean"]], yerr=None if mean["ci95"] is None else [mean["ci95"]],
                      color=style.BLACK, marker="D", markersize=4, capsize=3)  # fmt: skip
    axes.set_ylabel("without minus with (kbit/s)")
    axes.set_xlabel("mean speed (m/s)")
