"""Throughput (kbit/s) by routing protocol, TCP and hops or nodes, in the form of the papers' tables.

The colour is the ratio to ns-2.35's value, or without one to the published value; the small number below is the ratio to the
published value. White is equal to the reference, blue is less, red more, up to a factor of two; grey cells have no reference. A
cell without any run that counts is empty.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from analysis.drawing import shared, style
from analysis.tables.digits import with_interval
from analysis.tables.results import Row, read_summary

AXES = ("routing", "tcp")  # of the experiment
METRIC = "acked_kbps"
COLUMNS = ("hops", "nodes", "variant")  # columns of a table: the first of these axes that the experiment has
ROUTING = ("dsdv", "olsr", "aodv", "aodv-ns2", "dsr", "dsr-ns2", "tora")
TCPS = ("tahoe", "reno", "newreno", "sack", "vegas")
FACTOR = 2.0  # the ratio of the most saturated colour
WITHOUT = "#eeeeee"


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    summary = read_summary(out_dir)
    cells = [row for row in summary if row["metric"] == METRIC]
    column = next((key for key in COLUMNS if any(row.get(key) for row in cells)), None)
    routings = _in_order(cells, "routing", ROUTING)
    tcps = _in_order(cells, "tcp", TCPS)
    height_in = 0.9 + len(routings) * (0.45 + 0.32 * len(tcps))
    with style.page(out_dir, "rt_tables", height_in, nrows=len(routings)) as (axes, written):
        for table, routing in zip(axes, routings, strict=True):
            places = _places(cells, column)
            _draw_table(table, routing, tcps, places, [row for row in cells if row["routing"] == routing], column)
        shared.write_origin(axes[-1], out_dir, summary, METRIC)
    return written


def _in_order(cells: Iterable[Row], key: str, order: tuple[str, ...]) -> list[str]:
    """The values that occur, first the known ones in the papers' order."""
    values = list(dict.fromkeys(str(row[key]) for row in cells))
    return sorted(values, key=lambda value: (order.index(value) if value in order else len(order), values.index(value)))


def _places(cells: Iterable[Row], column: str | None) -> list[Any]:
    if column is None:
        return [None]
    values = list(dict.fromkeys(row[column] for row in cells))
    return values if column == "variant" else sorted(values)


def _draw_table(axes: Axes, routing: str, tcps: list[str], places: list[Any], cells: list[Row], column: str | None) -> None:
    colours = colormaps["RdBu_r"]
    scale = Normalize(-math.log(FACTOR), math.log(FACTOR))
    for row in cells:
        x = places.index(row[column]) if column else 0
        y = tcps.index(str(row["tcp"]))
        if row["mean"] is None:
            continue
        reference = row["ns2"] or row["published"]
        ratio = row["mean"] / reference if reference else None
        face = colours(scale(math.log(max(ratio, 1e-6)))) if ratio is not None else WITHOUT
        axes.fill_between([x - 0.5, x + 0.5], y - 0.5, y + 0.5, color=face, linewidth=0)
        strong = ratio is not None and abs(math.log(max(ratio, 1e-6))) > 0.7 * math.log(FACTOR)
        shade = "white" if strong else style.BLACK
        axes.text(x, y - 0.12, with_interval(row), ha="center", va="center", fontsize=6.5, color=shade)
        if row["published"]:
            axes.text(x, y + 0.27, f"{row['mean'] / row['published']:.2f}", ha="center", va="center", fontsize=5, color=shade)
    axes.set(xlim=(-0.5, len(places) - 0.5), ylim=(len(tcps) - 0.5, -0.5), title=_title(routing))
    axes.set_xticks(range(len(places)), [f"{place:g}" if isinstance(place, int | float) else place or "" for place in places])
    axes.set_yticks(range(len(tcps)), tcps)
    axes.grid(False)
    axes.tick_params(length=0)
    if column and column != "variant":
        axes.set_xlabel(column)


def _title(routing: str) -> str:
    protocol = routing.removesuffix("-ns2")
    return protocol.upper() if protocol == routing else f"{protocol.upper()} with ns-2's constants"
