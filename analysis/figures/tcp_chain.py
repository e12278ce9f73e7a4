"""TCP throughput over a static chain against its length, one colour per TCP.

Filled markers: this testbed (Linux's stack with the algorithm as eBPF or its own; 95 % intervals where a point has several
runs), ringed in black where a run is suspect. Open markers: ns-2.35's TCP of the same name (analysis/ns2/tcp_chain.csv names
the routes). Below: this testbed over ns-2.35, with the band of 10 % that the testbed is held to at full size.
"""

from pathlib import Path

from matplotlib.legend_handler import HandlerTuple

from analysis.drawing import shared, style
from analysis.tables.results import read_summary

AXES = ("hops",)  # of the experiment
METRIC = "acked_kbps"
BAND = 0.10


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    out_dir = Path(out_dir)
    summary = read_summary(out_dir)
    measured = shared.series(summary, METRIC, "hops")
    with style.page(out_dir, "tcp_chain", 5.4, nrows=2, sharex=True, height_ratios=[3, 1.4]) as (axes, written):
        entries = shared.draw_with_ns2(axes[0], measured, "hops")
        axes[0].set_yscale("log")
        axes[0].set_ylabel("TCP throughput, acknowledged (kbit/s)")
        shared.label_ticks(axes[0].yaxis, [100, 150, 200, 300, 400, 600, 800, 1000, 1500])
        low, high = axes[0].dataLim.intervaly
        axes[0].set_ylim(min(150, 0.9 * low), max(1500, 1.1 * high))
        axes[0].legend(entries.values(), entries.keys(), loc="upper right", handlelength=4, title_fontsize=7.5,
                       title=f"filled: this testbed{shared.meaning(measured)}; open: ns-2.35", alignment="left",
                       handler_map={tuple: HandlerTuple(ndivide=None)})  # fmt: skip
        shared.draw_ratios_to_ns2(axes[1], measured, "hops", BAND)
        axes[1].set_xlabel("hops")
        hops = sorted({round(row["hops"]) for rows in measured.values() for row in rows}) or [1]
        shared.label_ticks(axes[1].xaxis, range(hops[0], hops[-1] + 1))
        axes[1].set_xlim(hops[0] - 0.3, hops[-1] + 0.3)
        axes[1].figure.supxlabel(shared.origin(out_dir, summary, METRIC), fontsize=6.5, color=style.GREY)
    return written
