"""The Gauss-Markov model (Liang and Haas, INFOCOM 1999) in the form of Camp, Boleng and Davies, WCMC 2(5), 2002, section 2.5.

Every `interval` a station draws a new speed and direction around a mixture of the last and the mean values:
v' = m v + (1 - m) mean + sqrt(1 - m^2) deviation N(0, 1), and the direction alike; `memory` m = 0 forgets, 1 never turns. Each
station has a mean direction of its own. Departs from the survey, which turns the mean direction before the edge is reached: here
a station bounces off, its direction and its mean direction mirrored, or re-enters opposite. Speeds are cut to 0 to twice the
mean.
"""

import math
from collections.abc import Sequence
from random import Random

from mobility.edges import bounced, legs_along, wrapped
from mobility.trace import Leg, Place


def gauss_markov(
    places: Sequence[Place],
    area: tuple[float, float],
    *,
    begin_s: float,
    end_s: float,
    seed: int,
    speed: float,
    deviation: float = 0.3,
    turn: float = 0.5,
    memory: float = 0.75,
    interval: float = 1.0,
    edges: str = "bounce",
) -> list[Leg]:
    """`speed`: mean, m/s; `deviation` of the speed as a share of the mean, `turn` of the direction in radians (standard
    deviations); `memory` 0 to 1; `interval`: s; `edges`: bounce, wrap."""
    legs = []
    for number, (name, x, y, z) in enumerate(places, start=1):
        rng = Random(f"gauss-markov {seed} {number}")
        legs.append(Leg(0.0, name, (x, y, z), 0.0))
        here = (x, y)
        pace, direction = speed, (mean_turn := 2 * math.pi * rng.random())
        fresh, noise = 1 - memory, math.sqrt(1 - memory * memory)
        for step in range(max(0, math.ceil((end_s - begin_s) / interval))):
            pace = memory * pace + fresh * speed + noise * deviation * speed * rng.gauss(0, 1)
            pace = min(max(pace, 0.0), 2 * speed)
            direction = memory * direction + fresh * mean_turn + noise * turn * rng.gauss(0, 1)
            time_s = begin_s + step * interval
            if pace == 0:
                legs.append(Leg(time_s, name, (*here, z), 0.0))
                continue
            vector = (pace * interval * math.cos(direction), pace * interval * math.sin(direction))
            if edges == "wrap":
                pieces = wrapped(here, vector, area)
            else:
                pieces, signs = bounced(here, vector, area)
                direction, mean_turn = _mirrored(direction, signs), _mirrored(mean_turn, signs)
            legs += legs_along(pieces, name, z, time_s, pace)[0]
            here = pieces[-1].end
    return sorted(legs, key=lambda leg: leg.start_s)


def _mirrored(angle: float, signs: tuple[float, float]) -> float:
    """The angle after its x or y part has changed sign. It does not use atan2, since whole turns matter to the mixture."""
    if signs[0] < 0:
        angle = math.pi - angle
    return -angle if signs[1] < 0 else angle
