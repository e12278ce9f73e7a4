"""BonnMotion's `.movements` files (BonnMotion 3.0's manual, "native format"): one line a node, its waypoints one after the other.

A waypoint is `t x y`, or `t x y z` where the scenario is three-dimensional; in between a node goes straight at constant
speed, before the first it stands there, after the last it stays. Line i is station `sta<i>`. `NAME.params` in the same folder,
if there, says the duration, the number of nodes (`nn`) and whether there is a third dimension (`outputDim`).

Traps: (1) The file does not say its dimension, and some lines can be read both ways: without `outputDim` the waypoints' times
decide, and a file that fits both readings is refused. (2) BonnMotion's own converter to ns-2 (NSFile) adds a border of 10 m
to every x and y, because ns-2 rejects nodes on the edge of its area: the same scenario read from `.ns_movements` lies 10 m
further up and right. Read here, nothing is added. (3) A first waypoint later than 0 is the node's place from the start. (4)
Geographic files (`.geo.movements`) are in degrees: not read.
"""

import math
import re
from itertools import islice, pairwise
from pathlib import Path

from mobility.trace import (
    MAX_COORDINATE_M,
    MAX_STATIONS,
    MAX_TIME_S,
    Leg,
    LineParser,
    Trace,
    as_text,
    joined,
    number_text,
    plain_number,
    through,
)

MAX_NUMBERS = 4_000_000  # of a file: a million waypoints t x y z
_WORD = re.compile(r"\S+")
Waypoint = tuple[float, float, float, float]  # t, x, y, z


def read_params(path: Path) -> dict[str, str]:
    """The `key=value` lines of a `.params` file; other lines are ignored."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    return {key.strip(): value.strip() for key, equals, value in (line.partition("=") for line in text.splitlines()) if equals}


def parse(data: bytes, name: str, params: dict[str, str] | None = None) -> Trace:
    """A checked movement; errors call it `name`. TraceError names the line."""
    return _Parser(name, params or {}).run(as_text(data, name))


def write(trace: Trace) -> str:
    """The file's text; with a third coordinate if some height is not 0. `params` gives its .params file."""
    stations = trace.stations()
    deep = any(leg.to[2] for leg in trace.legs)
    lines = []
    for station in stations:
        points = waypoints(trace, station)
        lines.append(" ".join(number_text(value) for point in points for value in (point if deep else point[:3])))
    return "\n".join(lines) + "\n"


def params(trace: Trace) -> str:
    """The text of `NAME.params` for a written file."""
    duration = [] if trace.end_s is None else [f"duration={number_text(trace.end_s)}"]
    deep = any(leg.to[2] for leg in trace.legs)
    return "\n".join([*duration, f"nn={len(trace.stations())}", f"outputDim={'3D' if deep else '2D'}"]) + "\n"


def waypoints(trace: Trace, station: str) -> list[Waypoint]:
    """The waypoints (s, m) of a station; two of one time for a jump."""
    courses = trace.courses(station)
    points: list[Waypoint] = [(0.0, *courses[0].to)]
    for course, next_s in islice(trace.courses_until(station, MAX_TIME_S), 1, None):
        if course.start_s > points[-1][0]:
            points.append((course.start_s, *course.origin))
        if math.isinf(course.speed_mps):
            points.append((course.start_s, *course.to))
        elif course.arrival_s <= next_s:
            points.append((course.arrival_s, *course.to))
    last = courses[-1]
    end_s = trace.end_s
    if end_s is None:
        end_s = min(MAX_TIME_S, last.arrival_s) if math.isfinite(last.speed_mps) and last.speed_mps > 0 else 0.0
    if points[-1][0] < end_s:
        points.append((end_s, *trace.position(station, end_s)))
    return points


class _Parser(LineParser):
    def __init__(self, name: str, params: dict[str, str]) -> None:
        super().__init__(name)
        self.params = params

    def run(self, text: str) -> Trace:
        rows: list[tuple[int, list[float]]] = []
        numbers = 0
        for self.line, raw in enumerate(text.split("\n"), start=1):
            line = raw.strip()
            if line and not line.startswith("#"):
                if len(rows) >= MAX_STATIONS:
                    self.expect(False, f"is one node more than the {MAX_STATIONS} that a file may have; shorten it")
                rows.append((self.line, []))
                for word in _WORD.finditer(line):
                    numbers += 1
                    self.expect(numbers <= MAX_NUMBERS, f"the file has more than {MAX_NUMBERS} numbers; shorten the scenario")
                    rows[-1][1].append(self._value(word[0]))
        self.line = 0
        self.expect(bool(rows), f"0 nodes; a file has 1 to {MAX_STATIONS} lines, one a node")
        nodes = self.params.get("nn", str(len(rows)))
        text = f"{len(rows)} lines, but nn={nodes[:20]} in .params; give the .params that belongs to it"
        self.expect(nodes == str(len(rows)), text)
        size = self._size(rows)
        legs: list[list[Leg]] = []
        for number, (self.line, values) in enumerate(rows, start=1):
            legs.append(self._node(f"sta{number}", values, size))
        return joined(self.name, legs, self._duration())

    def _duration(self) -> float | None:
        if "duration" not in self.params:
            return None
        self.line = 0
        duration_s = self._value(self.params["duration"])
        self.expect(0 <= duration_s <= MAX_TIME_S, f"duration={duration_s:g} in .params is no time from 0 to {MAX_TIME_S:g} s")
        return duration_s

    def _size(self, rows: list[tuple[int, list[float]]]) -> int:
        """Numbers a waypoint: 3 or 4."""
        dimension = self.params.get("outputDim", "").upper()
        if dimension in ("2D", "3D"):
            return 3 if dimension == "2D" else 4
        fits = [size for size in (3, 4) if all(_fits(values, size) for _, values in rows)]
        if not fits:
            self.line = next((line for line, values in rows if not _fits(values, 3)), 0)
            text = "the line is no list of waypoints t x y (nor t x y z on every line) with rising times from 0 on"
            self.expect(False, text + "; correct it")
        text = "can be read as waypoints t x y and as t x y z; put outputDim=2D or outputDim=3D into its .params file"
        self.expect(len(fits) == 1, text)
        return fits[0]

    def _node(self, station: str, values: list[float], size: int) -> list[Leg]:
        self.expect(_fits(values, size), f"is no list of waypoints of {size} numbers with rising times from 0 on; correct it")
        points = [values[i : i + size] + [0.0] * (4 - size) for i in range(0, len(values), size)]
        for time_s, *place in points:
            good = time_s <= MAX_TIME_S and all(abs(value) <= MAX_COORDINATE_M for value in place)
            self.expect(good, f"a waypoint at {time_s:g} s is outside of {MAX_TIME_S:g} s or {MAX_COORDINATE_M:g} m; correct it")
        return through(station, [(time_s, (x, y, z)) for time_s, x, y, z in points], self.line)

    def _value(self, text: str) -> float:
        value = plain_number(text)
        self.expect(math.isfinite(value), f'"{text[:40]}" is not a number; a line has t x y of each waypoint')
        return value


def _fits(values: list[float], size: int) -> bool:
    times = values[::size]
    return bool(values) and len(values) % size == 0 and times[0] >= 0 and all(a <= b for a, b in pairwise(times))
