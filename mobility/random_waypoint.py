"""The random waypoint model (Johnson and Maltz, 1996), with the speeds of Holland and Vaidya, MobiCom 1999, section 2.

From where it stands a station goes in a straight line to a point drawn uniformly from the area, at a speed drawn uniformly
from 0.9 to 1.1 times the mean, pauses, and goes on to the next point. What is drawn depends on the seed and the number of
the station alone, so that the same seed visits the same points in the same order whatever the mean speed: without a pause
the movement at twice the speed is the same movement in half the time, which is how the paper compares speeds.
Not corrected: that the stations gather towards the middle as they move, and that slow legs last longer than fast ones
(a tenth about the mean: the mean over time is 0.3 % lower).
"""

import math
from collections.abc import Sequence
from random import Random

from mobility.trace import Leg

SLOWEST, FASTEST = 0.9, 1.1  # of the mean speed


def random_waypoint(
    places: Sequence[tuple],
    area: tuple[float, float],
    *,
    mean_mps: float,
    pause_s: float,
    begin_s: float,
    end_s: float,
    seed: int,
) -> list[Leg]:
    """The legs of all stations from `begin_s`, before which they stand at `places` (name, x, y, z), to `end_s`. They keep their
    height."""
    legs = [Leg(0.0, name, (x, y, z), 0.0) for name, x, y, z in places]
    for number, (name, x, y, z) in enumerate(places, start=1):
        dice = Random(f"random-waypoint {seed} {number}")
        here, time_s = (x, y), begin_s
        while time_s < end_s:
            there = (dice.random() * area[0], dice.random() * area[1])
            speed = mean_mps * (SLOWEST + (FASTEST - SLOWEST) * dice.random())
            legs.append(Leg(time_s, name, (*there, z), speed))
            time_s += math.dist(here, there) / speed + pause_s
            here = there
    return sorted(legs, key=lambda leg: leg.start_s)
