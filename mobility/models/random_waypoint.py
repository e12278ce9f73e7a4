"""The random waypoint model (Johnson and Maltz, 1996), with the speeds of Holland and Vaidya, MobiCom 1999, section 2.

A station moves from its position in a straight line to a point drawn uniformly from the area, at a speed drawn uniformly
from `1 - spread` to `1 + spread` times the mean (0.1: the paper's; 0: fixed; (b - a)/(b + a) with the mean (a + b)/2: a to b),
pauses, and goes on to the next point. What is drawn depends on the seed and the number of
the station alone, so that the same seed visits the same points in the same order whatever the mean speed: without a pause
the movement at twice the speed is the same movement in half the time, which is how the paper compares speeds.

By default two biases remain: stations gather towards the middle, and slow legs last longer than fast ones, so the mean speed
falls over time (a tenth about the mean: by 0.3 %; 0 to twice the mean: without limit). `start="steady"` starts every station in
the steady state of the movement (Navidi and Camp, IEEE Trans. Mobile Computing 3(1), 2004, sections 2 to 4): nothing changes over
time, and the first position is drawn, not the placed one. With `edges="wrap"` a station takes the shortest path to its point
across the edges, re-enters at the opposite edge, and stations stay evenly spread.

The area of Dyer and Boppana (On routing web and multimedia traffic in mobile ad hoc networks) wraps: a pattern based on random
waypoint, 1000 x 1000 m, speeds uniform from 0 to 20 m/s with a mean of 10 m/s, no pause; at an edge a node continues at once
from the opposite edge in the same direction. Their text leaves open what ends a leg. `legs="to-point"`, the default, ends it at
the point, because the text names random waypoint; the mean speed over time then falls below 10 m/s, since slow legs last longer.
`legs="timed"` heads for the point for the time that the way there takes at the mean speed, so the distance is in proportion to
the speed drawn, and speeds are uniform over time with the mean of the text. Both keep positions uniform.
"""

import math
from collections.abc import Sequence
from random import Random

from mobility.edges import Piece, legs_along, wrapped
from mobility.trace import Leg, Place, TraceError

SPREAD = 0.1
MIN_SPEED_SHARE = 1e-3  # of the mean: with a spread of 1 some stations would stop for ever


def random_waypoint(
    places: Sequence[Place],
    area: tuple[float, float],
    *,
    begin_s: float,
    end_s: float,
    seed: int | str,
    speed: float,
    spread: float = SPREAD,
    pause: float = 0.0,
    pauses: str = "fixed",
    edges: str = "inside",
    legs: str = "to-point",
    start: str = "placed",
) -> list[Leg]:
    """The legs of all stations from `begin_s`, before which they stand at `places` (name, x, y, z), to `end_s`. They keep their
    height. `speed`: mean, m/s; `spread` 0 to 1; `pause`: s, or with `pauses="uniform"` the mean of 0 to twice as much;
    `edges`: inside, wrap; `legs`: to-point, timed; `start`: placed, steady."""
    if legs == "timed" and edges != "wrap":
        raise TraceError(
            'random-waypoint: a timed leg may lead beyond its point and out of the area; give edges = "wrap", '
            'or legs = "to-point"'
        )
    if start == "steady" and (spread >= 1 or edges == "wrap"):
        raise TraceError(
            'random-waypoint: there is no steady state with a spread of 1 or more or with edges = "wrap"; '
            'give a spread below 1 and edges = "inside", or start = "placed"'
        )
    all_legs: list[Leg] = []
    for number, (name, x, y, z) in enumerate(places, start=1):
        walk = _Walk(Random(f"random-waypoint {seed} {number}"), Random(f"random-waypoint pauses {seed} {number}"), area)
        walk.speeds = (speed, spread)
        walk.pauses = (pause, pauses)
        walk.wrap, walk.timed = edges == "wrap", legs == "timed"
        here, time_s = (x, y), begin_s
        first: list[Leg] = []
        if start == "steady":
            here, first, time_s = walk.steady(Random(f"random-waypoint steady {seed} {number}"), name, z, begin_s)
        all_legs += [Leg(0.0, name, (*here, z), 0.0), *first]
        all_legs += walk.legs(name, first[-1].to[:2] if first else here, z, time_s, end_s)
    return sorted(all_legs, key=lambda leg: leg.start_s)


class _Walk:
    """The movement of one station. Pauses have their own random stream, so that points and speeds do not depend on them."""

    speeds: tuple[float, float]
    pauses: tuple[float, str]
    wrap: bool
    timed: bool

    def __init__(self, rng: Random, pause_rng: Random, area: tuple[float, float]) -> None:
        self.rng, self.pause_rng, self.area = rng, pause_rng, area

    def legs(self, name: str, here: tuple[float, float], z: float, time_s: float, end_s: float) -> list[Leg]:
        legs: list[Leg] = []
        while time_s < end_s:
            there = (self.rng.random() * self.area[0], self.rng.random() * self.area[1])
            slowest, fastest = 1 - self.speeds[1], 1 + self.speeds[1]
            pace = max(MIN_SPEED_SHARE, slowest + (fastest - slowest) * self.rng.random())  # as a share of the mean
            speed = self.speeds[0] * pace
            if self.wrap:
                share = pace if self.timed else 1.0
                x, y = self._shortest(here, there)
                more, time_s = legs_along(wrapped(here, (x * share, y * share), self.area), name, z, time_s, speed)
                legs += more
            else:
                legs.append(Leg(time_s, name, (*there, z), speed))
                time_s += math.dist(here, there) / speed
            time_s += self._pause()
            here = there if not self.wrap else legs[-1].to[:2]
        return legs

    def _pause(self) -> float:
        pause_s, kind = self.pauses
        return 2 * pause_s * self.pause_rng.random() if kind == "uniform" else pause_s

    def _shortest(self, here: tuple[float, float], there: tuple[float, float]) -> tuple[float, float]:
        """The vector to `there` on the area with its opposite edges joined."""
        offsets = (b - a for a, b in zip(here, there, strict=True))
        x, y = (offset - size * round(offset / size) for offset, size in zip(offsets, self.area, strict=True))
        return (x, y)

    def steady(self, rng: Random, name: str, z: float, begin_s: float) -> tuple[tuple[float, float], list[Leg], float]:
        """The stationary state at the start: position, the rest of the current leg, and the time of its end (s)."""
        mean, spread = self.speeds
        slowest, fastest = mean * (1 - spread), mean * (1 + spread)
        slowness = math.log(fastest / slowest) / (fastest - slowest) if spread > 1e-9 else 1 / mean
        moving_s = mean_distance_m(*self.area) * slowness
        pause_s, kind = self.pauses
        if rng.random() * (pause_s + moving_s) < pause_s:
            here = (rng.random() * self.area[0], rng.random() * self.area[1])
            # the rest of a pause at a random instant, which is more likely in a long one
            rest_s = pause_s * rng.random() if kind == "fixed" else 2 * pause_s * (1 - math.sqrt(rng.random()))
            return here, [], begin_s + rest_s
        piece = self._long_leg(rng)
        share = rng.random()
        x, y = (a + (b - a) * share for a, b in zip(piece.begin, piece.end, strict=True))
        speed = slowest * (fastest / slowest) ** rng.random()  # density 1/v: slow legs last longer
        arrival_s = begin_s + math.dist((x, y), piece.end) / speed
        return (x, y), [Leg(begin_s, name, (*piece.end, z), speed)], arrival_s + self._pause()

    def _long_leg(self, rng: Random) -> Piece:
        """A leg between two points of the area, drawn in proportion to its length."""
        longest_m = math.hypot(*self.area)
        while True:
            a, b = ((rng.random() * self.area[0], rng.random() * self.area[1]) for _ in range(2))
            if rng.random() * longest_m < math.dist(a, b):
                return Piece(a, b)


def mean_distance_m(width_m: float, height_m: float) -> float:
    """The mean distance of two points drawn uniformly from a rectangle (Ghosh 1951; 0.5214 for the unit square)."""
    a, b = width_m, height_m
    d = math.hypot(a, b)
    logs = b * b / a * math.log((a + d) / b) + a * a / b * math.log((b + d) / a)
    return (a**3 / b**2 + b**3 / a**2 + d * (3 - a * a / (b * b) - b * b / (a * a)) + 2.5 * logs) / 15
