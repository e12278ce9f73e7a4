"""TCP throughput over a static chain against its length, after Holland and Vaidya (1999), figure 1.

Filled markers: this testbed (Linux TCP; 95 % intervals if a point has several runs), one colour per variant, ringed in black if a
run is suspect; the line at the bottom names the runs. Open markers: ns-2.35 with the same settings. Crosses: the published
figure. Plus signs: Mininet-WiFi with wmediumd, which has no contention and so follows one n-th of one hop (dotted; goodput).
Below: this testbed over ns-2.35; the grey band, 7 %, is the bound at full size (the quick size, one short run per point: 12 %).
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis.drawing import chains, style
from analysis.references import load_reference

AXES = ("hops",)  # of the experiment
BAND = 0.07
TICKS = (150, 200, 300, 400, 600, 800, 1000, 1500)


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    return chains.draw(out_dir, "hv_fig1", BAND, _draw_throughput, below=1, hops=range(1, 11))


def _draw_throughput(axes: Axes, measured: chains.ByVariant) -> None:
    chains.draw_throughput(axes, measured, TICKS, others=_draw_others(axes))
    low, high = axes.dataLim.intervaly
    axes.set_ylim(min(150, 0.9 * low), max(2000, 1.1 * high))


def _draw_others(axes: Axes) -> dict[str, Any]:
    """Draw the published figure and the peer; returns their legend entries."""
    published = load_reference("published", "holland-vaidya_fig1")
    (paper,) = axes.plot(*published.series("hops", chains.METRIC), color=style.PUBLISHED.colour, marker=style.PUBLISHED.marker,
                         linestyle="-", linewidth=0.9, zorder=2)  # fmt: skip
    hops, rates = load_reference("peers", "wmediumd").series("hops", "goodput_kbps")
    peer = style.PEER
    (points,) = axes.plot(hops, rates, color=peer.colour, marker=peer.marker, markersize=7, linestyle="", zorder=2)
    steps = [1 + step / 20 for step in range(181)]
    axes.plot(steps, [rates[0] / step for step in steps], color=peer.colour, linewidth=0.9, linestyle=":", zorder=1)
    axes.annotate("1/n, one sender at a time", (5.5, rates[0] / 5.5), xytext=(5, 4), textcoords="offset points",
                  color=peer.colour, fontsize=7.5)  # fmt: skip
    return {"Holland and Vaidya 1999, figure 1": paper, peer.name: points}
