"""The map: a picture of the network at one instant, after Mininet-WiFi's `plotGraph`, which shows stations and ranges alone.

Points: stations, hollow where nobody hears them. Grey lines: links (dotted: one direction only). Thin circles: how far a radio is
received, dotted ones how far it is sensed; with more than CIRCLES stations only of those on a way. Arrows: the way of each
flow, hop by hop; where it stops there is a cross, and a dashed arrow to the next hop that does not hear it. Squares:
wired hosts, drawn beside their gateways.

The file is written whole or not at all, so that whoever shows it again and again never sees half of it.
"""

import math
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch

from analysis import style
from analysis.errors import RunFileError
from analysis.moment import Moment, Way

CIRCLES = 12  # with more stations than this circles of all would hide everything else
WIDTH_IN = 8.0
MAX_HEIGHT_IN, MIN_HEIGHT_IN = 8.0, 2.4  # of the axes
COLOURS = (style.VERMILION, style.BLUE, style.GREEN, style.PURPLE, style.ORANGE, style.SKY, style.BLACK)
LINK = "#b8b8b8"
CIRCLE = "#8fa8bd"
LEGEND_ROWS = 12  # more flows than this are drawn and not listed
_one_at_a_time = threading.Lock()  # matplotlib's settings are the process's

Point = tuple[float, float]


def draw(moment: Moment, file: Path) -> Path:
    """Draws into `file`, a PNG."""
    if file.suffix != ".png":
        raise RunFileError(f"{file}: a map is written as .png; give a name that ends so")
    beside = file.with_name(f".{file.name}.part")
    with _one_at_a_time, mpl.rc_context(style.SETTINGS):
        figure = _figure(moment)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(beside, format="png", dpi=150)
            beside.replace(file)
        except OSError as problem:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            raise RunFileError(f"{file}: {problem.strerror}; give another file") from None
    return file


def _figure(moment: Moment) -> Figure:
    x0, x1, y0, y1 = _limits(moment)
    rows = min(len(moment.ways), LEGEND_ROWS)
    tall = min(max((WIDTH_IN - 0.9) * (y1 - y0) / (x1 - x0), MIN_HEIGHT_IN), MAX_HEIGHT_IN)
    figure = Figure(figsize=(WIDTH_IN, tall + 0.9 + 0.17 * (rows + 2)))
    axes = figure.add_subplot()
    axes.set(xlim=(x0, x1), ylim=(y0, y1), xlabel="metres", ylabel="metres")
    axes.set_aspect("equal", adjustable="box")
    axes.set_axisbelow(True)
    axes.set_title(moment.title, loc="left")
    _draw_area(axes, moment)
    _draw_circles(axes, moment)
    _draw_links(axes, moment)
    hosts = _draw_wires(axes, moment)
    for number, way in enumerate(moment.ways):
        _draw_way(axes, {**moment.places, **hosts}, way, number)
    _draw_stations(axes, moment)
    figure.legend(handles=_legend(moment), loc="outside lower left", fontsize=7.5, handlelength=2.6)
    return figure


def _limits(moment: Moment) -> tuple[float, float, float, float]:
    """Of the axes: the area with a margin, wide enough that few stations' circles of reception are seen."""
    x0, x1, y0, y1 = moment.bounds()
    wide, high = x1 - x0, y1 - y0
    across = up = max(0.07 * wide, 0.07 * high, 10.0)
    if moment.range_m and len(moment.places) <= CIRCLES:
        along, aside = max(across, 0.45 * moment.range_m), max(up, 1.05 * moment.range_m)
        across, up = (along, aside) if wide >= high else (aside, along)
    up = max(up, (0.3 * (wide + 2 * across) - high) / 2)  # no strip: the legend is beneath
    across = max(across, (0.6 * (high + 2 * up) - wide) / 2)
    return x0 - across, x1 + across, y0 - up, y1 + up


def _draw_area(axes: Axes, moment: Moment) -> None:
    if moment.area:
        (width, height) = moment.area
        axes.plot([0, width, width, 0, 0], [0, 0, height, height, 0], color=style.BLACK, linewidth=0.6, zorder=1)


def _draw_circles(axes: Axes, moment: Moment) -> None:
    on_a_way = {node for way in moment.ways for node in way.nodes}
    for name in _circled(moment):
        strong = len(moment.places) <= CIRCLES or name in on_a_way
        for radius_m, line, width in ((moment.range_m, "-", 0.8), (moment.sense_m, ":", 0.7)):
            if radius_m:
                look = {"fill": False, "edgecolor": CIRCLE, "linestyle": line, "linewidth": width, "zorder": 1.5}
                axes.add_patch(Circle(moment.places[name], radius_m, alpha=0.9 if strong else 0.4, **look))


def _circled(moment: Moment) -> list[str]:
    """Whose circles are drawn."""
    heard = [name for name in moment.places if name not in moment.off]
    if len(heard) <= CIRCLES:
        return heard
    on_a_way = {node for way in moment.ways for node in way.nodes}
    chosen = [name for name in heard if name in on_a_way]
    return chosen if len(chosen) <= CIRCLES else [name for name in heard if name in {way.source for way in moment.ways}][:CIRCLES]


def _draw_links(axes: Axes, moment: Moment) -> None:
    for pairs, line in ((moment.both_ways, "-"), (moment.one_way, ":")):
        for a, b in pairs:
            xs, ys = zip(moment.places[a], moment.places[b], strict=True)
            axes.plot(xs, ys, color=LINK, linewidth=0.6, linestyle=line, zorder=2)


def _draw_wires(axes: Axes, moment: Moment) -> dict[str, Point]:
    """Draws wired hosts outwards of their gateways; where they are drawn."""
    x0, x1 = axes.get_xlim()
    away_m = 0.06 * (x1 - x0)
    places: dict[str, Point] = {}
    for host in dict.fromkeys(host for _, host in moment.wires):
        gates = [moment.places[station] for station, other in moment.wires if other == host]
        x, y = (sum(values) / len(gates) for values in zip(*gates, strict=True))
        right = 1 if x >= (x0 + x1) / 2 else -1
        up = sum(1 for place in places.values() if math.dist(place, (x + right * away_m, y)) < away_m)
        places[host] = (x + right * away_m, y + up * away_m)
        for gate in gates:
            axes.plot(*zip(gate, places[host], strict=True), color=style.BLACK, linewidth=1.0, zorder=2, clip_on=False)
        axes.plot(*places[host], marker="s", markersize=5, color=style.BLACK, zorder=5, clip_on=False)
        axes.annotate(host, places[host], xytext=(0, -11), textcoords="offset points", fontsize=7, ha="center", zorder=7,
                      annotation_clip=False)  # fmt: skip
    return places


def _draw_way(axes: Axes, places: dict[str, Point], way: Way, number: int) -> None:
    colour = COLOURS[number % len(COLOURS)]
    bend = 0.06 + 0.07 * (number % 5)  # ways over the same hop lie beside each other, those back on its other side
    for a, b in zip(way.nodes, way.nodes[1:], strict=False):
        if a in places and b in places:
            axes.add_patch(_arrow(places[a], places[b], bend, color=colour, linewidth=1.8))
    last = places.get(way.nodes[-1]) if way.nodes else places.get(way.source)
    if not way.stop or last is None:
        return
    cross = last
    if way.towards in places:
        ahead = places[way.towards]
        axes.add_patch(_arrow(last, ahead, bend, color=colour, linewidth=1.2, linestyle=(0, (3, 2))))
        # the middle of the bent line: matplotlib's arc3 bends by half of `rad` times the distance, to the right
        dx, dy = ahead[0] - last[0], ahead[1] - last[1]
        cross = (last[0] + dx / 2 + bend * dy / 2, last[1] + dy / 2 - bend * dx / 2)
    axes.plot(*cross, marker="x", markersize=11, markeredgewidth=2.6, color=colour, zorder=6)


def _arrow(a: Point, b: Point, bend: float, **look: object) -> FancyArrowPatch:
    return FancyArrowPatch(
        a, b, arrowstyle="-|>", mutation_scale=9, connectionstyle=f"arc3,rad={bend}", shrinkA=3, shrinkB=4, zorder=4, **look
    )


def _draw_stations(axes: Axes, moment: Moment) -> None:
    many = len(moment.places) > 20
    size, ends = 6.2 if many else 8, {end for way in moment.ways for end in (way.source, way.target)}
    offsets = _name_offsets(moment.places, size, (axes.get_xlim()[1] - axes.get_xlim()[0]) / ((WIDTH_IN - 0.9) * 72))
    for name, place in moment.places.items():
        fill = "white" if name in moment.off else style.BLACK
        axes.plot(*place, marker="o", markersize=4 if many else 5.5, color=fill, markeredgecolor=style.BLACK,
                  markeredgewidth=0.9, linestyle="", zorder=5)  # fmt: skip
        label = axes.annotate(
            name, place, xytext=offsets[name], textcoords="offset points", fontsize=size, zorder=7, va="center", ha="center",
            fontweight="bold" if name in ends else "normal", color=style.GREY if name in moment.off else style.BLACK,
        )  # fmt: skip
        label.set_bbox({"facecolor": "white", "alpha": 0.65, "edgecolor": "none", "pad": 0.3})


def _name_offsets(places: Mapping[str, Point], size: float, metres_a_point: float) -> dict[str, Point]:
    """Where each name goes, points from its station: of eight places around it the one that hides least of others."""
    points = {name: (x / metres_a_point, y / metres_a_point) for name, (x, y) in places.items()}
    taken = [(x, y, 3.0, 3.0) for x, y in points.values()]  # middle, half width, half height
    chosen: dict[str, Point] = {}
    for name, (x, y) in points.items():
        wide, high = 0.32 * size * len(name), 0.55 * size
        across, up = wide + 3, high + 3
        around = [
            (across, up),
            (-across, up),
            (across, -up),
            (-across, -up),
            (across + 1, 0),
            (-across - 1, 0),
            (0, up),
            (0, -up),
        ]
        hidden = [sum(_overlap((x + dx, y + dy, wide, high), other) for other in taken) for dx, dy in around]
        chosen[name] = dx, dy = around[hidden.index(min(hidden))]
        taken.append((x + dx, y + dy, wide, high))
    return chosen


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The area (points squared) that two boxes share."""
    sides = (
        min(one[i] + one[i + 2], other[i] + other[i + 2]) - max(one[i] - one[i + 2], other[i] - other[i + 2]) for i in (0, 1)
    )
    return math.prod(max(0.0, side) for side in sides)


def _legend(moment: Moment) -> list[Line2D]:
    """A line for each flow, and one that says what the rest is."""
    handles = [
        Line2D(
            [],
            [],
            color=COLOURS[number % len(COLOURS)],
            linewidth=1.8,
            label=f"{way.flow}  {way.source} \u2192 {way.target}: {way.told}",
            marker="x" if way.stop else "",
            markersize=7,
            markeredgewidth=2,
        )
        for number, way in enumerate(moment.ways[:LEGEND_ROWS])
    ]
    if len(moment.ways) > LEGEND_ROWS:
        handles.append(Line2D([], [], linestyle="", label=f"and {len(moment.ways) - LEGEND_ROWS} flows more"))
    links = f"{len(moment.both_ways)} links" + (f", {len(moment.one_way)} one way (dotted)" if moment.one_way else "")
    handles.append(Line2D([], [], color=LINK, linewidth=0.8, label=links))
    if moment.ranges:
        whose = "" if len(_circled(moment)) == len(moment.places) - len(moment.off) else " (circles: of stations on a way)"
        handles.append(
            Line2D([], [], color=CIRCLE, linewidth=0.9, label=moment.ranges + (", dotted" if moment.sense_m else "") + whose)
        )
    if moment.off:
        handles.append(
            Line2D(
                [], [], color="white", marker="o", markeredgecolor=style.BLACK, linestyle="", markersize=5, label="nobody hears"
            )
        )
    if moment.note:
        handles.append(Line2D([], [], linestyle="", label=moment.note))
    return handles
