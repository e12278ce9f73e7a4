"""The movement of a script as legs of a trace (formats/trace.md); model time 0 is the end of net.build().

Mininet-WiFi moves its nodes step by step from a thread, as fast as the thread runs. Here the whole movement is known before it
begins, and the medium follows it exactly, at the stated speeds in metres per second.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from mobility.edges import bounced, legs_along
from mobility.models import MODELS
from mobility.trace import Leg, Position
from testbed.errors import UsageError
from testbed.mn_wifi.arguments import choice, number, point
from topologies.layouts import Placed

HORIZON_S = 3600.0  # duration of a model's movement; afterwards stations rest
UNKNOWN_MODEL = "is not supported (additional models: scenario={'mobility': 'group' or 'manhattan', 'speed': ..., 'area': [...]})"


@dataclass(frozen=True)
class Bounds:
    """The area (m) and the speeds (m/s) of one station, with Mininet-WiFi's defaults."""

    min_x: float = 0.0
    max_x: float = 100.0
    min_y: float = 0.0
    max_y: float = 100.0
    min_v: float = 1.0
    max_v: float = 10.0

    def check(self, name: str) -> None:
        """Raise UsageError for an empty area or wrong speeds; `name` is the station."""
        for axis in ("x", "y"):
            if getattr(self, f"min_{axis}") >= getattr(self, f"max_{axis}"):
                raise UsageError(f"{name}: min_{axis} is not below max_{axis}; give an area")
        if not 0 < self.min_v <= self.max_v:
            raise UsageError(f"{name}: min_v={self.min_v:g}, max_v={self.max_v:g}: give speeds in m/s, 0 < min_v <= max_v")

    @property
    def area(self) -> tuple[float, float]:
        """Width and height in metres."""
        return self.max_x - self.min_x, self.max_y - self.min_y

    def random_position(self, rng: Random) -> Position:
        """A place drawn uniformly from the area."""
        x, y = (rng.random() * side for side in self.area)
        return self.min_x + x, self.min_y + y, 0.0


@dataclass(frozen=True)
class MobilityModel:
    """The arguments of setMobilityModel. Times and pauses in seconds, speeds in m/s."""

    model: str
    start_s: float = 0.0
    seed: int = 1
    min_wt: float | None = None
    max_wt: float | None = None
    velocity_mean: float = 1.0
    alpha: float = 0.99
    variance: float = 1.0
    pointlist: tuple[Position, ...] = ()
    g_velocity: float = 0.4
    aggregation: float = 0.1

    def __post_init__(self) -> None:
        choice("setMobilityModel", "model", self.model, MODELS_BY_NAME, UNKNOWN_MODEL)
        if self.model == COHERENCE and not self.pointlist:
            raise UsageError("setMobilityModel: model='CRP' has no path; add pointlist=[(x, y, z), ...]")

    @property
    def end_s(self) -> float:
        """The end of the movement."""
        return self.start_s + HORIZON_S

    def first_position(self, number: int, bounds: Bounds) -> Position:
        """The start of station `number`: anywhere in its area, or within a metre of the first point of the group's path."""
        rng = Random(f"mn_wifi place {self.seed} {number}")
        if self.model != COHERENCE:
            return bounds.random_position(rng)
        x, y, z = self.pointlist[0]
        return x + rng.random(), y + rng.random(), z

    def legs(self, number: int, name: str, place: Position, bounds: Bounds) -> list[Leg]:
        """The movement of station `name`, number `number` from 1, from `place`. Raises UsageError."""
        draw = MODELS_BY_NAME[self.model]
        x, y, z = place
        if self.model != COHERENCE and not (bounds.min_x <= x <= bounds.max_x and bounds.min_y <= y <= bounds.max_y):
            raise UsageError(f"{name} at ({x:g}, {y:g}) m is outside its area; enlarge min_x to max_x, min_y to max_y")
        legs = draw(self, number, Placed(name, x - bounds.min_x, y - bounds.min_y, z), bounds)
        return [
            Leg(leg.start_s, name, (leg.to[0] + bounds.min_x, leg.to[1] + bounds.min_y, leg.to[2]), leg.speed_mps)
            for leg in legs
            if leg.start_s > 0 or leg.speed_mps > 0
        ]

    def pause(self) -> dict[str, object]:
        """The pauses as keys of our model: fixed, or uniform from 0. Mininet-WiFi's are uniform from min_wt to max_wt
        (default 1 to 5)."""
        low, high = self.min_wt, self.max_wt
        if low is None and high is None:
            return {"pause": 3.0, "pauses": "uniform"}
        low, high = low or 0.0, low or 0.0 if high is None else high
        if low not in (0.0, high):
            raise UsageError(
                f"setMobilityModel: min_wt={low:g}, max_wt={high:g}: pauses are fixed (min_wt = max_wt) or uniform from 0 "
                "(min_wt=0); give one of the two"
            )
        return {"pause": high, "pauses": "fixed"} if low == high else {"pause": high / 2, "pauses": "uniform"}


def _model_legs(name: str, model: MobilityModel, number: int, here: Placed, bounds: Bounds, **options: object) -> list[Leg]:
    """To get station n's draw, generate n stations and use the last."""
    placed = [*(here._replace(name=f"other{other}") for other in range(1, number)), here]
    legs = MODELS[name](placed, bounds.area, begin_s=model.start_s, end_s=model.end_s, seed=model.seed, **options)
    return [leg for leg in legs if leg.station == here.name]


def _waypoint(model: MobilityModel, number: int, here: Placed, bounds: Bounds) -> list[Leg]:
    mean = (bounds.min_v + bounds.max_v) / 2
    spread = (bounds.max_v - bounds.min_v) / (bounds.max_v + bounds.min_v)
    return _model_legs("random-waypoint", model, number, here, bounds, speed=mean, spread=spread, **model.pause())


def _walk(model: MobilityModel, number: int, here: Placed, bounds: Bounds) -> list[Leg]:
    """Legs of one metre at 1 m/s: Mininet-WiFi's constantDistance and constantVelocity."""
    return _model_legs("random-walk", model, number, here, bounds, speed=1.0, spread=0.0, step=1.0)


def _gauss_markov(model: MobilityModel, number: int, here: Placed, bounds: Bounds) -> list[Leg]:
    mean, noise = model.velocity_mean, model.variance  # a standard deviation, whatever its name
    options = {"deviation": min(2.0, noise / mean), "turn": noise, "memory": model.alpha}
    return _model_legs("gauss-markov", model, number, here, bounds, speed=mean, **options)


def _direction(model: MobilityModel, number: int, here: Placed, bounds: Bounds) -> list[Leg]:
    """Legs of a length uniform from 0 to the longer side, in uniform directions, reflected at the edges."""
    name, x, y, z = here
    rng = Random(f"random-direction {model.seed} {number}")
    time_s, place = model.start_s, (x, y)
    legs: list[Leg] = []
    while time_s < model.end_s:
        angle, length_m = 2 * math.pi * rng.random(), max(1e-3, rng.random() * max(bounds.area))
        pieces, _ = bounced(place, (length_m * math.cos(angle), length_m * math.sin(angle)), bounds.area)
        more, time_s = legs_along(pieces, name, z, time_s, bounds.min_v + (bounds.max_v - bounds.min_v) * rng.random())
        legs += more
        place = pieces[-1].end
    return legs


def _coherence(model: MobilityModel, number: int, here: Placed, bounds: Bounds) -> list[Leg]:
    """Mininet-WiFi's CRP (after Hong, Gerla, Pei and Chiang, MSWiM 1999): a group follows a given path at `g_velocity` m/s and
    stays at its end. Each second every station goes with it, one metre in a random direction, and `aggregation` metres towards
    the group's centre."""
    name, x, y, z = here
    rng = Random(f"coherence {model.seed} {number}")
    path = [(px - bounds.min_x, py - bounds.min_y) for px, py, _ in model.pointlist]
    lengths = [math.dist(a, b) for a, b in pairwise(path)]
    legs, walked_m, centre = [], 0.0, path[0]
    for step in range(int(model.end_s - model.start_s)):
        walked_m += model.g_velocity
        moved = _along_path(path, lengths, walked_m)
        turn, home = 2 * math.pi * rng.random(), math.atan2(moved[1] - y, moved[0] - x)
        dx = math.cos(turn) + moved[0] - centre[0] + model.aggregation * math.cos(home)
        dy = math.sin(turn) + moved[1] - centre[1] + model.aggregation * math.sin(home)
        x, y, centre = x + dx, y + dy, moved
        legs.append(Leg(model.start_s + step, name, (x, y, z), max(1e-3, math.hypot(dx, dy))))
    return legs


def _along_path(path: Sequence[tuple[float, float]], lengths: Sequence[float], walked_m: float) -> tuple[float, float]:
    """The point of a path after `walked_m` metres; its end if it is shorter."""
    for (a, b), length_m in zip(pairwise(path), lengths, strict=True):
        if walked_m < length_m:
            part = walked_m / length_m
            return a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1])
        walked_m -= length_m
    return path[-1]


COHERENCE = "CRP"
MODELS_BY_NAME = {
    "RandomWayPoint": _waypoint, "RandomDirection": _direction, "RandomWalk": _walk, "GaussMarkov": _gauss_markov,
    COHERENCE: _coherence,
}  # fmt: skip


@dataclass
class Course:
    """The scripted movement of one station: net.mobility(sta, 'start' | 'stop', time, position), and sta.coord in between."""

    name: str
    start_s: float | None = None
    stop_s: float | None = None
    start: Position | None = None
    stop: Position | None = None

    def set_end(self, word: str, time: object, position: object) -> None:
        """Set the start or the stop: `word` is 'start' or 'stop', `time` in seconds. Raises UsageError."""
        call = f"mobility({self.name}, {word!r})"
        time_s = number(call, "time", time, 0, 1e6)
        place = None if position is None else point(call, "position", position)
        if word == "start":
            self.start_s, self.start = time_s, place
        elif word == "stop":
            self.stop_s, self.stop = time_s, place
        else:
            raise UsageError(f"{call}: is neither 'start' nor 'stop'; write one of the two")

    def points(self, coord: Sequence[object] | None) -> list[Position]:
        """All places of the path, from start to stop. Raises UsageError if one is missing."""
        if coord is not None:
            return [point(self.name, "coord", place) for place in coord]
        if self.start is None or self.stop is None:
            end = "start" if self.start is None else "stop"
            raise UsageError(f"mobility({self.name}): has no position at its {end}; add position='x,y,z'")
        return [self.start, self.stop]

    def legs(self, coord: Sequence[object] | None, plan: "Timeline") -> list[Leg]:
        """The legs from the first place to the last, at one speed, with the repetitions of `plan`. Raises UsageError."""
        if self.start_s is None or self.stop_s is None or self.start_s >= self.stop_s:
            text = "needs a start, and a stop after it; add net.mobility(..., 'stop', time=...)"
            raise UsageError(f"mobility({self.name}): {text}")
        path, legs = self.points(coord), []
        for turn in range(plan.repetitions):
            base_s = turn * plan.stop_s
            this_path = path[::-1] if plan.reverse and turn % 2 else path
            if turn and not plan.reverse:
                legs.append(Leg(base_s + self.start_s, self.name, this_path[0], math.inf))
            legs += along(self.name, this_path, base_s + self.start_s, base_s + self.stop_s)
        return legs


@dataclass
class Timeline:
    """The arguments of startMobility, mobility and stopMobility. Times in seconds."""

    start_s: float | None = None
    stop_s: float = 0.0
    repetitions: int = 1
    reverse: bool = False
    courses: dict[str, Course] = field(default_factory=dict)

    def of(self, name: str) -> Course:
        """The course of the station with this name, created if needed."""
        return self.courses.setdefault(name, Course(name))


def along(name: str, path: Sequence[Position], begin_s: float, end_s: float) -> list[Leg]:
    """Legs from place to place at the one speed that reaches the last place at `end_s`."""
    lengths = [math.dist(a, b) for a, b in pairwise(path)]
    if sum(lengths) == 0:
        return []
    pace, time_s, legs = sum(lengths) / (end_s - begin_s), begin_s, []
    for to, length_m in zip(path[1:], lengths, strict=True):
        if length_m:
            legs.append(Leg(time_s, name, to, pace))
        time_s += length_m / pace
    return legs


def replayed(name: str, places: Sequence[object], at_s: Sequence[float]) -> list[Leg]:
    """Legs of ReplayingMobility: each place is reached at its own time (s); the first by a jump. Raises UsageError."""
    path = [point(name, "p", place) for place in places]
    return [Leg(at_s[0], name, path[0], math.inf), *between(name, path, at_s)] if path else []


def due(name: str, places: int, times: Sequence[object] | None, points_per_s: float, gone: int = 0) -> list[float]:
    """The time (s) of each of the next places: as given, or `points_per_s` places a second, of which `gone` are reached. Raises
    UsageError."""
    if times is None:
        return [(gone + k) / points_per_s for k in range(places)]
    if len(times) != places:
        raise UsageError(f"{name}: {places} places in p and {len(times)} in time; give each place its time")
    at_s = [math.inf if str(time) == "inf" else number(name, "time", time, 0) for time in times]  # inf: never
    if any(b < a for a, b in pairwise(at_s)):
        raise UsageError(f"{name}: time goes back; give the times in their order")
    return at_s


def between(name: str, path: Sequence[Position], at_s: Sequence[float]) -> list[Leg]:
    """Legs from each place of a path to the next, which is reached at its time (s)."""
    legs = []
    for (a, b), (begin_s, end_s) in zip(pairwise(path), pairwise(at_s), strict=True):
        if begin_s == end_s:
            legs.append(Leg(begin_s, name, b, math.inf))
        elif a != b:
            legs.append(Leg(begin_s, name, b, math.dist(a, b) / (end_s - begin_s)))
    return legs
