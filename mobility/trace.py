"""Trace files: positions of stations as a pure function of time (formats/trace.md).

Writes placements and scripted legs, reads a trace back, and checks it before a run uses it: an error names the line.
`medium/src/trace.rs` reads the same files; both compute a position from the row in force alone, never by stepping,
with times as integer nanoseconds. Both are tested on formats/examples/trace.csv.
"""

import bisect
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

FORMAT = "# manet-trace/1"
HEADER = "time_s,station,x_m,y_m,z_m,speed_mps"
MAX_COORDINATE_M = 1e7  # as in medium/src/trace.rs
MAX_TIME_S = 4e6  # beyond it a float of seconds loses the nanosecond
NS_PER_S = 1_000_000_000
MAX_STATIONS = 2000  # as topologies/layouts.py
STATION_NAME = re.compile(r"[a-z][a-z0-9-]{0,9}")  # as topologies/layouts.py has it

Position = tuple[float, float, float]
Place = tuple[str, float, float, float]  # a station and its position, as topologies gives them


class TraceError(ValueError):
    """One line that names the trace, its line and the remedy."""


@dataclass(frozen=True)
class Leg:
    """From `start_s` on `station` moves straight to `to` at `speed_mps` (inf: it jumps) and stops there. `line` is its line in a
    file, for errors; 0 without a file."""

    start_s: float
    station: str
    to: Position
    speed_mps: float
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Course:
    """A leg with its starting point. The first leg of a station starts where it is placed."""

    start_ns: int
    origin: Position
    to: Position
    speed_mps: float

    @property
    def start_s(self) -> float:
        """Time of the row, s."""
        return self.start_ns / NS_PER_S

    @property
    def arrival_s(self) -> float:
        """Time of arrival at `to` without a later leg, s; inf if never."""
        if math.isinf(self.speed_mps):
            return self.start_s
        distance_m = math.dist(self.origin, self.to)
        return self.start_s + (distance_m / self.speed_mps if self.speed_mps > 0 else math.inf if distance_m else 0.0)

    def at(self, now_ns: int) -> Position:
        """Position (x, y, z) in metres at `now_ns`, which is `start_ns` or later."""
        if self.speed_mps == 0:
            return self.origin
        if math.isinf(self.speed_mps):
            return self.to
        distance_m = math.dist(self.origin, self.to)
        gone_m = self.speed_mps * (now_ns - self.start_ns) / NS_PER_S
        if gone_m >= distance_m:
            return self.to
        share = gone_m / distance_m
        x, y, z = (a + (b - a) * share for a, b in zip(self.origin, self.to, strict=True))
        return (x, y, z)


@dataclass
class Trace:
    """The content of a trace. `end_s` is its planned length and `mean_mps` the mean speed of the model, None if not stated;
    `remarks` are further lines of a third-party file, which are kept, and `numbers` its numbers of the stations, if not 0, 1, ...
    `notes` say how it was read, for the user."""

    name: str
    legs: list[Leg]
    end_s: float | None = None
    end_line: int = 0
    mean_mps: float | None = None
    remarks: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    _courses: dict[str, list[Course]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for leg in self.legs:
            self._follow(leg)

    def append(self, leg: Leg) -> None:
        """Add a leg, which must not begin before the station's last one; TraceError otherwise."""
        self.legs.append(leg)
        self._follow(leg)

    def _follow(self, leg: Leg) -> None:
        start_ns = round(leg.start_s * NS_PER_S)
        courses = self._courses.setdefault(leg.station, [])
        # The first row of a station places it; it has no starting point.
        origin = courses[-1].at(start_ns) if courses else leg.to
        courses.append(Course(start_ns, origin, leg.to, leg.speed_mps))

    def stations(self) -> list[str]:
        """The stations, in the order in which the trace places them."""
        return list(self._courses)

    def courses(self, station: str) -> list[Course]:
        """The legs of `station` with their starting points, in order of time."""
        return self._courses[station]

    def courses_until(self, station: str, end_s: float) -> Iterator[tuple[Course, float]]:
        """Each leg of `station` with the time at which the next one begins (s); `end_s` of the last leg."""
        courses = self._courses[station]
        return zip(courses, [*(course.start_s for course in courses[1:]), end_s], strict=True)

    def position(self, station: str, time_s: float) -> Position:
        """The position (x, y, z) of `station` in metres at `time_s` (0 or more)."""
        now_ns = round(time_s * NS_PER_S)
        courses = self._courses[station]
        index = bisect.bisect_right(courses, now_ns, key=lambda course: course.start_ns) - 1
        return courses[index].at(now_ns)

    def scaled(self, factor: float, begin_s: float = 0.0) -> "Trace":
        """The movement `factor` (above 0) times as fast: the same positions in the same order, pauses scaled, too (Holland and
        Vaidya, MobiCom 1999, section 2: a move of time t at 10 m/s takes t/2 at 20 m/s). Time 0 is moved to `begin_s`; the
        placement of a station stays at time 0."""
        placed: set[str] = set()
        faster = []
        for leg in self.legs:
            if leg.station in placed:
                leg = replace(leg, start_s=begin_s + leg.start_s / factor, speed_mps=leg.speed_mps * factor)
            placed.add(leg.station)
            faster.append(leg)
        end_s = None if self.end_s is None else begin_s + self.end_s / factor
        return Trace(self.name, faster, end_s, self.end_line, None if self.mean_mps is None else self.mean_mps * factor)

    def check(self, area: tuple[float, float] | None, length_s: float = 0.0) -> None:
        """TraceError, with the line, for a leg that leaves `area` (m x m, from the origin; None: unlimited), or if a run of
        `length_s` is longer than the trace."""
        for leg in self.legs:
            if area is not None and not is_inside(leg.to, area):
                where = f"{self.name}: line {leg.line}" if leg.line else self.name
                text = f"{leg.station} goes to {outside(leg.to, area)}"
                raise TraceError(f"{where}: {text}; correct the line, or give the scenario a larger area")
        if self.end_s is not None and length_s > self.end_s:
            raise TraceError(
                f"{self.name}: line {self.end_line}: the trace ends at {self.end_s:g} s and the run lasts "
                f"{length_s:g} s; shorten the run or make a longer trace"
            )


def is_inside(to: Sequence[float], area: tuple[float, float]) -> bool:
    """Whether a place is in the area (m x m, from the origin)."""
    return 0 <= to[0] <= area[0] and 0 <= to[1] <= area[1]


def outside(to: Sequence[float], area: tuple[float, float]) -> str:
    """The error text for a position outside of the area."""
    return f"({to[0]:g}, {to[1]:g}) m, outside the area of {area[0]:g} x {area[1]:g} m"


def place(places: Mapping[str, Position] | Iterable[Place]) -> list[Leg]:
    """Rows at time 0."""
    points = places.items() if isinstance(places, Mapping) else ((name, (x, y, z)) for name, x, y, z in places)
    return [Leg(0.0, name, point, 0.0) for name, point in points]


def joined(name: str, stations: Iterable[Sequence[Leg]], end_s: float | None) -> Trace:
    """The trace of the legs of each station: the first ones place the stations, the others are sorted by time."""
    own = list(stations)
    moves = sorted((leg for legs in own for leg in legs[1:]), key=lambda leg: leg.start_s)
    return Trace(name, [*(legs[0] for legs in own), *moves], end_s)


def through(station: str, points: Sequence[tuple[float, Position]], line: int = 0) -> list[Leg]:
    """The legs of a station that is at each point (x, y, z) at its time (s, rising) and goes straight in between. A move of less
    than a nanosecond, the resolution of a trace, is a jump."""
    legs = [Leg(0.0, station, points[0][1], 0.0, line)]
    for (t0, a), (t1, b) in pairwise(points):
        if t1 - t0 > 1e-9:
            legs += [Leg(t0, station, b, math.dist(a, b) / (t1 - t0), line)] if a != b else []
        elif a != b:
            legs.append(Leg(t1, station, b, math.inf, line))
    if points[-1][0] > legs[-1].start_s and points[-1][1] == points[-2:][0][1]:
        legs.append(Leg(points[-1][0], station, points[-1][1], 0.0, line))  # it is known to stand until then
    return legs


def write(legs: Sequence[Leg], end_s: float | None = None, mean_mps: float | None = None) -> str:
    """The text of a trace; legs may be in any order, simultaneous ones keep theirs."""
    stated = (("end_s", end_s), ("mean_speed_mps", mean_mps))
    lines = [FORMAT, *(f"# {key}: {number_text(value)}" for key, value in stated if value is not None), HEADER]
    for leg in sorted(legs, key=lambda leg: leg.start_s):
        values = (leg.start_s, *leg.to, leg.speed_mps)
        time, x, y, z, speed = (number_text(value) for value in values)
        lines.append(f"{time},{leg.station},{x},{y},{z},{speed}")
    return "\n".join(lines) + "\n"


def as_text(data: bytes, name: str) -> str:
    """The text of a file; TraceError names a line that is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise TraceError(f"{name}: line {line}: is not UTF-8 text; save the file as text") from None


def parse(data: bytes, name: str, stations: Sequence[str] | None = None) -> Trace:
    """A checked trace; errors call it `name`. Without `stations`, any valid station name is accepted."""
    return _Parser(name, stations).run(as_text(data, name))


class LineParser:
    """A text file, which errors call `name`, read line by line: `line` is the number of the present one, 0 for the whole file."""

    def __init__(self, name: str) -> None:
        self.name, self.line = name, 0

    def number(self, key: str, text: str, minimum: float, maximum: float, unit: str = "") -> float:
        """The number that a text writes. TraceError outside of the limits."""
        value = plain_number(text)
        allowed = f" from {minimum:g} to {maximum:g}" if math.isfinite(maximum) else ', 0 or more, or "inf"'
        of_unit = f" of {unit}" if unit else ""
        good = math.isfinite(value) and minimum <= value <= maximum
        self.expect(good, f'{key} "{text.strip()}" must be a number{of_unit}{allowed}; correct it')
        return value

    def expect(self, condition: bool, text: str) -> None:
        """TraceError for the present line, unless the condition holds."""
        if not condition:
            raise TraceError(f"{self.name}: line {self.line}: {text}" if self.line else f"{self.name}: {text}")


class _Parser(LineParser):
    def __init__(self, name: str, stations: Sequence[str] | None) -> None:
        super().__init__(name)
        self.stations = None if stations is None else set(stations)
        self.legs: list[Leg] = []
        self.end: tuple[float | None, int] = (None, 0)
        self.mean_mps: float | None = None
        self.placed: set[str] = set()

    def run(self, text: str) -> Trace:
        lines = text.splitlines()
        self.line = 1
        self.expect(bool(lines) and lines[0].rstrip() == FORMAT, f'the first line must be "{FORMAT}"')
        header_seen = False
        for self.line, raw in enumerate(lines[1:], start=2):
            line = raw.strip()
            if line.startswith("#"):
                key, _, value = line[1:].strip().partition(":")
                if key == "end_s":
                    self.end = (self.number(key, value, 0, MAX_TIME_S, "seconds"), self.line)
                elif key == "mean_speed_mps":
                    self.mean_mps = self.number(key, value, 1e-9, 1e9, "m/s")
            elif line and not header_seen:
                self.expect(line == HEADER, f'the header must be "{HEADER}"')
                header_seen = True
            elif line:
                self._row(line)
        self.expect(header_seen, f'there is no header; the second line must be "{HEADER}"')
        return Trace(self.name, self.legs, *self.end, self.mean_mps)

    def _row(self, line: str) -> None:
        fields = [part.strip() for part in line.split(",")]
        self.expect(len(fields) == 6, f'{len(fields)} fields; a row is "{HEADER}"')
        time, station, *point, speed = fields
        start_s = self.number("time_s", time, 0, MAX_TIME_S, "seconds")
        self.expect(not self.legs or start_s >= self.legs[-1].start_s, "time goes back; sort the rows by time_s")
        if self.stations is None:
            text = f'"{station}" is no station name; use at most 10 of a-z, 0-9 and "-", beginning with a letter'
            self.expect(STATION_NAME.fullmatch(station) is not None, text)
        else:
            self.expect(station in self.stations, f'unknown station "{station}"; the scenario does not have it')
        axes = zip(("x_m", "y_m", "z_m"), point, strict=True)
        x, y, z = (self.number(key, value, -MAX_COORDINATE_M, MAX_COORDINATE_M, "metres") for key, value in axes)
        speed_mps = math.inf if speed == "inf" else self.number("speed_mps", speed, 0, math.inf, "m/s")
        if station not in self.placed:
            self.expect(start_s == 0, f'station "{station}" has no row at time 0; add one that places it')
            self.expect(
                speed_mps == 0 or math.isinf(speed_mps),
                f'the first row of "{station}" places it and has no speed; give 0, and the movement in a second row',
            )
            self.placed.add(station)
        self.legs.append(Leg(start_s, station, (x, y, z), speed_mps, self.line))


def plain_number(text: str) -> float:
    """The number that a text writes in decimal digits; NaN for any other text, such as Python's `1_0` or digits beyond ASCII."""
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def number_text(value: float) -> str:
    """The shortest text that reads back as the same float; whole numbers without the point."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))
