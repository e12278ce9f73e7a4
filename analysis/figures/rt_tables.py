"""Throughput (kbit/s) by routing protocol, TCP and hops or nodes, in the form of the papers' tables.

The colour of a table is the ratio to ns-2.35's values if each of its cells has one, else to the published values; its title says
which. The small number below is the ratio to the published value. White is equal to the reference, blue is less, red more, up to
a factor of two; grey cells have no reference. A cell without any run that counts is empty; a TCP or protocol without any is not
shown.
"""

import math
from collections.abc import Iterable, Sequence
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
REFERENCES = {"ns2": "ns-2.35", "published": "the paper"}
LEGEND = "kbit/s; below it the ratio to the paper; red: more, blue: less, white: equal"


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    summary = read_summary(out_dir)
    cells = [row for row in summary if row["metric"] == METRIC]
    column = next((key for key in COLUMNS if any(row.get(key) for row in cells)), None)
    routings = _in_order(cells, "routing", ROUTING)
    places = _places(cells, column)
    tables = {routing: [row for row in cells if row["routing"] == routing and row["mean"] is not None] for routing in routings}
    tables = {routing: rows for routing, rows in tables.items() if rows} or {routing: [] for routing in routings}
    tcps = {routing: _in_order(rows or cells, "tcp", TCPS) for routing, rows in tables.items()}
    heights = [0.45 + 0.32 * len(each) for each in tcps.values()]
    with style.page(out_dir, "rt_tables", 0.9 + sum(heights), nrows=len(tables), height_ratios=heights) as (axes, written):
        for table, (routing, rows) in zip(axes, tables.items(), strict=True):
            _draw_table(table, routing, tcps[routing], places, rows, column)
        axes[0].figure.suptitle(LEGEND, fontsize=6.5, color=style.GREY)
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


def _draw_table(axes: Axes, routing: str, tcps: list[str], places: list[Any], drawn: Sequence[Row], column: str | None) -> None:
    reference = "ns2" if drawn and all(row["ns2"] for row in drawn) else "published"
    colours = colormaps["RdBu_r"]
    scale = Normalize(-math.log(FACTOR), math.log(FACTOR))
    for row in drawn:
        x = places.index(row[column]) if column else 0
        y = tcps.index(str(row["tcp"]))
        ratio = row["mean"] / row[reference] if row[reference] else None
        face = colours(scale(math.log(max(ratio, 1e-6)))) if ratio is not None else WITHOUT
        axes.fill_between([x - 0.5, x + 0.5], y - 0.5, y + 0.5, color=face, linewidth=0)
        strong = ratio is not None and abs(math.log(max(ratio, 1e-6))) > 0.7 * math.log(FACTOR)
        shade = "white" if strong else style.BLACK
        measured = with_interval(row if shared.has_interval(row) else {**row, "ci95": None})
        axes.text(x, y - 0.12, measured, ha="center", va="center", fontsize=6.5, color=shade)
        if row["published"]:
            axes.text(x, y + 0.27, f"{row['mean'] / row['published']:.2f}", ha="center", va="center", fontsize=5, color=shade)
    axes.set(xlim=(-0.5, len(places) - 0.5), ylim=(len(tcps) - 0.5, -0.5))
    beside = f" (colour: beside {REFERENCES[reference]})" if any(row[reference] for row in drawn) else ""
    axes.set_title(f"{_title(routing)}{beside}")
    axes.set_xticks(range(len(places)), [f"{place:g}" if isinstance(place, int | float) else place or "" for place in places])
    axes.set_yticks(range(len(tcps)), tcps)
    axes.grid(False)
    axes.tick_params(length=0)
    if column and column != "variant":
        axes.set_xlabel(column)


def _title(routing: str) -> str:
    protocol = routing.removesuffix("-ns2")
    return protocol.upper() if protocol == routing else f"{protocol.upper()} with ns-2's constants"
