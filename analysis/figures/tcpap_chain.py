"""TCP-AP and NewReno over a static chain against its length.

From the top: throughput (acknowledged); round trip time, mean (solid) and 95th percentile (dashed); and the unevenness of the
throughput: the coefficient of variation (standard deviation over mean) of its one-second values within a run. Means over runs, 95
% intervals if a point has several. A run in which nothing was acknowledged has no coefficient.
"""

from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from matplotlib.axes import Axes

from analysis.drawing import shared, style
from analysis.tables.results import collect_runs, counts, mean_and_interval, read_summary

RUN_FILES = True  # it draws from them
AXES = ("hops",)  # of the experiment
METRIC = "acked_kbps"
MEAN, HIGH = "rtt_ms_mean", "rtt_ms_p95"


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv and the runs below it; returns the files written."""
    summary = read_summary(out_dir)
    measured = shared.series(summary, METRIC, "hops")
    with style.page(out_dir, "tcpap_chain", 6.6, nrows=3, sharex=True, height_ratios=[1.4, 1.2, 1]) as (axes, written):
        _draw_lines(axes[0], measured, "-", named=True)
        axes[0].set_ylabel("acknowledged (kbit/s)")
        axes[0].legend(loc="upper right")
        _draw_lines(axes[1], shared.series(summary, MEAN, "hops"), "-")
        _draw_lines(axes[1], shared.series(summary, HIGH, "hops"), "--")
        axes[1].set_ylabel("round trip (ms)\nmean, 95th percentile")
        _draw_lines(axes[2], unevenness(out_dir), "-")
        axes[2].set_ylabel("variation from\nsecond to second")
        for one in axes:
            one.set_ylim(bottom=0)
        hops = sorted({round(row["hops"]) for rows in measured.values() for row in rows}) or [1]
        shared.label_ticks(axes[2].xaxis, hops)
        axes[2].set_xlabel("hops")
        shared.write_origin(axes[2], out_dir, summary, METRIC, MEAN, HIGH)
    return written


def unevenness(out_dir: Path) -> dict[str, list[dict[str, Any]]]:
    """For each variant, over hops, the mean coefficient of variation of a run's throughput in one-second steps."""
    coefficients: dict[tuple[str, float], list[float]] = {}
    for run in filter(counts, collect_runs(out_dir, ("hops",))):
        flow = run["flow_metrics"].get("flow1", {})
        if not flow.get("acked_bps_by_second"):
            continue
        seconds = flow["acked_bps_by_second"][int(flow["window_s"][0]) :]
        if len(seconds) > 1 and fmean(seconds) > 0:
            coefficients.setdefault((run["variant"], float(run["hops"])), []).append(pstdev(seconds) / fmean(seconds))
    series: dict[str, list[dict[str, Any]]] = {}
    for (variant, hops), values in sorted(coefficients.items()):
        series.setdefault(variant, []).append({"hops": hops, **mean_and_interval(list(values))})
    return series


def _draw_lines(axes: Axes, measured: dict[str, list[dict[str, Any]]], line: str, named: bool = False) -> None:
    for position, (variant, rows) in enumerate(measured.items()):
        mark = style.of_variant(variant, position)
        axes.errorbar([row["hops"] for row in rows], [row["mean"] for row in rows], yerr=shared.half_widths(rows),
                      color=mark.colour, marker=mark.marker, linestyle=line, markersize=3.5, capsize=2.5, elinewidth=0.9,
                      label=mark.name if named else None)  # fmt: skip
