"""TCP throughput over a static chain against its length, after Holland and Vaidya (1999), figure 1.

Filled markers: this testbed (Linux TCP; 95 % intervals if a point has several runs), one colour per variant, ringed in black if a
run is suspect; the line at the bottom names the runs. Open markers: ns-2.35 with the same settings. Crosses: the published
figure. Plus signs: Mininet-WiFi with wmediumd, which has no contention and so follows one n-th of one hop (dotted; goodput).
Below: this testbed over ns-2.35; the grey band, 7 %, is the bound at full size (the quick size, one short run per point: 12 %).
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerTuple

from analysis.drawing import shared, style
from analysis.references import load_reference
from analysis.tables.results import read_summary

AXES = ("hops",)  # of the experiment
METRIC = "acked_kbps"
BAND = 0.07


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    out_dir = Path(out_dir)
    summary = read_summary(out_dir)
    measured = shared.series(summary, METRIC, "hops")
    with style.page(out_dir, "hv_fig1", 5.4, nrows=2, sharex=True, height_ratios=[3, 1]) as (axes, written):
        _draw_throughput(axes[0], measured)
        shared.draw_ratios_to_ns2(axes[1], measured, "hops", BAND)
        axes[1].set_xlabel("hops")
        shared.label_ticks(axes[1].xaxis, range(1, 11))
        axes[1].set_xlim(0.7, 10.3)
        axes[1].figure.supxlabel(shared.origin(out_dir, summary, METRIC), fontsize=6.5, color=style.GREY)
    return written


def _draw_throughput(axes: Axes, measured: dict[str, list[dict[str, Any]]]) -> None:
    entries = _draw_others(axes) | shared.draw_with_ns2(axes, measured, "hops")
    axes.set_yscale("log")
    axes.set_ylabel("TCP throughput, acknowledged (kbit/s)")
    shared.label_ticks(axes.yaxis, [150, 200, 300, 400, 600, 800, 1000, 1500])
    low, high = axes.dataLim.intervaly
    axes.set_ylim(min(150, 0.9 * low), max(2000, 1.1 * high))
    axes.legend(entries.values(), entries.keys(), loc="upper right", handlelength=4, title_fontsize=7.5,
                title=f"filled: this testbed{shared.meaning(measured)}; open: ns-2.35", alignment="left",
                handler_map={tuple: HandlerTuple(ndivide=None)})  # fmt: skip


def _draw_others(axes: Axes) -> dict[str, Any]:
    """Draw the published figure and the peer; returns their legend entries."""
    published = load_reference("published", "holland-vaidya_fig1")
    (paper,) = axes.plot(*published.series("hops", METRIC), color=style.PUBLISHED.colour, marker=style.PUBLISHED.marker,
                         linestyle="-", linewidth=0.9, zorder=2)  # fmt: skip
    hops, rates = load_reference("peers", "wmediumd").series("hops", "goodput_kbps")
    peer = style.PEER
    (points,) = axes.plot(hops, rates, color=peer.colour, marker=peer.marker, markersize=7, linestyle="", zorder=2)
    steps = [1 + step / 20 for step in range(181)]
    axes.plot(steps, [rates[0] / step for step in steps], color=peer.colour, linewidth=0.9, linestyle=":", zorder=1)
    axes.annotate("1/n, one sender at a time", (5.5, rates[0] / 5.5), xytext=(5, 4), textcoords="offset points",
                  color=peer.colour, fontsize=7.5)  # fmt: skip
    return {"Holland and Vaidya 1999, figure 1": paper, peer.name: points}
