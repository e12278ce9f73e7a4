"""The movement of a station as the page gets it."""

import math

from mobility.trace import Trace


def motion(trace: Trace, name: str) -> list[list[float]]:
    """The station's legs as rows [t_ns, x, y, vx, vy], with a row for each arrival."""
    rows: list[list[float]] = []
    courses = trace.courses(name)
    for place, course in enumerate(courses):
        next_ns = courses[place + 1].start_ns if place + 1 < len(courses) else math.inf
        moves = course.speed_mps > 0 and not math.isinf(course.speed_mps) and course.origin != course.to
        if not moves:
            rows.append([course.start_ns, *course.at(course.start_ns)[:2], 0.0, 0.0])
            continue
        length_m = math.dist(course.origin, course.to)
        speeds = [course.speed_mps * (b - a) / length_m for a, b in zip(course.origin[:2], course.to[:2], strict=True)]
        rows.append([course.start_ns, *course.origin[:2], *speeds])
        arrival_ns = course.arrival_s * 1e9
        if arrival_ns < next_ns:
            rows.append([round(arrival_ns), *course.to[:2], 0.0, 0.0])
    return rows
