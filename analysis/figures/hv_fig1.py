"""TCP throughput over a static chain against its length, after Holland and Vaidya (1999), figure 1.

Filled markers: this testbed (Linux TCP, 95 % intervals), one colour a variant. Open markers: ns-2.35 with the same
settings. Crosses: the published figure. Plus signs: Mininet-WiFi with wmediumd, which has no contention and so
follows one n-th of one hop (dotted; goodput). Below: ours over ns-2's, with the band of 7 % that the testbed is held to.
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerTuple
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from analysis import style
from analysis.references import load_reference
from analysis.tables import read_summary

METRIC = "acked_kbps"
BAND = 0.07


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    out_dir = Path(out_dir)
    ours = _series(read_summary(out_dir))
    with style.page(out_dir, "hv_fig1", 5.4, nrows=2, sharex=True, height_ratios=[3, 1]) as (axes, written):
        _draw_throughput(axes[0], ours)
        _draw_ratios(axes[1], ours)
    return written


def _series(summary: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The cells of each variant that have a mean, by hops."""
    series: dict[str, list[dict[str, Any]]] = {}
    for row in summary:
        if row["metric"] == METRIC:
            series.setdefault(row["variant"] or "", [])
            if row["mean"] is not None:
                series[row["variant"] or ""].append(row)
    return {variant: sorted(rows, key=lambda row: row["hops"]) for variant, rows in series.items()}


def _draw_throughput(axes: Axes, ours: dict[str, list[dict[str, Any]]]) -> None:
    entries = _draw_others(axes)
    for position, (variant, rows) in enumerate(ours.items()):
        look = style.look(variant, position)
        reference = [(row["hops"], row["ns2"]) for row in rows if row["ns2"] is not None]
        (simulated,) = axes.plot([hops for hops, _ in reference], [rate for _, rate in reference], color=look.colour,
                                 marker=look.marker, markerfacecolor="white", markersize=7, linewidth=0.8, linestyle="--",
                                 zorder=3)  # fmt: skip
        measured = axes.errorbar([row["hops"] for row in rows], [row["mean"] for row in rows],
                                 yerr=[row["ci95"] or 0.0 for row in rows], color=look.colour, marker=look.marker,
                                 markersize=3.2, linestyle="-", capsize=2.5, elinewidth=0.9, zorder=4)  # fmt: skip
        entries[look.name] = (measured, simulated)
    axes.set_yscale("log")
    axes.set_ylabel("TCP throughput, acknowledged (kbit/s)")
    _label_ticks(axes.yaxis, [150, 200, 300, 400, 600, 800, 1000, 1500])
    low, high = axes.dataLim.intervaly
    axes.set_ylim(min(150, 0.9 * low), max(2000, 1.1 * high))
    axes.legend(entries.values(), entries.keys(), loc="upper right", handlelength=4, title_fontsize=7.5,
                title="filled: this testbed, 95 % intervals; open: ns-2.35", alignment="left",
                handler_map={tuple: HandlerTuple(ndivide=None)})  # fmt: skip


def _draw_others(axes: Axes) -> dict[str, Any]:
    """The published figure and the peer; returns their legend entries."""
    published = load_reference("published", "holland-vaidya_fig1")
    (paper,) = axes.plot(*published.series("hops", METRIC), color=style.PUBLISHED.colour, marker=style.PUBLISHED.marker,
                         linestyle="-", linewidth=0.9, zorder=2)  # fmt: skip
    hops, rates = load_reference("peers", "wmediumd").series("hops", "goodput_kbps")
    peer = style.PEER
    (points,) = axes.plot(hops, rates, color=peer.colour, marker=peer.marker, markersize=7, linestyle="", zorder=2)
    steps = [1 + step / 20 for step in range(181)]
    axes.plot(steps, [rates[0] / step for step in steps], color=peer.colour, linewidth=0.9, linestyle=":", zorder=1)
    axes.annotate("1/n, no contention", (5.5, rates[0] / 5.5), xytext=(5, 4), textcoords="offset points",
                  color=peer.colour, fontsize=7.5)  # fmt: skip
    return {"Holland and Vaidya 1999, figure 1": paper, peer.name: points}


def _draw_ratios(axes: Axes, ours: dict[str, list[dict[str, Any]]]) -> None:
    axes.axhspan(1 - BAND, 1 + BAND, color="#eeeeee", linewidth=0)
    axes.axhline(1, color=style.BLACK, linewidth=0.6)
    for position, (variant, rows) in enumerate(ours.items()):
        compared = [row for row in rows if row["ns2"]]
        look = style.look(variant, position)
        axes.errorbar([row["hops"] for row in compared], [row["mean"] / row["ns2"] for row in compared],
                      yerr=[(row["ci95"] or 0.0) / row["ns2"] for row in compared], color=look.colour, marker=look.marker,
                      markersize=3.5, capsize=2.5, elinewidth=0.9, linewidth=0.9)  # fmt: skip
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.85), max(high, 1.15))
    axes.set_ylabel("ours / ns-2.35")
    axes.set_xlabel("hops")
    _label_ticks(axes.xaxis, range(1, 11))
    axes.set_xlim(0.7, 10.3)


def _label_ticks(axis, values) -> None:
    """Plain numbers at these places, no powers of ten."""
    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(ScalarFormatter())
