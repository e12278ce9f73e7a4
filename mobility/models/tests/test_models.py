"""All models: the properties that a run relies on, for any model, seed and area."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobility.models import MODELS
from mobility.models.gauss_markov import gauss_markov
from mobility.models.group import group
from mobility.models.manhattan import manhattan
from mobility.models.random_walk import random_walk
from mobility.models.random_waypoint import mean_distance_m, random_waypoint
from mobility.models.schedule import schedule
from mobility.trace import Leg, Trace, TraceError

AREA = (1000.0, 400.0)
SPEED = 10.0
# Each drawn model in its forms: name, parameters beside the speed, and the bounds of its speeds in m/s.
FORMS = [
    ("random-waypoint", {}, (9, 11)),
    ("random-waypoint", {"spread": 0.0}, (10, 10)),
    ("random-waypoint", {"spread": 1.0, "edges": "wrap"}, (0, 20)),
    ("random-waypoint", {"spread": 1.0, "edges": "wrap", "legs": "timed"}, (0, 20)),
    ("random-waypoint", {"spread": 0.5, "pause": 5.0, "pauses": "uniform"}, (5, 15)),
    ("random-waypoint", {"spread": 0.5, "pause": 5.0, "start": "steady"}, (5, 15)),
    ("random-walk", {}, (9, 11)),
    ("random-walk", {"edges": "wrap", "step": 700.0}, (9, 11)),
    ("gauss-markov", {}, (0, 20)),
    ("gauss-markov", {"edges": "wrap", "memory": 0.0}, (0, 20)),
    ("group", {}, (0, 11 + 2 * 20 / 10)),
    ("manhattan", {}, (9, 11)),
]
forms = pytest.mark.parametrize(("model", "parameters", "bounds"), FORMS, ids=lambda value: str(value))


def places(count=8):
    return [(f"sta{i}", 100.0 * i % 1000, 37.0 * i % 400, 1.5) for i in range(1, count + 1)]


def made(model, parameters, seed=1, end_s=300.0, speed=SPEED, count=8, area=AREA) -> Trace:
    legs = MODELS[model](places(count), area, begin_s=10.0, end_s=end_s, seed=seed, speed=speed, **parameters)
    return Trace(model, legs, end_s)


def inside(point, area=AREA) -> bool:
    return -1e-6 <= point[0] <= area[0] + 1e-6 and -1e-6 <= point[1] <= area[1] + 1e-6


@forms
def test_stations_stay_in_the_area_at_their_height(model, parameters, bounds):
    trace = made(model, parameters)
    for name in trace.stations():
        for second in range(300):
            at = trace.position(name, second + 0.123)
            assert inside(at) and at[2] == 1.5, (name, second, at)


@forms
def test_the_same_seed_gives_the_same_trace_and_another_seed_another(model, parameters, bounds):
    assert made(model, parameters).legs == made(model, parameters).legs
    assert made(model, parameters).legs != made(model, parameters, seed=2).legs


@forms
def test_speeds_stay_within_the_bounds_that_the_model_states(model, parameters, bounds):
    speeds = [leg.speed_mps for leg in made(model, parameters).legs if leg.start_s >= 10 and math.isfinite(leg.speed_mps)]
    assert len(speeds) > 20
    assert bounds[0] - 1e-9 <= min(speeds) and max(speeds) <= bounds[1] + 1e-9


@forms
def test_stations_stand_until_the_beginning_and_move_until_the_end(model, parameters, bounds):
    trace = made(model, parameters)
    for name in trace.stations():
        assert trace.position(name, 0) == trace.position(name, 10)
        times = [10, *range(30, 301, 15)]
        assert sum(trace.position(name, a) != trace.position(name, b) for a, b in pairwise(times)) >= len(times) - 2


@forms
def test_only_wrapping_jumps_and_only_from_edge_to_edge(model, parameters, bounds):
    trace = made(model, parameters, end_s=1000.0)
    jumps = [(name, course) for name in trace.stations() for course in trace.courses(name) if math.isinf(course.speed_mps)]
    assert bool(jumps) == (parameters.get("edges") == "wrap")
    for _, course in jumps:
        moved = [abs(a - b) for a, b in zip(course.origin, course.to, strict=True)]
        assert sorted(moved)[1] == pytest.approx(0, abs=1e-5)
        assert min(abs(moved[0] - AREA[0]), abs(moved[1] - AREA[1])) < 1e-5


@pytest.mark.parametrize(("model", "parameters", "bounds"), [form for form in FORMS if form[0] != "group"], ids=str)
def test_a_further_station_changes_no_other_movement(model, parameters, bounds):
    many, few = made(model, parameters, count=8), made(model, parameters, count=3)
    for name in few.stations():
        assert [leg for leg in many.legs if leg.station == name] == [leg for leg in few.legs if leg.station == name]


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("random-waypoint", {}),
        ("random-waypoint", {"edges": "wrap"}),
        ("random-waypoint", {"edges": "wrap", "legs": "timed"}),
        ("random-walk", {}),
        ("manhattan", {}),
    ],
)
def test_the_same_seed_visits_the_same_points_at_any_speed(model, parameters):
    slow, fast = (made(model, parameters, speed=speed, end_s=10 + 3000 / speed) for speed in (5.0, 30.0))
    for name in slow.stations():
        visited = [[course.to for course in trace.courses(name)] for trace in (slow, fast)]
        assert len(visited[0]) > 3 and visited[0] == visited[1]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(FORMS), st.integers(0, 2**31), st.floats(250, 3000), st.floats(250, 3000), st.floats(0.5, 40))
def test_no_seed_and_no_area_leads_out_of_it(form, seed, width, height, speed):
    model, parameters, _ = form
    start = [(f"sta{i}", width * i / 4, height * i / 4, 0.0) for i in range(1, 4)]
    legs = MODELS[model](start, (width, height), begin_s=1.0, end_s=120.0, seed=seed, speed=speed, **parameters)
    trace = Trace(model, legs)
    for name in trace.stations():
        assert all(inside(trace.position(name, 0.7 * i), (width, height)) for i in range(170))


# --- random waypoint ----------------------------------------------------------------------------------------------------


def mean_speed(legs, begin_s, end_s, station_count):
    """Metres gone between two instants, over the time of all stations, from the legs (m/s)."""
    trace = Trace("t", legs)
    gone = 0.0
    for name in trace.stations():
        courses = trace.courses(name)
        for course, after in zip(courses, [*courses[1:], None], strict=True):
            until = min(course.arrival_s, after.start_s if after else math.inf, end_s)
            if 0 < course.speed_mps < math.inf:
                gone += course.speed_mps * max(0.0, until - max(course.start_s, begin_s))
    return gone / station_count / (end_s - begin_s)


def test_from_the_steady_state_the_mean_speed_does_not_fall_and_otherwise_it_does():
    """1 to 19 m/s, no pause. Steady: 18 / ln 19 = 6.11 m/s at all times; placed: near 10 at first (Navidi and Camp 2004)."""
    steady, placed = (
        random_waypoint(places(300), AREA, begin_s=0, end_s=900, seed=7, speed=10, spread=0.9, start=start)
        for start in ("steady", "placed")
    )
    early, late = (mean_speed(steady, a, b, 300) for a, b in ((0, 20), (800, 820)))
    # 300 stations with a standard deviation of 4.6 m/s: 0.27 of the mean; four of them
    assert early == pytest.approx(18 / math.log(19), abs=1.06) and late == pytest.approx(18 / math.log(19), abs=1.06)
    assert mean_speed(placed, 0, 10, 300) > mean_speed(placed, 800, 820, 300) + 1.5


def test_the_steady_share_of_pausing_stations_is_pause_over_pause_and_leg():
    pause = 60.0
    legs = random_waypoint(places(1000), AREA, begin_s=0, end_s=1, seed=3, speed=10, spread=0.0, pause=pause, start="steady")
    pausing = 1000 - len({leg.station for leg in legs if leg.speed_mps > 0 and leg.start_s == 0})
    share = pause / (pause + mean_distance_m(*AREA) / 10)
    assert pausing == pytest.approx(1000 * share, abs=4 * math.sqrt(1000 * share * (1 - share)))


def test_the_mean_distance_is_the_known_one_of_a_square_and_of_a_line():
    assert mean_distance_m(1, 1) == pytest.approx(0.521405433, abs=1e-9)
    assert mean_distance_m(900, 1e-3) == pytest.approx(300, rel=1e-3)  # a third of a line


@pytest.mark.parametrize("wrong", [{"spread": 1.0}, {"edges": "wrap"}])
def test_parameters_without_a_steady_state_are_refused(wrong):
    with pytest.raises(TraceError, match="there is no steady state"):
        random_waypoint(places(), AREA, begin_s=0, end_s=9, seed=1, speed=10, start="steady", **wrong)


def test_pauses_change_no_waypoint():
    kinds = ({}, {"pause": 3.0}, {"pause": 3.0, "pauses": "uniform"})
    without, fixed, uniform = (made("random-waypoint", parameters, end_s=3000.0) for parameters in kinds)
    for name in without.stations():
        ways = [[course.to for course in trace.courses(name)] for trace in (uniform, fixed, without)]
        shared = min(map(len, ways))
        assert ways[0][:shared] == ways[1][:shared] == ways[2][:shared]


def test_wrapped_stations_are_as_often_in_the_outer_quarters_as_in_the_inner_ones():
    """Along the width: the outer half of the area holds half of the stations; inside edges hold them in the middle."""
    outer = {}
    for edges in ("inside", "wrap"):
        trace = made("random-waypoint", {"edges": edges}, end_s=1000.0, count=60)
        samples = [trace.position(name, 100.0 + 45 * k)[0] for name in trace.stations() for k in range(20)]
        outer[edges] = sum(not 250 <= x < 750 for x in samples) / len(samples)
    assert outer["wrap"] == pytest.approx(0.5, abs=0.07)
    assert outer["inside"] < 0.4


# --- the others ---------------------------------------------------------------------------------------------------------


def test_a_random_walk_bounces_off_like_a_ball():
    legs = random_walk([("sta1", 5.0, 50.0, 0.0)], (100.0, 100.0), begin_s=0, end_s=40, seed=5, speed=10, spread=0, step=500)
    assert all(leg.speed_mps == 10 for leg in legs[1:])
    assert len(legs) >= 5
    assert all(x in (0.0, 100.0) or y in (0.0, 100.0) for x, y, _ in (leg.to for leg in legs[1:4]))


def test_gauss_markov_correlates_speeds_by_its_memory():
    def correlation(memory):
        start, times = [("sta1", 5e4, 5e4, 0.0)], {"begin_s": 0, "end_s": 4000, "seed": 2}
        legs = gauss_markov(start, (1e5, 1e5), **times, speed=10, deviation=0.2, memory=memory)
        speeds = [leg.speed_mps - 10 for leg in legs[1:]]
        return sum(a * b for a, b in pairwise(speeds)) / sum(a * a for a in speeds)

    # 4000 samples: the estimate's standard deviation is below 1/sqrt(4000) = 0.016
    assert correlation(0.0) == pytest.approx(0.0, abs=0.065)
    assert correlation(0.8) == pytest.approx(0.8, abs=0.065)


def test_the_members_of_a_group_stay_together():
    legs = group(places(12), (2000.0, 2000.0), begin_s=0, end_s=400, seed=1, speed=10, groups=3, radius=50, wander=10)
    trace = Trace("t", legs)
    for second in range(0, 400, 7):
        at = {name: trace.position(name, second)[:2] for name in trace.stations()}
        for first in (1, 5, 9):
            members = [at[f"sta{i}"] for i in range(first, first + 4)]
            assert max(math.dist(a, b) for a in members for b in members) <= 2 * (50 + 10) + 1e-6


def test_a_group_that_does_not_fit_is_refused():
    with pytest.raises(TraceError, match="do not fit into 1000 x 400 m"):
        group(places(), AREA, begin_s=0, end_s=9, seed=1, speed=10, radius=200)


def test_manhattan_keeps_to_the_streets_and_never_turns_back():
    legs = manhattan(places(), AREA, begin_s=0, end_s=400, seed=1, speed=10, columns=5, rows=2)
    trace = Trace("t", legs)
    for name in trace.stations():
        for second in range(400):
            x, y, _ = trace.position(name, second)
            assert min(abs(x - 200 * round(x / 200)), abs(y - 200 * round(y / 200))) < 1e-6
        for before, course in pairwise(trace.courses(name)[1:]):
            assert course.to[:2] != pytest.approx(before.origin[:2])


def test_a_schedule_moves_the_listed_stations():
    moves = [
        {"at": 20.0, "station": "sta2", "to": (500.0, 0.0)},
        {"at": 5.0, "station": "sta1", "to": (300.0, 37.0), "speed": 10.0},
    ]
    legs = schedule(places(2), moves=moves, begin_s=10)
    assert legs[2:] == [Leg(15.0, "sta1", (300.0, 37.0, 1.5), 10.0), Leg(30.0, "sta2", (500.0, 0.0, 1.5), math.inf)]
    with pytest.raises(TraceError, match='move 1: there is no station "sta9"'):
        schedule(places(2), moves=[{"at": 0, "station": "sta9", "to": (0, 0)}])


def test_a_replay_is_at_the_same_place_at_the_scaled_instant():
    once = made("gauss-markov", {}, end_s=100.0)
    thrice = Trace("t", once.scaled(3.0, begin_s=7.0).legs)
    for name in once.stations():
        for second in range(100):
            assert thrice.position(name, 7 + second / 3) == pytest.approx(once.position(name, second), abs=1e-5)
