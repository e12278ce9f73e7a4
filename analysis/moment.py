"""The network at one instant, as plain data: what the map draws (map_picture.py) and prints (map_text.py).

Of a run under way testbed/runs/live_map.py puts it together; of one that has ended, and of a movement file, past_moment.py here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Way:
    """How a flow's packets go. `nodes`: the source and every node that they come to. `stop`: why they come no further, empty
    where the last node is the target; `towards`: the next hop that they are sent to in vain, if there is one."""

    flow: str
    source: str
    target: str
    nodes: tuple[str, ...] = ()
    stop: str = ""
    towards: str = ""
    rate: str = ""

    @property
    def told(self) -> str:
        """One line: `3 hops, 512 kbit/s` or `sta3: no route`."""
        hops = len(self.nodes) - 1
        said = self.stop or f"{hops} hop{'' if hops == 1 else 's'}"
        return f"{said}, {self.rate}" if self.rate else said


@dataclass(frozen=True)
class Moment:
    """`places`: metres, by station. `links`: (from, to) for each direction in which frames are received. `off`: stations that
    nobody hears, switched off or cut off. `wires`: (station, wired host). Ranges are None where the radio has no one."""

    title: str
    places: Mapping[str, tuple[float, float]]
    links: frozenset[tuple[str, str]] = frozenset()
    off: frozenset[str] = frozenset()
    wires: tuple[tuple[str, str], ...] = ()
    ways: tuple[Way, ...] = ()
    range_m: float | None = None
    sense_m: float | None = None
    area: tuple[float, float] | None = None
    note: str = field(default="")

    @property
    def both_ways(self) -> list[tuple[str, str]]:
        """Links over which frames come in both directions, each once."""
        return sorted((a, b) for a, b in self.links if a < b and (b, a) in self.links)

    @property
    def one_way(self) -> list[tuple[str, str]]:
        """Directed links (source, target) whose opposite direction does not exist."""
        return sorted((a, b) for a, b in self.links if (b, a) not in self.links)

    @property
    def ranges(self) -> str:
        """`range 250 m, sensed 550 m`; empty where there is no one range."""
        known = [("range", self.range_m), ("sensed", self.sense_m)]
        return ", ".join(f"{name} {value:.0f} m" for name, value in known if value is not None)

    def bounds(self) -> tuple[float, float, float, float]:
        """x0, x1, y0, y1 (m) of the area and of everybody in or outside of it; never empty."""
        xs, ys = (list(values) for values in zip(*self.places.values(), strict=True))
        if self.area:
            xs, ys = [*xs, 0.0, self.area[0]], [*ys, 0.0, self.area[1]]
        return min(xs), max(xs), min(ys), max(ys)
