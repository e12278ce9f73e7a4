"""TCP throughput over a static chain with routing daemons, against its length.

Filled markers: this testbed (Linux TCP and real daemons; 95 % intervals where a point has several runs), one colour a
protocol, ringed in black where a run is suspect. Open markers: ns-2.35's protocols of the same name with the same radio and TCP.
Below: this testbed over ns-2.35, with the band of 15 % that the testbed is held to at full size. The loss against static routes
is caused by the protocol: by its packets, and by routes that it gives up when contention looks like a broken link. ns-2 sends the
IP header twice with DSDV, DSR and static routes (1.7 % at one hop).
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerTuple

from analysis.drawing import shared, style
from analysis.tables.results import read_summary

AXES = ("hops",)  # of the experiment
METRIC = "acked_kbps"
BAND = 0.15


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    out_dir = Path(out_dir)
    summary = read_summary(out_dir)
    measured = shared.series(summary, METRIC, "hops")
    with style.page(out_dir, "routing_chain", 5.4, nrows=2, sharex=True, height_ratios=[3, 1.4]) as (axes, written):
        _draw_throughput(axes[0], measured)
        shared.draw_ratios_to_ns2(axes[1], measured, "hops", BAND)
        hops = sorted({round(row["hops"]) for rows in measured.values() for row in rows}) or [1]
        axes[1].set_xlabel("hops")
        shared.label_ticks(axes[1].xaxis, range(hops[0], hops[-1] + 1))
        axes[1].set_xlim(hops[0] - 0.3, hops[-1] + 0.3)
        axes[1].figure.supxlabel(shared.origin(out_dir, summary, METRIC), fontsize=6.5, color=style.GREY)
    return written


def _draw_throughput(axes: Axes, measured: dict[str, list[dict[str, Any]]]) -> None:
    entries = shared.draw_with_ns2(axes, measured, "hops")
    axes.set_yscale("log")
    axes.set_ylabel("TCP throughput, acknowledged (kbit/s)")
    shared.label_ticks(axes.yaxis, [20, 50, 100, 150, 200, 300, 400, 600, 800, 1000, 1500])
    # intervals of protocols with almost no throughput would take most of the page
    means = [row["mean"] for rows in measured.values() for row in rows if row["mean"]] or [100]
    axes.set_ylim(min(100, 0.6 * min(means)), max(1500, 1.1 * max(means)))
    axes.legend(entries.values(), entries.keys(), loc="lower left", handlelength=4, title_fontsize=7.5,
                title=f"filled: this testbed{shared.meaning(measured)}\nopen: ns-2.35", alignment="left",
                handler_map={tuple: HandlerTuple(ndivide=None)})  # fmt: skip
