"""The map: a picture of the network at one instant, after Mininet-WiFi's `plotGraph`, which shows stations and ranges alone.

Points: stations, hollow if switched off. Grey lines: links (dotted: one direction only). Thin circles: the range of reception;
dotted circles: the range of carrier sense. With more than CIRCLES stations, only stations on a path have circles. Arrows: the
path of each flow, hop by hop. A cross marks a path that ends before the target, a dashed arrow the next hop that does not
receive. Squares: wired hosts at their gateways. Triangles: jammers. A short line at a station: the main lobe of its antenna.
Thick lines: walls.

The file is written atomically, so that a viewer that reloads it never reads half of it.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch

from analysis.drawing import style
from analysis.maps.map_text import UNKNOWN
from analysis.maps.snapshot import FlowPath, Snapshot
from record.errors import RunFileError
from record.files import atomic_file

CIRCLES = 12  # with more stations, the circles of all stations would hide everything else
WIDTH_IN = 8.0
MAX_HEIGHT_IN, MIN_HEIGHT_IN = 8.0, 2.4  # of the axes
COLOURS = (style.VERMILION, style.BLUE, style.GREEN, style.PURPLE, style.ORANGE, style.SKY, style.BLACK)
LINK = "#b8b8b8"
CIRCLE = "#8fa8bd"
LOBE_POINTS = 14.0  # length of the line of a main lobe
WALL = "#7a5c3e"
LEGEND_ROWS = 12  # more flows than this are drawn and not listed

Point = tuple[float, float]


def draw(snapshot: Snapshot, file: Path) -> Path:
    """Draw into `file`, a PNG; returns it. RunFileError for another suffix or a file that cannot be written."""
    if file.suffix != ".png":
        raise RunFileError(f"{file}: a map is a .png file; give a name that ends in .png")
    with style.settings():
        figure = figure_of(snapshot)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(file, "wb") as opened:
                figure.savefig(opened, format="png", dpi=150)
        except OSError as problem:
            raise RunFileError(f"{file}: {problem.strerror}; give another file") from None
    return file


def figure_of(snapshot: Snapshot) -> style.FigurePage:
    """The picture; within `style.settings`."""
    x0, x1, y0, y1 = _limits(snapshot)
    rows = min(len(snapshot.paths), LEGEND_ROWS)
    tall = min(max((WIDTH_IN - 0.9) * (y1 - y0) / (x1 - x0), MIN_HEIGHT_IN), MAX_HEIGHT_IN)
    figure = style.FigurePage(figsize=(WIDTH_IN, tall + 0.9 + 0.17 * (rows + 2)))
    axes = figure.add_subplot()
    axes.set(xlim=(x0, x1), ylim=(y0, y1), xlabel="metres", ylabel="metres")
    axes.set_aspect("equal", adjustable="box")
    axes.set_axisbelow(True)
    axes.set_title(snapshot.title, loc="left")
    _draw_area(axes, snapshot)
    _draw_walls(axes, snapshot)
    _draw_circles(axes, snapshot)
    _draw_links(axes, snapshot)
    hosts = _draw_wires(axes, snapshot)
    for number, flow_path in enumerate(snapshot.paths):
        _draw_path(axes, {**snapshot.places, **hosts}, flow_path, number)
    _draw_stations(axes, snapshot)
    _draw_jammers(axes, snapshot)
    figure.legend(handles=_legend(snapshot), loc="outside lower left", fontsize=7.5, handlelength=2.6)
    return figure


def _limits(snapshot: Snapshot) -> tuple[float, float, float, float]:
    """Limits of the axes: the area and a margin. With few stations, the margin is wide enough for their circles of reception."""
    x0, x1, y0, y1 = snapshot.bounds()
    wide, high = x1 - x0, y1 - y0
    across = up = max(0.07 * wide, 0.07 * high, 10.0)
    if snapshot.range_m and len(snapshot.places) <= CIRCLES:
        along, aside = max(across, 0.45 * snapshot.range_m), max(up, 1.05 * snapshot.range_m)
        across, up = (along, aside) if wide >= high else (aside, along)
    up = max(up, (0.3 * (wide + 2 * across) - high) / 2)  # not a narrow strip, because the legend is below
    across = max(across, (0.6 * (high + 2 * up) - wide) / 2)
    return x0 - across, x1 + across, y0 - up, y1 + up


def _draw_area(axes: Axes, snapshot: Snapshot) -> None:
    if snapshot.area:
        (width, height) = snapshot.area
        axes.plot([0, width, width, 0, 0], [0, 0, height, height, 0], color=style.BLACK, linewidth=0.6, zorder=1)


def _draw_walls(axes: Axes, snapshot: Snapshot) -> None:
    for wall in snapshot.walls:
        axes.plot(*zip(*wall, strict=True), color=WALL, linewidth=2.4, solid_capstyle="butt", zorder=1.2)


def _draw_circles(axes: Axes, snapshot: Snapshot) -> None:
    on_a_path = {node for flow_path in snapshot.paths for node in flow_path.nodes}
    for name in _circled(snapshot):
        strong = len(snapshot.places) <= CIRCLES or name in on_a_path
        for radius_m, line, width in ((snapshot.range_m, "-", 0.8), (snapshot.sense_m, ":", 0.7)):
            if radius_m:
                options = {"fill": False, "edgecolor": CIRCLE, "linestyle": line, "linewidth": width, "zorder": 1.5}
                axes.add_patch(Circle(snapshot.places[name], radius_m, alpha=0.9 if strong else 0.4, **options))


def _circled(snapshot: Snapshot) -> list[str]:
    """Stations whose circles are drawn."""
    heard = [name for name in snapshot.places if name not in snapshot.off]
    if len(heard) <= CIRCLES:
        return heard
    on_a_path = {node for flow_path in snapshot.paths for node in flow_path.nodes}
    chosen = [name for name in heard if name in on_a_path]
    if len(chosen) <= CIRCLES:
        return chosen
    sources = {flow_path.source for flow_path in snapshot.paths}
    return [name for name in heard if name in sources][:CIRCLES]


def _draw_links(axes: Axes, snapshot: Snapshot) -> None:
    for pairs, line in ((snapshot.bidirectional, "-"), (snapshot.unidirectional, ":")):
        for a, b in pairs:
            xs, ys = zip(snapshot.places[a], snapshot.places[b], strict=True)
            axes.plot(xs, ys, color=LINK, linewidth=0.6, linestyle=line, zorder=2)


def _draw_wires(axes: Axes, snapshot: Snapshot) -> dict[str, Point]:
    """Draw each wired host on the outer side of its gateways; returns their positions."""
    x0, x1 = axes.get_xlim()
    away_m = 0.06 * (x1 - x0)
    places: dict[str, Point] = {}
    for host in dict.fromkeys(host for _, host in snapshot.wires):
        gates = [snapshot.places[station] for station, other in snapshot.wires if other == host]
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


def _draw_path(axes: Axes, places: dict[str, Point], flow_path: FlowPath, number: int) -> None:
    colour = COLOURS[number % len(COLOURS)]
    # paths over the same hop are drawn side by side, paths in the other direction on the other side
    bend = 0.06 + 0.07 * (number % 5)
    for a, b in zip(flow_path.nodes, flow_path.nodes[1:], strict=False):
        if a in places and b in places:
            axes.add_patch(_arrow(places[a], places[b], bend, color=colour, linewidth=1.8))
    last = places.get(flow_path.nodes[-1]) if flow_path.nodes else places.get(flow_path.source)
    if not flow_path.stop or last is None:
        return
    cross = last
    if flow_path.towards in places:
        ahead = places[flow_path.towards]
        axes.add_patch(_arrow(last, ahead, bend, color=colour, linewidth=1.2, linestyle=(0, (3, 2))))
        # the middle of the bent line: matplotlib's arc3 bends by half of `rad` times the distance, to the right
        dx, dy = ahead[0] - last[0], ahead[1] - last[1]
        cross = (last[0] + dx / 2 + bend * dy / 2, last[1] + dy / 2 - bend * dx / 2)
    axes.plot(*cross, marker="x", markersize=11, markeredgewidth=2.6, color=colour, zorder=6)


def _arrow(a: Point, b: Point, bend: float, **options: Any) -> FancyArrowPatch:
    return FancyArrowPatch(
        a, b, arrowstyle="-|>", mutation_scale=9, connectionstyle=f"arc3,rad={bend}", shrinkA=3, shrinkB=4, zorder=4, **options
    )


def _draw_stations(axes: Axes, snapshot: Snapshot) -> None:
    many = len(snapshot.places) > 20
    size, ends = 6.2 if many else 8, {end for flow_path in snapshot.paths for end in (flow_path.source, flow_path.target)}
    offsets = _name_offsets(snapshot.places, size, (axes.get_xlim()[1] - axes.get_xlim()[0]) / ((WIDTH_IN - 0.9) * 72))
    for name, place in snapshot.places.items():
        fill = "white" if name in snapshot.off else style.BLACK
        axes.plot(*place, marker="o", markersize=4 if many else 5.5, color=fill, markeredgecolor=style.BLACK,
                  markeredgewidth=0.9, linestyle="", zorder=5)  # fmt: skip
        label = axes.annotate(
            name, place, xytext=offsets[name], textcoords="offset points", fontsize=size, zorder=7, va="center", ha="center",
            fontweight="bold" if name in ends else "normal", color=style.GREY if name in snapshot.off else style.BLACK,
        )  # fmt: skip
        label.set_bbox({"facecolor": "white", "alpha": 0.65, "edgecolor": "none", "pad": 0.3})


def _draw_jammers(axes: Axes, snapshot: Snapshot) -> None:
    for name, place in snapshot.jammers.items():
        axes.plot(
            *place, marker="^", markersize=8, color="white", markeredgecolor=style.VERMILION, markeredgewidth=1.5, zorder=4.5
        )
        axes.annotate(name, place, xytext=(0, 8), textcoords="offset points", fontsize=7, ha="center", color=style.VERMILION,
                      zorder=7)  # fmt: skip
    for name, azimuth_deg in snapshot.azimuths.items():
        tip = (LOBE_POINTS * math.cos(math.radians(azimuth_deg)), LOBE_POINTS * math.sin(math.radians(azimuth_deg)))
        line = {"arrowstyle": "-", "color": style.BLACK, "linewidth": 2.0}
        axes.annotate("", snapshot.places[name], xytext=tip, textcoords="offset points", arrowprops=line, zorder=4.5)


def _name_offsets(places: Mapping[str, Point], size: float, metres_per_point: float) -> dict[str, Point]:
    """Offset of each name from its station, in points: the place with the least overlap of eight around the station."""
    points = {name: (x / metres_per_point, y / metres_per_point) for name, (x, y) in places.items()}
    taken = [(x, y, 3.0, 3.0) for x, y in points.values()]  # middle, half width, half height
    chosen: dict[str, Point] = {}
    for name, (x, y) in points.items():
        wide, high = 0.32 * size * len(name), 0.55 * size
        across, up = wide + 3, high + 3
        corners = [(across, up), (-across, up), (across, -up), (-across, -up)]
        around = [*corners, (across + 1, 0), (-across - 1, 0), (0, up), (0, -up)]
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


def _legend(snapshot: Snapshot) -> list[Line2D]:
    """A line for each flow, and lines for links, ranges and stations that are off."""
    handles = [
        Line2D([], [], color=COLOURS[number % len(COLOURS)], linewidth=1.8, markersize=7, markeredgewidth=2,
               label=f"{flow_path.flow}  {flow_path.source} \u2192 {flow_path.target}: {flow_path.summary}",
               marker="x" if flow_path.stop else "")
        for number, flow_path in enumerate(snapshot.paths[:LEGEND_ROWS])
    ]  # fmt: skip
    if len(snapshot.paths) > LEGEND_ROWS:
        handles.append(Line2D([], [], linestyle="", label=f"and {len(snapshot.paths) - LEGEND_ROWS} flows more"))
    links = f"{len(snapshot.bidirectional)} links"
    links += f", {len(snapshot.unidirectional)} one way (dotted)" if snapshot.unidirectional else ""
    handles.append(Line2D([], [], color=LINK, linewidth=0.8, label=links if snapshot.links_known else UNKNOWN))
    if snapshot.ranges:
        all_circled = len(_circled(snapshot)) == len(snapshot.places) - len(snapshot.off)
        ranges = snapshot.ranges + (", dotted" if snapshot.sense_m else "")
        ranges += "" if all_circled else " (circles: only of stations on a path)"
        handles.append(Line2D([], [], color=CIRCLE, linewidth=0.9, label=ranges))
    if snapshot.walls:
        handles.append(Line2D([], [], color=WALL, linewidth=2.4, label="wall"))
    if snapshot.off:
        handles.append(Line2D([], [], color="white", marker="o", markeredgecolor=style.BLACK, linestyle="", markersize=5,
                              label="switched off"))  # fmt: skip
    if snapshot.note:
        handles.append(Line2D([], [], linestyle="", label=snapshot.note))
    return handles
