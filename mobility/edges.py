"""Movement at the edge of the area: a station bounces off, or leaves and re-enters at the opposite edge.

Both are exact: a straight move is cut at the edge. Wrapping keeps stations evenly distributed, while random waypoint concentrates
them in the middle. The medium does not wrap, so two stations at opposite edges are far apart.
"""

import math
from dataclasses import dataclass

from mobility.trace import Leg

Point = tuple[float, float]
MAX_PIECES = 100_000  # of one move, which would be a thousand times as long as the area


@dataclass(frozen=True)
class Piece:
    """A straight part of a move within the area, from `begin` to `end`."""

    begin: Point
    end: Point

    @property
    def length_m(self) -> float:
        """Length, m."""
        return math.dist(self.begin, self.end)


def wrapped(here: Point, vector: Point, area: Point) -> list[Piece]:
    """The move from `here` by `vector` (metres), re-entering at the opposite edge; each piece begins opposite to the end of the
    last one."""
    return _cut(here, vector, area, wrap=True)[0]


def bounced(here: Point, vector: Point, area: Point) -> tuple[list[Piece], Point]:
    """The move with mirrored bounces, and the signs (1 or -1 for x and y) of the change of its direction."""
    return _cut(here, vector, area, wrap=False)


def _cut(here: Point, vector: Point, area: Point, wrap: bool) -> tuple[list[Piece], Point]:
    point, left, signs = list(here), list(vector), [1.0, 1.0]
    pieces: list[Piece] = []
    for _ in range(MAX_PIECES):
        axis, share = _first_edge(point, left, area)
        begin = (point[0], point[1])
        if axis is None:
            end = (_within(point[0] + left[0], area[0]), _within(point[1] + left[1], area[1]))
            pieces.append(Piece(begin, end))
            break
        for k in (0, 1):
            point[k] = _within(point[k] + left[k] * share, area[k])
            left[k] *= 1 - share
        point[axis] = area[axis] if left[axis] > 0 else 0.0
        pieces.append(Piece(begin, (point[0], point[1])))
        if wrap:
            point[axis] = area[axis] - point[axis]
        else:
            left[axis], signs[axis] = -left[axis], -signs[axis]
    return [piece for piece in pieces if piece.length_m > 0] or pieces[:1], (signs[0], signs[1])


def _first_edge(point: list[float], left: list[float], area: Point) -> tuple[int | None, float]:
    """The axis whose edge the rest of the move crosses first (None: no edge), and the share of the rest until there."""
    first: tuple[int | None, float] = (None, 1.0)
    for axis in (0, 1):
        room = area[axis] - point[axis] if left[axis] > 0 else point[axis]
        if abs(left[axis]) > room and room / abs(left[axis]) < first[1]:
            first = (axis, room / abs(left[axis]))
    return first


def _within(value: float, maximum: float) -> float:
    """The value within the area, regardless of rounding."""
    return min(max(value, 0.0), maximum)


def legs_along(pieces: list[Piece], station: str, z_m: float, start_s: float, speed_mps: float) -> tuple[list[Leg], float]:
    """Legs along the pieces, with a jump where one ends and the next begins elsewhere; and the time of arrival (s)."""
    legs: list[Leg] = []
    before: Point | None = None
    for piece in pieces:
        if before is not None and before != piece.begin:
            legs.append(Leg(start_s, station, (*piece.begin, z_m), math.inf))
        legs.append(Leg(start_s, station, (*piece.end, z_m), speed_mps))
        start_s += piece.length_m / speed_mps
        before = piece.end
    return legs, start_s
