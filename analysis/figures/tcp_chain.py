"""TCP throughput over a static chain against its length, one colour per TCP.

Filled markers: this testbed (Linux's stack with the algorithm as eBPF or its own; 95 % intervals where a point has several
runs), ringed in black where a run is suspect. Open markers: ns-2.35's TCP of the same name (analysis/ns2/tcp_chain.csv names
the routes). Below: this testbed over ns-2.35, with the band of 10 % that the testbed is held to at full size.
"""

from pathlib import Path

from matplotlib.axes import Axes

from analysis.drawing import chains

AXES = ("hops",)  # of the experiment
BAND = 0.10
TICKS = (100, 150, 200, 300, 400, 600, 800, 1000, 1500)


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    return chains.draw(out_dir, "tcp_chain", BAND, _draw_throughput)


def _draw_throughput(axes: Axes, measured: chains.ByVariant) -> None:
    chains.draw_throughput(axes, measured, TICKS)
    low, high = axes.dataLim.intervaly
    axes.set_ylim(min(150, 0.9 * low), max(1500, 1.1 * high))
