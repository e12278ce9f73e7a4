"""The network at one instant, as plain data, which the map draws (map_picture.py) and prints (map_text.py).

testbed/runs/live_map.py makes it of a running run, past_snapshot.py of an ended run and of a movement file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class FlowPath:
    """The path of a flow's packets. `nodes`: the source and every node that they reach. `stop`: why they get no further, empty if
    the last node is the target; `towards`: the next hop that does not receive them, if there is one."""

    flow: str
    source: str
    target: str
    nodes: tuple[str, ...] = ()
    stop: str = ""
    towards: str = ""
    rate: str = ""

    @property
    def summary(self) -> str:
        """One line: `3 hops, 512 kbit/s` or `sta3: no route`."""
        hops = len(self.nodes) - 1
        reached = self.stop or f"{hops} hop{'' if hops == 1 else 's'}"
        return f"{reached}, {self.rate}" if self.rate else reached


@dataclass(frozen=True)
class Snapshot:
    """`places`: metres, by station. `links`: (from, to) for each direction in which frames are received. `off`: stations that are
    switched off or cut off. `wires`: (station, wired host). Ranges are None if the radio has no single range. `jammers`: metres,
    by name. `azimuths`: degrees counterclockwise from the x axis, of stations whose antenna has a main lobe. `walls`: both ends
    of each, metres."""

    title: str
    places: Mapping[str, tuple[float, float]]
    links: frozenset[tuple[str, str]] = frozenset()
    off: frozenset[str] = frozenset()
    wires: tuple[tuple[str, str], ...] = ()
    paths: tuple[FlowPath, ...] = ()
    range_m: float | None = None
    sense_m: float | None = None
    area: tuple[float, float] | None = None
    note: str = field(default="")
    jammers: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    azimuths: Mapping[str, float] = field(default_factory=dict)
    walls: tuple[tuple[tuple[float, float], tuple[float, float]], ...] = ()
    links_known: bool = True  # False: an ended run whose stations have no single range

    @property
    def bidirectional(self) -> list[tuple[str, str]]:
        """Links with reception in both directions, each once."""
        return sorted((a, b) for a, b in self.links if a < b and (b, a) in self.links)

    @property
    def unidirectional(self) -> list[tuple[str, str]]:
        """Links (from, to) with reception in one direction only."""
        return sorted((a, b) for a, b in self.links if (b, a) not in self.links)

    @property
    def ranges(self) -> str:
        """`range 250 m, sensed 550 m`; empty without a single range."""
        known = [("range", self.range_m), ("sensed", self.sense_m)]
        return ", ".join(f"{name} {value:.0f} m" for name, value in known if value is not None)

    def bounds(self) -> tuple[float, float, float, float]:
        """x0, x1, y0, y1 (m) of the area, of all stations, in or outside of it, of jammers and of walls."""
        points = [*self.places.values(), *self.jammers.values(), *(end for wall in self.walls for end in wall)]
        xs, ys = (list(values) for values in zip(*points, strict=True))
        if self.area:
            xs, ys = [*xs, 0.0, self.area[0]], [*ys, 0.0, self.area[1]]
        return min(xs), max(xs), min(ys), max(ys)


def jammers_of(medium: Mapping[str, Any], places: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The positions of the jammers of a medium.json, by name: of one that follows a station that station's."""
    entries = medium.get("jammers", ())
    return {
        jammer["name"]: places[jammer["follows"]] if "follows" in jammer else (jammer["position"][0], jammer["position"][1])
        for jammer in entries
        if jammer.get("follows", "") in ("", *places)
    }


def azimuths_of(medium: Mapping[str, Any]) -> dict[str, float]:
    """The azimuths (degrees) of the stations of a medium.json whose antennas have a main lobe."""
    antennas = {entry["name"]: entry.get("antenna") or {} for entry in medium["stations"]}
    return {name: antenna["azimuth_deg"] for name, antenna in antennas.items() if "azimuth_deg" in antenna}
