"""TCPs over chains of a growing number of hops: a column of panels for each variant, a row for each metric.

The metrics are those of METRICS that the experiment names in `shown`. The hops are those of the axis `hops`, or of flow sets
`over-1`, `over-2`, and so on. Means with 95 % intervals; throughput in Mbit/s.
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis.drawing import shared, style
from analysis.tables.results import read_summary

METRICS = {  # those that `shown` may name: the factor and the label of its panels
    "total_acked_kbps": (1e-3, "acknowledged (Mbit/s)"),
    "mpdus_per_ppdu": (1.0, "MPDUs in a frame"),
    "latency_ms_p50": (1.0, "median delay of\nthe sparse flow (ms)"),
}
Row = dict[str, Any]


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    summary = read_summary(out_dir)
    there = {row["metric"] for row in summary if row["mean"] is not None}
    metrics = [metric for metric in shared.description(out_dir).get("shown") or METRICS if metric in METRICS and metric in there]
    variants = shared.in_order(out_dir, {row["variant"] for row in summary})
    tcps = shared.in_order(out_dir, {row["tcp"] for row in summary}, "tcp")
    size = (1.1 + 1.7 * len(metrics), 0.6 + 1.75 * len(variants))
    with style.page(out_dir, "tcp_by_hops", *size, nrows=len(metrics), ncols=len(variants)) as (axes, written):
        for place, panel in enumerate(axes):
            metric, variant = metrics[place // len(variants)], variants[place % len(variants)]
            cells = [row for row in summary if (row["metric"], row["variant"]) == (metric, variant) and row["mean"] is not None]
            for number, tcp in enumerate(tcps):
                _draw(panel, [row for row in cells if row["tcp"] == tcp], METRICS[metric][0], tcp, number)
            panel.set_ylim(bottom=0)
            panel.set_xticks(sorted({_hops(row) for row in summary}))
            if metric == metrics[0]:
                panel.set_title(variant)
            if metric == metrics[-1]:
                panel.set_xlabel("hops")
            if variant == variants[0]:
                panel.set_ylabel(METRICS[metric][1])
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(tcps))
        shared.write_origin(axes[0], out_dir, summary, *metrics)
    return written


def _hops(row: Row) -> int:
    return int(row["hops"] if "hops" in row else row["flows"].removeprefix("over-"))


def _draw(axes: Axes, rows: list[Row], factor: float, tcp: str, number: int) -> None:
    rows = sorted(rows, key=_hops)
    mark = style.of_variant(tcp, number)
    means = [factor * row["mean"] for row in rows]
    bars = [factor * width for width in shared.half_widths(rows) or []]
    axes.errorbar([_hops(row) for row in rows], means, yerr=bars or None, color=mark.colour, marker=mark.marker, markersize=4,
                  linewidth=1, capsize=2.5, elinewidth=0.9, label=mark.name)  # fmt: skip
    shared.ring_suspects(axes, [(_hops(row), mean) for row, mean in zip(rows, means, strict=True) if row["suspect"]])
