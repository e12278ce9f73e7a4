"""ns-2 movement scripts, as CMU's `setdest` writes them and ns-2.35's `Node/MobileNode` obeys them.

Read: `$node_(i) set X_ v` (Y_, Z_) places node i; `$ns_ at t "$node_(i) setdest x y v"` moves it from its position in a
straight line (0: it stops); `$ns_ at t "$node_(i) set X_ v"` is a jump. Nodes are stations in the order of their numbers:
`setdest` and SUMO count from 0, and then none may be missing; CORE's `.scen` files have CORE's numbers, from 1 on and with gaps.
Three-dimensional simulators (DESERT Underwater) and converters have `setdest x y z v`, which is read. Passed on: comments and
`$god_ set-dist a b hops` (at the start or in an `at`), which are `setdest`'s own idea of the shortest paths at 250 m;
`god_lines` gives them as numbers. `initial_node_pos` is passed over. Anything else is an error: a script is not a program to us.
A comment `# end_s: 900` says how long the movement is made for, `# mean_speed_mps: 1` with which mean speed it was drawn.

Departs from ns-2: a node without X_ and Y_ is an error (there it is at 0, 0), and `setdest` with three numbers keeps the height.
A jump during the run is exact here, not in ns-2.35: `set X_` does not first bring the node's position up to date, nor does it
move the node in the channel's list, which is in order of x. A destination on the edge (a wrapped movement has one before each
jump) or outside of the area, which ns-2 ignores, cannot be seen: the script does not say the area.
"""

import math
import re
from dataclasses import dataclass

from mobility.trace import MAX_COORDINATE_M, MAX_STATIONS, MAX_TIME_S, Leg, LineParser, Trace, TraceError, as_text, number_text

UNREACHABLE = 16_777_215  # hops in a `god` line for no path
_NODE = r"\$(?:node_?|n)\((\d{1,9})\)"
_SET = re.compile(rf"{_NODE}\s+set\s+([XYZ])_\s+(\S+)")
_SETDEST = re.compile(rf"{_NODE}\s+setdest\s+(\S+)\s+(\S+)(?:\s+(\S+))?\s+(\S+)")
_AT = re.compile(r'\$ns_?\s+at\s+(\S+)\s+(?:"([^"]*)"|\{([^{}]*)\})\s*(?:;.*)?')
_GOD = re.compile(r"\$god_?\s+set-dist\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})")
_PASSED_OVER = re.compile(r"\$(ns_?|god_?)\s+(initial_node_pos|num_nodes|new_node)\b.*")


@dataclass(frozen=True)
class God:
    """A `god` line: from `time_s` on the shortest path between two stations has `hops` hops (None: no path)."""

    time_s: float
    ends: tuple[str, str]
    hops: int | None


def parse(data: bytes, name: str) -> Trace:
    """A checked movement; errors call it `name`. TraceError names the line."""
    return _Parser(name).run(as_text(data, name))


def god_lines(trace: Trace) -> list[God]:
    """The `god` lines of a movement that was read, in order of time."""
    gods, names = [], dict(zip(trace.numbers, trace.stations(), strict=False))
    for remark in trace.remarks:
        at = _AT.fullmatch(remark)
        god = _GOD.fullmatch(_command(at) if at else remark)
        if god:
            a, b, hops = (int(text) for text in god.groups())
            time_s = float(at.group(1)) if at else 0.0
            ends = (names.get(a, _station(a)), names.get(b, _station(b)))
            gods.append(God(time_s, ends, None if hops == UNREACHABLE else hops))
    return sorted(gods, key=lambda god: god.time_s)


def write(trace: Trace) -> str:
    """The script of a movement. TraceError for a height that changes during a move: ns-2 can only place or jump to heights."""
    stations = trace.stations()
    numbers = dict(zip(stations, trace.numbers or range(len(stations)), strict=True))
    in_order = all(station == _station(place) for place, station in enumerate(stations))
    lines = [] if in_order else [f"# nodes: {len(numbers)}; node i is {', '.join(numbers)}"]
    if trace.end_s is not None:
        lines.append(f"# end_s: {number_text(trace.end_s)}")
    if trace.mean_mps is not None:
        lines.append(f"# mean_speed_mps: {number_text(trace.mean_mps)}")
    lines += [remark for remark in trace.remarks if not remark.startswith("$ns")]
    moves = [(float(at.group(1)), remark) for remark in trace.remarks if (at := _AT.fullmatch(remark))]
    placed: set[str] = set()
    for leg in sorted(trace.legs, key=lambda leg: leg.start_s):
        node = f"$node_({numbers[leg.station]})"
        x, y, z = (number_text(value) for value in leg.to)
        time = number_text(leg.start_s)
        if leg.station not in placed:
            placed.add(leg.station)
            lines += [f"{node} set X_ {x}", f"{node} set Y_ {y}", f"{node} set Z_ {z}"]
        elif math.isinf(leg.speed_mps):
            moves += [(leg.start_s, f'$ns_ at {time} "{node} set {axis}_ {v}"') for axis, v in zip("XYZ", (x, y, z), strict=True)]
        else:
            if leg.speed_mps > 0 and leg.to[2] != trace.position(leg.station, leg.start_s)[2]:
                raise TraceError(
                    f"{trace.name}: {leg.station} changes its height on the way at {leg.start_s:g} s, which ns-2's setdest "
                    "cannot; write a .csv or .movements file"
                )
            moves.append((leg.start_s, f'$ns_ at {time} "{node} setdest {x} {y} {number_text(leg.speed_mps)}"'))
    return "\n".join([*lines, *(line for _, line in sorted(moves, key=lambda move: move[0]))]) + "\n"


def _listed(nodes: list[int]) -> str:
    """`6 to 9`, or the first numbers of a list with gaps."""
    if nodes == list(range(nodes[0], nodes[-1] + 1)):
        return f"{nodes[0]} to {nodes[-1]}" if len(nodes) > 1 else str(nodes[0])
    return ", ".join(map(str, nodes[:8])) + (", ..." if len(nodes) > 8 else "")


def _station(node: int) -> str:
    return f"sta{node + 1}"


def _command(at: re.Match[str]) -> str:
    return (at.group(2) if at.group(2) is not None else at.group(3)).strip()


@dataclass(frozen=True)
class _Event:
    """A command of the script for a node at a time: a jump along an axis, or a move to x, y and z (None: the present height)."""

    time_s: float
    node: int
    line: int
    axis: str | None
    to: tuple[float, float, float | None]
    speed_mps: float = math.inf


class _Parser(LineParser):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.places: dict[int, dict[str, float]] = {}
        self.placed_on: dict[int, int] = {}
        self.events: list[_Event] = []
        self.remarks: list[str] = []
        self.stated: dict[str, float] = {}
        self.end_line = 0

    def run(self, text: str) -> Trace:
        for self.line, raw in enumerate(text.split("\n"), start=1):
            line = raw.strip()
            if line.startswith("#"):
                self._comment(line)
            elif line:
                self._command(line)
        self._check_nodes()
        end_s, nodes = self.stated.get("end_s"), sorted(self.places)
        self.names = {node: f"sta{number}" for number, node in enumerate(nodes, start=1)}
        numbers = () if nodes == list(range(len(nodes))) else tuple(nodes)
        notes = [f"node {_listed(nodes)} of the script: sta1{f' to sta{len(nodes)}' * (len(nodes) > 1)}"] if numbers else []
        if any(event.axis is None and event.to[2] is not None for event in self.events):
            notes.append("the script is three-dimensional: setdest x y z speed")
        mean_mps = self.stated.get("mean_speed_mps")
        return Trace(self.name, self._legs(), end_s, self.end_line, mean_mps, tuple(self.remarks), numbers, tuple(notes))

    def _comment(self, line: str) -> None:
        key, colon, value = line.lstrip("#").partition(":")
        if colon and key.strip() == "end_s":
            self.stated["end_s"], self.end_line = self.number("end_s", value, 0, MAX_TIME_S), self.line
        elif colon and key.strip() == "mean_speed_mps":
            self.stated["mean_speed_mps"] = self.number("mean_speed_mps", value, 1e-9, 1e9)
        else:
            self.remarks.append(line)

    def _command(self, line: str) -> None:
        bare = line.partition(";#")[0].strip().rstrip(";").strip()
        at = _AT.fullmatch(bare)
        inner = _command(at) if at else bare
        if at:
            time_s = self.number("time", at.group(1), 0, MAX_TIME_S)
        if _GOD.fullmatch(inner):
            self.remarks.append(bare)
        elif placed := _SET.fullmatch(inner):
            node, axis = self._node(placed.group(1)), placed.group(2)
            value = self._coordinate(f"{axis}_", placed.group(3))
            if at:
                self.events.append(_Event(time_s, node, self.line, axis, (value, value, value)))
            else:
                self.places.setdefault(node, {})[axis] = value
                self.placed_on[node] = self.line
        elif at and (moved := _SETDEST.fullmatch(inner)):
            node, (x, y, z, speed) = self._node(moved.group(1)), moved.groups()[1:]
            to = (self._coordinate("x", x), self._coordinate("y", y), None if z is None else self._coordinate("z", z))
            self.events.append(_Event(time_s, node, self.line, None, to, self.number("speed", speed, 0, 1e9)))
        else:
            self.expect(_PASSED_OVER.fullmatch(bare) is not None, f'"{line[:60]}" is not understood; {_FORMS}')

    def _check_nodes(self) -> None:
        self.expect(bool(self.places), "no node is placed; add lines like $node_(0) set X_ 10.0")
        for event in self.events:
            self.line = event.line
            self.expect(event.node in self.places, f"node {event.node} moves but is placed nowhere; add its X_ and Y_")
        self.line = 0
        for node in range(max(self.places) + 1) if 0 in self.places else self.places:
            self.expect(node in self.places, f"node {node} is missing; number the nodes from 0 on without a gap")
            for axis in "XY":
                self.expect(axis in self.places[node], f"node {node} has no {axis}_; add $node_({node}) set {axis}_ ...")

    def _legs(self) -> list[Leg]:
        legs = []
        for node, place in sorted(self.places.items()):
            point = (place["X"], place["Y"], place.get("Z", 0.0))
            legs.append(Leg(0.0, self.names[node], point, 0.0, self.placed_on[node]))
        alone = {node: Trace(self.name, [leg]) for node, leg in zip(sorted(self.places), list(legs), strict=True)}
        for event in sorted(self.events, key=lambda event: event.time_s):
            trace, station = alone[event.node], self.names[event.node]
            here, (x, y, z) = trace.position(station, event.time_s), event.to
            to = (x, y, here[2] if z is None else z)
            if event.axis is not None:
                new_x, new_y, new_z = (new if axis == event.axis else old for axis, new, old in zip("XYZ", to, here, strict=True))
                to = (new_x, new_y, new_z)
            leg = Leg(event.time_s, station, to, event.speed_mps, event.line)
            trace.append(leg)
            legs.append(leg)
        return legs

    def _node(self, text: str) -> int:
        node = int(text)
        self.expect(node < MAX_STATIONS, f"node {node} is out of range; number the nodes from 0 to {MAX_STATIONS - 1}")
        return node

    def _coordinate(self, key: str, text: str) -> float:
        return self.number(key, text, -MAX_COORDINATE_M, MAX_COORDINATE_M)


_FORMS = 'a movement script has lines like $node_(0) set X_ 10.0 and $ns_ at 5.0 "$node_(0) setdest 20.0 30.0 1.5"'
