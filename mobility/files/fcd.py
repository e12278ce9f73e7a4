"""SUMO's floating car data (`sumo --fcd-output`; sumo.dlr.de, "FCDOutput"): positions at time steps.

A `timestep` has its `time` (s); each `vehicle`, `person` and `container` in it has an `id`, `x` and `y`, perhaps `z` (m).
They are stations in the order in which the file first names them. Time 0 is the first time step. A station stands at its first
position until its own first step, goes straight from step to step, and stays at its last position.

Traps: (1) A vehicle that has not departed yet, or has arrived, is not in SUMO's network, but its station is on the air: it is
silent if it has no flow. (2) With `--fcd-output.geo` x and y are degrees; SUMO says so only in the comment at the head, and such
a file is refused. (3) An element without x and y (an option of SUMO leaves them out) is an error.
"""

import re

from mobility.files.xml_events import XmlReader
from mobility.trace import MAX_COORDINATE_M, MAX_STATIONS, MAX_TIME_S, Position, Trace, TraceError, joined, through

MOVING = ("vehicle", "person", "container")
DEFAULTS = (("x", ""), ("y", ""), ("z", "0"))  # of the coordinates; "" is no number
_GEO = re.compile(r'fcd-output\.geo\s+value="(?:true|1|t)"')


def parse(data: bytes, name: str) -> Trace:
    """A checked movement; errors call it `name`. TraceError names the line."""
    reader = _Reader(name)
    reader.feed(data)
    if reader.begin_s is None or not reader.points:
        raise TraceError(f"{name}: has no vehicle at any time step; give the output of sumo --fcd-output")
    stations = (through(f"sta{number}", points) for number, points in enumerate(reader.points.values(), start=1))
    return joined(name, stations, reader.now_s)


class _Reader(XmlReader):
    def __init__(self, name: str) -> None:
        super().__init__(name, "FCD")
        self.points: dict[str, list[tuple[float, Position]]] = {}
        self.begin_s: float | None = None
        self.now_s = 0.0
        self.expat.CommentHandler = self._comment

    def _comment(self, text: str) -> None:
        if _GEO.search(text):
            self.fail("has positions in degrees (--fcd-output.geo); write it without that option, in metres")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "timestep":
            time_s = self.number("time", attributes.get("time", ""), MAX_TIME_S)
            self.begin_s = time_s if self.begin_s is None else self.begin_s
            if time_s - self.begin_s < self.now_s:
                self.fail("time goes back; sort the time steps")
            self.now_s = time_s - self.begin_s
        elif tag in MOVING:
            if self.begin_s is None:
                self.fail(f"a {tag} outside of a time step; give the output of sumo --fcd-output")
            x, y, z = (self.number(key, attributes.get(key, default), MAX_COORDINATE_M) for key, default in DEFAULTS)
            own = self.points.setdefault(attributes.get("id", ""), [])
            own.append((self.now_s, (x, y, z)))
            if len(self.points) > MAX_STATIONS:
                self.fail(f"is one {tag} more than the {MAX_STATIONS} stations that a trace may have; select fewer")
