"""TCP throughput over a static chain with routing daemons, against its length.

Filled markers: this testbed (Linux TCP and real daemons; 95 % intervals where a point has several runs), one colour a
protocol, ringed in black where a run is suspect. Open markers: ns-2.35's protocols of the same name with the same radio and TCP.
Below: this testbed over ns-2.35, with the band of 15 % that the testbed is held to at full size. The loss against static routes
is caused by the protocol: by its packets, and by routes that it gives up when contention looks like a broken link. ns-2 sends the
IP header twice with DSDV, DSR and static routes (1.7 % at one hop).
"""

from pathlib import Path

from matplotlib.axes import Axes

from analysis.drawing import chains

AXES = ("hops",)  # of the experiment
BAND = 0.15
TICKS = (20, 50, 100, 150, 200, 300, 400, 600, 800, 1000, 1500)


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    return chains.draw(out_dir, "routing_chain", BAND, _draw_throughput)


def _draw_throughput(axes: Axes, measured: chains.ByVariant) -> None:
    chains.draw_throughput(axes, measured, TICKS, "lower left", "\n")
    # intervals of protocols with almost no throughput would take most of the page
    means = [row["mean"] for rows in measured.values() for row in rows if row["mean"]] or [100]
    axes.set_ylim(min(100, 0.6 * min(means)), max(1500, 1.1 * max(means)))
