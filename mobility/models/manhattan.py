"""The Manhattan grid (ETSI TR 101 112, UMTS 30.03, annex B; Bai, Sadagopan and Helmy, INFOCOM 2003): stations in streets.

Streets cut the area into `columns` x `rows` blocks, its border included. A station goes from crossing to crossing; there it goes
straight on with probability 0.5 and turns left or right with 0.25 each, never back; a direction that leads out of the area is
not drawn. Between crossings the speed is constant, drawn as random waypoint's. Not modelled: lanes, stations that keep their
distance, pauses. The model says where stations stand from the start (a point drawn uniformly from all streets); of their places
only the names and heights are used.
"""

import math
from collections.abc import Sequence
from random import Random

from mobility.edges import Point
from mobility.trace import Leg, Place

STRAIGHT, TURN = 0.5, 0.25  # UMTS 30.03, annex B
Crossing = tuple[int, int]


def manhattan(
    places: Sequence[Place],
    area: tuple[float, float],
    *,
    begin_s: float,
    end_s: float,
    seed: int,
    speed: float,
    spread: float = 0.1,
    columns: int = 5,
    rows: int = 5,
) -> list[Leg]:
    """`speed`: mean, m/s, drawn from `1 - spread` to `1 + spread` times it; `columns`, `rows`: blocks, 1 or more."""
    legs = []
    block = (area[0] / columns, area[1] / rows)
    for number, (name, _x, _y, z) in enumerate(places, start=1):
        rng = Random(f"manhattan {seed} {number}")
        crossing, heading, here = _start(rng, area, (columns, rows), block)
        legs.append(Leg(0.0, name, (*here, z), 0.0))
        time_s = begin_s
        while time_s < end_s:
            there = (crossing[0] * block[0], crossing[1] * block[1])
            pace = speed * (1 - spread + 2 * spread * rng.random())
            legs.append(Leg(time_s, name, (*there, z), pace))
            time_s += math.dist(here, there) / pace
            here = there
            heading = _next_heading(rng, crossing, heading, (columns, rows))
            crossing = (crossing[0] + heading[0], crossing[1] + heading[1])
    return sorted(legs, key=lambda leg: leg.start_s)


def _start(rng: Random, area: Point, blocks: Crossing, block: Point) -> tuple[Crossing, Crossing, Point]:
    """The next crossing, the heading, and the starting point; all points of the streets are equally likely."""
    along_x_m, along_y_m = area[0] * (blocks[1] + 1), area[1] * (blocks[0] + 1)
    axis = 0 if rng.random() * (along_x_m + along_y_m) < along_x_m else 1
    street = min(blocks[1 - axis], int(rng.random() * (blocks[1 - axis] + 1)))
    place = rng.random() * blocks[axis]  # in blocks
    forward = rng.random() < 0.5
    ahead = min(blocks[axis], math.floor(place) + 1) if forward else math.floor(place)
    step = 1 if forward else -1
    if axis == 0:
        return (ahead, street), (step, 0), (place * block[0], street * block[1])
    return (street, ahead), (0, step), (street * block[0], place * block[1])


def _next_heading(rng: Random, at: Crossing, heading: Crossing, blocks: Crossing) -> Crossing:
    left, right = (-heading[1], heading[0]), (heading[1], -heading[0])
    directions = [
        (direction, weight)
        for direction, weight in ((heading, STRAIGHT), (left, TURN), (right, TURN))
        if all(0 <= at[k] + direction[k] <= blocks[k] for k in (0, 1))
    ]
    drawn = rng.random() * sum(weight for _, weight in directions)
    for direction, weight in directions:
        drawn -= weight
        if drawn < 0:
            return direction
    return directions[-1][0]
