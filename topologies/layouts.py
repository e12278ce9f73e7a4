"""Layouts: chain, grid, cross, random and explicit positions, and a circle, as lists of named points.

Coordinates are metres from the origin of the area. Stations are numbered from 1 in the order of the
list, and that number makes their address (topologies/addresses.py), also if an explicit position has its own name.
"""

import math
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from topologies.addresses import station_name

MAX_STATIONS = 2000
UNPLACED_RADIUS_M = 10.0  # small: propagation delay, where a profile has it, is at most 0.07 us
MAX_COORDINATE_M = 1e7  # either way from the origin; the medium's (formats/schema/medium.json), which a test compares
STATION_NAME = re.compile(r"[a-z][a-z0-9-]{0,9}")


class LayoutError(ValueError):
    """An impossible layout; one line with the remedy."""


class Placed(NamedTuple):
    """A station and its position, in metres."""

    name: str
    x_m: float
    y_m: float
    z_m: float = 0.0


def chain(hops: int, spacing_m: float) -> list[Placed]:
    """`hops` + 1 stations on a line, neighbours `spacing_m` apart."""
    _check_count(hops + 1)
    return _number([(i * spacing_m, 0.0, 0.0) for i in range(hops + 1)])


def grid(rows: int, columns: int, spacing_m: float) -> list[Placed]:
    """Row by row from the lower left corner: sta1 and the last station are at opposite corners."""
    _check_count(rows * columns)
    return _number([(c * spacing_m, r * spacing_m, 0.0) for r in range(rows) for c in range(columns)])


def cross(hops: int, spacing_m: float) -> list[Placed]:
    """Two chains of `hops` hops that share their middle station: west to east first, then south to north."""
    if hops % 2 or hops < 2:
        raise LayoutError(f"{hops} hops have no middle station for a cross; give an even number of hops, 2 or more")
    _check_count(2 * hops + 1)
    middle = hops // 2
    across = [(i * spacing_m, middle * spacing_m, 0.0) for i in range(hops + 1)]
    upward = [(middle * spacing_m, i * spacing_m, 0.0) for i in range(hops + 1) if i != middle]
    return _number(across + upward)


def cross_ends(hops: int) -> list[tuple[str, str]]:
    """The ends of a cross's two arms: (west, east) and (south, north)."""
    return [(station_name(1), station_name(hops + 1)), (station_name(hops + 2), station_name(2 * hops + 1))]


def circle(nodes: int) -> list[Placed]:
    """`nodes` stations without positions: evenly on a circle of UNPLACED_RADIUS_M, so that maps can draw them."""
    _check_count(nodes)
    turns = [math.tau * number / nodes for number in range(nodes)]
    # sta1 at the top, clockwise
    return _number([(_on_circle(math.sin(turn)), _on_circle(math.cos(turn)), 0.0) for turn in turns])


def _on_circle(share: float) -> float:
    return round(UNPLACED_RADIUS_M * (1 + share), 3)


def random_uniform(nodes: int, area: tuple[float, float], seed: int) -> list[Placed]:
    """`nodes` stations anywhere in the area, each drawn independently: a further station changes no other position."""
    _check_count(nodes)
    if not (0 < area[0] <= MAX_COORDINATE_M and 0 < area[1] <= MAX_COORDINATE_M):
        raise LayoutError(f"an area of {area[0]:g} x {area[1]:g} m is outside 0 to {MAX_COORDINATE_M:g} m; give another")
    rngs = [Random(f"random placement {seed} {number}") for number in range(1, nodes + 1)]
    return _number([(rng.random() * area[0], rng.random() * area[1], 0.0) for rng in rngs])


def names_of(own_names: Sequence[str | None]) -> list[str]:
    """The names of stations in the order of their numbers: one without a name of its own is named by its number."""
    return [name or station_name(number) for number, name in enumerate(own_names, start=1)]


def explicit(points: Sequence[tuple[float, ...]], names: Sequence[str | None] | None = None) -> list[Placed]:
    """Stations at given points (x, y) or (x, y, z); a station without a name is named by its number."""
    _check_count(len(points))
    placed: list[Placed] = []
    taken = set[str]()
    own_names = names or [None] * len(points)
    for own_name, name, point in zip(own_names, names_of(own_names), points, strict=True):
        if own_name is not None and STATION_NAME.fullmatch(own_name) is None:
            raise LayoutError(f'"{own_name}" is no station name; use at most 10 of a-z, 0-9 and "-", beginning with a letter')
        if name in taken:
            raise LayoutError(f'two stations are named "{name}"; give each its own name')
        taken.add(name)
        placed.append(Placed(name, *_in_range(name, point)))
    return placed


# by the value of a scenario's `topology`
LAYOUTS: dict[str, Callable[..., list[Placed]]] = {
    "chain": chain,
    "grid": grid,
    "cross": cross,
    "random": random_uniform,
    "positions": explicit,
    "unplaced": circle,
}


def _in_range(name: str, point: tuple[float, ...]) -> tuple[float, ...]:
    if len(point) not in (2, 3):
        raise LayoutError(f"{name} has {len(point)} coordinates; give x and y, or x, y and z, in metres")
    for axis, value in zip("xyz", point, strict=False):
        if not abs(value) <= MAX_COORDINATE_M:
            raise LayoutError(
                f"{axis} of {name} is {value:g} m, outside {-MAX_COORDINATE_M:g} to {MAX_COORDINATE_M:g} m; move the origin so "
                "that all coordinates are within"
            )
    return point


def _check_count(count: int) -> None:
    if not 1 <= count <= MAX_STATIONS:
        raise LayoutError(f"{count} stations are outside 1 to {MAX_STATIONS}; give another number of stations")


def _number(points: list[tuple[float, float, float]]) -> list[Placed]:
    return explicit(points)
