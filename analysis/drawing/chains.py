"""TCP throughput over static chains against their length. Upper panel: this testbed (filled markers) and ns-2.35 with the same
settings (open). Lower panel: their ratio."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerTuple

from analysis.drawing import shared, style
from analysis.tables.results import read_summary

METRIC = "acked_kbps"
AXIS = "hops"
ByVariant = Mapping[str, list[dict[str, Any]]]  # rows of summary.csv by variant (shared.series)


def draw(
    out_dir: Path, name: str, band: float, draw_above: Callable[[Axes, ByVariant], None], below: float = 1.4,
    hops: Sequence[int] = (),
) -> list[Path]:  # fmt: skip
    """Draw from `out_dir`/summary.csv; returns the files written. `band`: by which a ratio may differ from 1; `below`: the height
    of the lower panel, where the upper one has 3; `hops`: on the axis, by default those measured."""
    summary = read_summary(out_dir)
    measured = shared.series(summary, METRIC, AXIS)
    lengths = hops or sorted({round(row[AXIS]) for rows in measured.values() for row in rows}) or [1]
    with style.page(out_dir, name, 5.4, nrows=2, sharex=True, height_ratios=[3, below]) as (axes, written):
        draw_above(axes[0], measured)
        _draw_ratios(axes[1], measured, band)
        axes[1].set_xlabel("hops")
        shared.label_ticks(axes[1].xaxis, range(lengths[0], lengths[-1] + 1))
        axes[1].set_xlim(lengths[0] - 0.3, lengths[-1] + 0.3)
        shared.write_origin(axes[1], out_dir, summary, METRIC)
    return written


def draw_throughput(
    axes: Axes, measured: ByVariant, ticks: Sequence[float], loc: Any = "upper right", between: str = "; ",
    others: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Draw each variant with filled markers and intervals, and its ns-2 numbers with open markers. `others`: further entries of
    the legend; `between`: the two parts of its title."""
    entries: dict[str, Any] = dict(others or {})
    for position, (variant, rows) in enumerate(measured.items()):
        mark = style.of_variant(variant, position)
        reference = [(row[AXIS], row["ns2"]) for row in rows if row["ns2"] is not None]
        (unfilled,) = axes.plot([place for place, _ in reference], [rate for _, rate in reference], color=mark.colour,
                                marker=mark.marker, markerfacecolor="white", markersize=7, linewidth=0.8, linestyle="--",
                                zorder=3)  # fmt: skip
        filled = axes.errorbar([row[AXIS] for row in rows], [row["mean"] for row in rows],
                               yerr=shared.half_widths(rows), color=mark.colour, marker=mark.marker,
                               markersize=3.2, linestyle="-", capsize=2.5, elinewidth=0.9, zorder=4)  # fmt: skip
        entries[mark.name] = (filled, unfilled)
    suspects = [(row[AXIS], row["mean"]) for rows in measured.values() for row in rows if row["suspect"]]
    if (rings := shared.ring_suspects(axes, suspects, shared.WITH_SUSPECTS)) is not None:
        entries[shared.WITH_SUSPECTS] = rings
    axes.set_yscale("log")
    axes.set_ylabel("TCP throughput, acknowledged (kbit/s)")
    shared.label_ticks(axes.yaxis, ticks)
    axes.legend(entries.values(), entries.keys(), loc=loc, handlelength=4, title_fontsize=7.5, alignment="left",
                title=f"filled: this testbed{_meaning(measured)}{between}open: ns-2.35",
                handler_map={tuple: HandlerTuple(ndivide=None)})  # fmt: skip


def _meaning(measured: ByVariant) -> str:
    """The meaning of a filled marker. It names intervals only if there are any."""
    rows = [row for of_variant in measured.values() for row in of_variant]
    if any(row["n"] > 1 for row in rows):
        return f", mean of {shared.runs_a_point(rows)}, 95 % intervals"
    return ", one run each" if rows else ""


def _draw_ratios(axes: Axes, measured: ByVariant, band: float) -> None:
    """This testbed over ns-2.35, with the band that the testbed is held to at full size."""
    axes.axhspan(1 - band, 1 + band, color="#eeeeee", linewidth=0)
    axes.annotate(f"grey: within {band:.0%} of ns-2.35, the bound at full size".replace("%", " %"), (0.01, 0.03),
                  xycoords="axes fraction", fontsize=6.5, color=style.GREY)  # fmt: skip
    axes.axhline(1, color=style.BLACK, linewidth=0.6)
    for position, (variant, rows) in enumerate(measured.items()):
        compared = [row for row in rows if row["ns2"]]
        mark = style.of_variant(variant, position)
        axes.errorbar([row[AXIS] for row in compared], [row["mean"] / row["ns2"] for row in compared],
                      yerr=shared.half_widths(compared, "ns2"), color=mark.colour, marker=mark.marker,
                      markersize=3.5, capsize=2.5, elinewidth=0.9, linewidth=0.9)  # fmt: skip
        shared.ring_suspects(axes, [(row[AXIS], row["mean"] / row["ns2"]) for row in compared if row["suspect"]])
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.85), max(high, 1.15))
    axes.set_ylabel("this testbed / ns-2.35")
