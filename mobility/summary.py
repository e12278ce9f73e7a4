"""Figures of a movement: duration, speeds, area."""

import math
from dataclasses import dataclass

from mobility.trace import Trace

MIN_JUMP_M = 1e-6  # less is a rounding error


@dataclass(frozen=True)
class Summary:
    """Figures of all stations between two instants. Speeds in m/s of moving stations (None without any); `mean_mps` and
    `moving_share` over the whole time of all stations, with rest; `area` is the bounding rectangle: x from, x to, y from, y to
    (m)."""

    stations: int
    begin_s: float
    end_s: float
    slowest_mps: float | None
    fastest_mps: float | None
    mean_mps: float
    moving_share: float
    jumps: int
    area: tuple[float, float, float, float]


def summary(trace: Trace, begin_s: float, end_s: float) -> Summary:
    """The numbers of a movement between two instants (s; `begin_s` below `end_s`)."""
    speeds: list[float] = []
    corners, gone_m, moving_s, jumps = [], 0.0, 0.0, 0
    for station in trace.stations():
        corners += [trace.position(station, begin_s), trace.position(station, end_s)]
        for course, next_s in trace.courses_until(station, end_s):
            begins_s = max(course.start_s, begin_s)
            ends_s = min(end_s, next_s)
            if ends_s < begins_s or course.start_s > end_s:
                continue
            corners.append(trace.position(station, begins_s))
            if math.isinf(course.speed_mps):
                jumps += begin_s <= course.start_s <= end_s and math.dist(course.origin, course.to) > MIN_JUMP_M
                continue
            lasts_s = min(course.arrival_s, ends_s) - begins_s
            if course.speed_mps > 0 and lasts_s > 0:
                speeds.append(course.speed_mps)
                moving_s += lasts_s
                gone_m += lasts_s * course.speed_mps
                corners.append(trace.position(station, begins_s + lasts_s))
    whole_s = (end_s - begin_s) * len(trace.stations())
    xs, ys = [corner[0] for corner in corners], [corner[1] for corner in corners]
    return Summary(
        len(trace.stations()), begin_s, end_s, min(speeds, default=None), max(speeds, default=None), gone_m / whole_s,
        moving_s / whole_s, jumps, (min(xs), max(xs), min(ys), max(ys)),
    )  # fmt: skip
