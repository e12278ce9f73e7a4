"""Latency under load: a sparse flow of datagrams beside a bulk transfer over one to three hops, for each queue.

A row for each radio. Left: median delay of the datagrams (marker) up to the 95th percentile (line), on a logarithmic scale.
Right: throughput of the bulk transfer, with 95 % intervals where a point has several runs. A colour is a queue; filled markers
are the first TCP of the experiment, open ones the second. Points are ringed in black where a run is suspect.
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from analysis.drawing import shared, style
from analysis.tables.results import read_summary

AXES = ("flows", "tcp", "radio")  # of the experiment
MEDIAN, HIGH = "latency_ms_p50", "latency_ms_p95"  # of flow 1, the sparse one
BULK = "total_acked_kbps"
APART = 0.08  # of two points over the same number of hops, in hops
WIDTH_IN = 7.4
Row = dict[str, Any]


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    summary = read_summary(out_dir)
    radios = shared.in_order(out_dir, {row["radio"] for row in summary}, "radio") or [""]
    tcps = shared.in_order(out_dir, {row["tcp"] for row in summary}, "tcp")
    paths = shared.in_order(out_dir, {row["flows"] for row in summary}, "flows")
    queues = shared.in_order(out_dir, {row["variant"] for row in summary})
    with style.page(out_dir, "bufferbloat", 1.2 + 2.4 * len(radios), WIDTH_IN, nrows=len(radios), ncols=2) as (axes, written):
        for left, right, radio in zip(axes[::2], axes[1::2], radios, strict=True):
            lines = [(queue, tcp) for queue in queues for tcp in tcps]
            for number, (queue, tcp) in enumerate(lines):
                cells = {
                    (row["metric"], row["flows"]): row
                    for row in summary
                    if (row["radio"], row["variant"], row["tcp"]) == (radio, queue, tcp) and row["mean"] is not None
                }
                offset = APART * (number - (len(lines) - 1) / 2)
                mark = style.of_variant(queue, queues.index(queue))
                face = mark.colour if tcp == tcps[0] else "white"
                look = {"color": mark.colour, "marker": mark.marker, "markerfacecolor": face}
                _draw_delays(left, cells, paths, offset, look)
                _draw_rates(right, cells, paths, offset, look)
            left.set_yscale("log")
            left.set(title=f"{radio}: latency under load", ylabel="delay of the sparse flow (ms)")
            right.set(title=f"{radio}: bulk transfer", ylabel="acknowledged (kbit/s)")
            right.set_ylim(bottom=0)
            for panel in (left, right):
                panel.set_xticks(range(len(paths)), [path.removeprefix("over-") for path in paths])
                panel.set_xlabel("hops")
        entries = [_entry(queue, number) for number, queue in enumerate(queues)]
        entries += [Line2D([], [], color=style.BLACK, marker="o", linestyle="", label=style.of_variant(tcp).name,
                           markerfacecolor=style.BLACK if tcp == tcps[0] else "white") for tcp in tcps]  # fmt: skip
        axes[0].figure.legend(handles=entries, loc="outside upper center", ncols=len(entries))
        shared.write_origin(axes[0], out_dir, summary, MEDIAN, HIGH, BULK)
    return written


def _draw_delays(axes: Axes, cells: dict[tuple[str, str], Row], paths: list[str], offset: float, look: dict[str, str]) -> None:
    there = [
        (place + offset, cells[MEDIAN, path], cells.get((HIGH, path)))
        for place, path in enumerate(paths)
        if (MEDIAN, path) in cells
    ]
    for place, median, high in there:
        if high is not None:
            axes.plot([place, place], [median["mean"], high["mean"]], color=look["color"], linewidth=0.9, label="_")
    axes.plot([place for place, _, _ in there], [median["mean"] for _, median, _ in there], **look, linestyle="")  # type: ignore[arg-type]
    shared.ring_suspects(axes, [(place, median["mean"]) for place, median, _ in there if median["suspect"]])


def _draw_rates(axes: Axes, cells: dict[tuple[str, str], Row], paths: list[str], offset: float, look: dict[str, str]) -> None:
    there = [(place + offset, cells[BULK, path]) for place, path in enumerate(paths) if (BULK, path) in cells]
    rows = [row for _, row in there]
    axes.errorbar([place for place, _ in there], [row["mean"] for row in rows], yerr=shared.half_widths(rows) if rows else None,
                  **look, linestyle="", capsize=2.5, elinewidth=0.9)  # type: ignore[arg-type]  # fmt: skip
    shared.ring_suspects(axes, [(place, row["mean"]) for place, row in there if row["suspect"]])


def _entry(queue: str, number: int) -> Line2D:
    mark = style.of_variant(queue, number)
    return Line2D([], [], color=mark.colour, marker=mark.marker, linestyle="", label=mark.name)
