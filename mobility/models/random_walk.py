"""The random walk (Camp, Boleng and Davies, WCMC 2(5), 2002, section 2.1): legs of one length in directions drawn uniformly.

The survey's second form: a new direction and speed after a distance, not after a time, so that the same seed visits the same
points in the same order at any mean speed. Speeds as random waypoint's. At an edge a station bounces off, or re-enters opposite.
"""

import math
from collections.abc import Sequence
from random import Random

from mobility.edges import bounced, legs_along, wrapped
from mobility.trace import Leg, Place


def random_walk(
    places: Sequence[Place],
    area: tuple[float, float],
    *,
    begin_s: float,
    end_s: float,
    seed: int,
    speed: float,
    spread: float = 0.1,
    step: float = 100.0,
    edges: str = "bounce",
) -> list[Leg]:
    """`speed`: mean, m/s, drawn from `1 - spread` to `1 + spread` times it (0 to below 1); `step`: m; `edges`: bounce, wrap."""
    legs = []
    for number, (name, x, y, z) in enumerate(places, start=1):
        rng = Random(f"random-walk {seed} {number}")
        legs.append(Leg(0.0, name, (x, y, z), 0.0))
        here, time_s = (x, y), begin_s
        while time_s < end_s:
            angle = 2 * math.pi * rng.random()
            vector = (step * math.cos(angle), step * math.sin(angle))
            pieces = wrapped(here, vector, area) if edges == "wrap" else bounced(here, vector, area)[0]
            pace = speed * (1 - spread + 2 * spread * rng.random())
            more, time_s = legs_along(pieces, name, z, time_s, pace)
            legs += more
            here = pieces[-1].end
    return sorted(legs, key=lambda leg: leg.start_s)
