"""Random waypoint on an area whose edges wrap, with the values of Dyer and Boppana: its properties, the jump in its readers."""

import math
import random
from collections import Counter
from itertools import pairwise

import pytest

from mobility import connectivity, trace
from mobility.files import bonnmotion, ns2
from mobility.models.random_waypoint import random_waypoint
from mobility.summary import summary
from mobility.trace import Leg, Trace, TraceError

AREA = (1000.0, 1000.0)
LEGS = pytest.mark.parametrize("legs", ["to-point", "timed"])
GOLDEN = {
    "to-point": [
        (0.0, 561.7597382958331, 491.6390483992227, 0.0),
        (0.0, 817.434792083931, 51.817405675208306, 18.363600976742283),
        (27.703525306557186, 1000.0, 196.85388343696664, 18.35860775585205),
        (40.40407416869452, 0.0, 196.85388343696664, math.inf),
        (40.40407416869452, 256.8513436127315, 400.905984114835, 18.35860775585205),
        (58.272500891922306, 64.96079830867365, 510.4435061544105, 6.116968220668586),
        (94.39390845488106, 515.8331252312846, 205.4204045103295, 10.793526778655716),
        (144.82759732165243, 165.11663029217664, 233.72264019975165, 16.218043891468803),
        (166.5229765990663, 219.69518178438454, 0.0, 8.935407831491549),
    ],
    "timed": [
        (0.0, 561.7597382958331, 491.6390483992227, 0.0),
        (0.0, 847.5570432335451, 0.0, 18.363600976742283),
        (30.967404729480574, 847.5570432335451, 1000.0, math.inf),
        (30.967404729480574, 1000.0, 737.7620120800018, 18.363600976742283),
        (47.48527476808848, 0.0, 737.7620120800018, math.inf),
        (47.48527476808848, 31.27120504300816, 683.9681336073121, 18.363600976742283),
        (50.87364843786981, 445.4049331942383, 164.30543630123793, 18.35860775585205),
        (87.06903203749988, 212.68846491076312, 376.0369936267799, 6.116968220668586),
        (138.50338856798498, 539.8884658083671, 191.88152127564922, 10.793526778655716),
    ],
}


def made(legs: str, seed: int = 1, count: int = 50, end_s: float = 300.0) -> Trace:
    """Nodes at uniform places in 1000 x 1000 m, 0 to 20 m/s, no pause, for 100 s of warm-up and 200 s."""
    rng = random.Random(f"places {seed}")
    places = [(f"sta{i}", 1000 * rng.random(), 1000 * rng.random(), 0.0) for i in range(1, count + 1)]
    keys = {"speed": 10.0, "spread": 1.0, "edges": "wrap", "legs": legs}
    return Trace("wrapped", random_waypoint(places, AREA, begin_s=0.0, end_s=end_s, seed=seed, **keys), end_s)


@pytest.fixture
def seed() -> int:
    """A fresh seed, printed for a failed test."""
    drawn = random.SystemRandom().randrange(1 << 30)
    print(f"seed {drawn}")
    return drawn


@LEGS
def test_positions_are_inside_and_steps_are_no_longer_than_the_speed_except_across_an_edge(legs, seed):
    moving = made(legs, seed)
    for name in moving.stations():
        points = [moving.position(name, 0.1 * k)[:2] for k in range(3001)]
        assert all(0 <= value <= 1000 for point in points for value in point)
        for (x0, y0), (x1, y1) in pairwise(points):
            across = math.hypot(*(abs(d) - 1000 * round(abs(d) / 1000) for d in (x1 - x0, y1 - y0)))
            assert across <= 20 * 0.1 + 1e-5, (name, x0, y0, x1, y1)


@LEGS
def test_a_jump_leads_to_the_opposite_edge_and_the_direction_stays(legs, seed):
    moving = made(legs, seed)
    jumps = 0
    for name in moving.stations():
        courses = moving.courses(name)
        for before, jump, after in zip(courses, courses[1:], courses[2:], strict=False):
            if not math.isinf(jump.speed_mps):
                continue
            jumps += 1
            offsets = sorted(abs(a - b) for a, b in zip(jump.origin, jump.to, strict=True))
            assert offsets == pytest.approx([0, 0, 1000], abs=1e-4)
            assert jump.start_ns == after.start_ns and before.speed_mps == after.speed_mps
            ways = [[b - a for a, b in zip(c.origin, c.to, strict=True)] for c in (before, after)]
            if min(math.hypot(*way) for way in ways) > 1:  # of a shorter piece the nanosecond of its start turns the direction
                directions = [math.atan2(way[1], way[0]) for way in ways]
                assert math.remainder(directions[1] - directions[0], 2 * math.pi) == pytest.approx(0, abs=1e-5)
    assert jumps > 50


@LEGS
def test_positions_stay_uniform_over_the_area(legs, seed):
    """1000 stations in 16 squares at three instants: chi-square with 15 degrees of freedom is below 52.2 with 1 - 5e-6."""
    moving = made(legs, seed, count=1000)
    for time_s in (0.0, 100.0, 299.0):
        at = [moving.position(name, time_s) for name in moving.stations()]
        cells = Counter((min(3, int(x // 250)), min(3, int(y // 250))) for x, y, _ in at)
        chi_square = sum((cells[i, j] - 62.5) ** 2 / 62.5 for i in range(4) for j in range(4))
        assert chi_square < 52.2, (time_s, cells)


def test_timed_legs_keep_the_mean_speed_of_the_paper_and_legs_to_a_point_do_not(seed):
    """1000 stations, standard deviation of 5.77 m/s and several legs each: four times 5.77 / sqrt(1000) is 0.73 m/s."""
    timed, to_point = (summary(made(legs, seed, count=1000), 100, 300).mean_mps for legs in ("timed", "to-point"))
    assert timed == pytest.approx(10, abs=0.73)
    assert to_point < 8


def test_seed_1_has_the_movement_that_it_always_had():
    """Python promises that Random(str).random() stays the same."""
    for legs, rows in GOLDEN.items():
        found = [leg for leg in made(legs).legs if leg.station == "sta1"][: len(rows)]
        assert [(leg.start_s, *leg.to[:2], leg.speed_mps) for leg in found] == [pytest.approx(row, rel=1e-12) for row in rows]


@LEGS
def test_a_wrapped_movement_goes_through_every_form_of_file(legs):
    moving = made(legs, count=10)
    params = dict(line.split("=") for line in bonnmotion.params(moving).splitlines())
    again = [
        trace.parse(trace.write(moving.legs, 300.0).encode(), "t.csv"),
        ns2.parse(ns2.write(moving).encode(), "t.tcl"),
        bonnmotion.parse(bonnmotion.write(moving).encode(), "t.movements", params),
    ]
    starts_s = {leg.start_s for leg in moving.legs if math.isinf(leg.speed_mps)}
    for name in moving.stations():
        for time_s in [0.37 * k for k in range(800)]:
            if all(abs(time_s - start_s) > 1e-6 for start_s in starts_s):
                wanted = pytest.approx(moving.position(name, time_s), abs=1e-4)
                assert all(other.position(name, time_s) == wanted for other in again), (name, time_s)


def test_a_link_ends_at_the_jump_because_distance_does_not_wrap():
    """b leaves a at 20 m/s, is at the right edge at 10 s, 200 m from a, and re-enters 800 m away from it."""
    legs = [*trace.place({"a": (800.0, 500.0, 0.0), "b": (800.0, 500.0, 0.0), "c": (100.0, 500.0, 0.0)})]
    legs += [Leg(0, "b", (1000, 500, 0), 20), Leg(10, "b", (0, 500, 0), math.inf), Leg(10, "b", (200, 500, 0), 20)]
    found = connectivity.links(Trace("t", legs, 20.0))
    assert [(c.ends, c.begin_s, c.end_s) for c in found.contacts] == [(("a", "b"), 0, 10), (("b", "c"), 10, 20)]
    assert found.hops("a", "b").partitions() == [(10, 20)]
    assert summary(Trace("t", legs, 20.0), 0, 20).mean_mps == pytest.approx(400 / 60)  # the jump counts no metres


def test_timed_legs_without_wrapping_are_refused():
    with pytest.raises(TraceError, match='give edges = "wrap"'):
        random_waypoint([("sta1", 0, 0, 0)], AREA, begin_s=0, end_s=1, seed=1, speed=10, legs="timed")
