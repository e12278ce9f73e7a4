"""Reference point group mobility (Hong, Gerla, Pei and Chiang, MSWiM 1999): groups whose members move about their group's centre.

A group's centre goes by random waypoint, without a pause. A member's reference point keeps its offset from the centre, drawn
uniformly from a disc of `radius`; every `interval` the member heads for where it shall be at the next one: its reference
point plus a vector drawn uniformly from a disc of `wander`. In between it goes straight, at most at the centre's speed plus 2
`wander` / `interval`. Station i of n belongs to group floor((i - 1) `groups` / n) + 1: neighbours in number are companions.
The model says where stations stand from the start; of their places only the names and heights are used.
"""

import math
from collections.abc import Sequence
from random import Random

from mobility.models.random_waypoint import random_waypoint
from mobility.trace import Leg, Place, Trace, TraceError


def group(
    places: Sequence[Place],
    area: tuple[float, float],
    *,
    begin_s: float,
    end_s: float,
    seed: int,
    speed: float,
    spread: float = 0.1,
    groups: int = 4,
    radius: float = 100.0,
    wander: float = 20.0,
    interval: float = 10.0,
) -> list[Leg]:
    """`speed`: mean of the centres, m/s, drawn as in random waypoint; `groups`: 1 up; `radius`, `wander`: m, `interval`: s."""
    margin = radius + wander
    inner = (area[0] - 2 * margin, area[1] - 2 * margin)
    if min(inner) <= 0:
        raise TraceError(
            f"group: members up to {margin:g} m from the centre do not fit into {area[0]:g} x {area[1]:g} m; "
            "lower radius or wander, or enlarge the area"
        )
    rngs = [Random(f"group centre {seed} {number}") for number in range(1, groups + 1)]
    starts = [(f"group{i}", rng.random() * inner[0], rng.random() * inner[1], 0.0) for i, rng in enumerate(rngs, start=1)]
    seed_of_centres = f"centres {seed}"  # a text: they must not move like stations of a random waypoint with this seed
    movement = random_waypoint(
        starts, inner, begin_s=begin_s, end_s=end_s + interval, seed=seed_of_centres, speed=speed, spread=spread
    )
    centres = Trace("group centres", movement)
    steps = max(0, math.ceil((end_s - begin_s) / interval))
    legs = []
    for number, (name, _x, _y, z) in enumerate(places, start=1):
        centre = f"group{(number - 1) * groups // len(places) + 1}"
        offset = _in_disc(rng := Random(f"group member {seed} {number}"), radius)
        here: tuple[float, float] | None = None
        for step in range(steps + 1):
            time_s = begin_s + step * interval
            x, y, _ = centres.position(centre, time_s)
            stray = _in_disc(rng, wander)
            there = (x + margin + offset[0] + stray[0], y + margin + offset[1] + stray[1])
            if here is None:
                legs.append(Leg(0.0, name, (*there, z), 0.0))
            else:
                legs.append(Leg(time_s - interval, name, (*there, z), math.dist(here, there) / interval))
            here = there
    return sorted(legs, key=lambda leg: leg.start_s)


def _in_disc(rng: Random, radius: float) -> tuple[float, float]:
    distance, angle = radius * math.sqrt(rng.random()), 2 * math.pi * rng.random()
    return (distance * math.cos(angle), distance * math.sin(angle))
