"""Random waypoint: its properties in the paper, for any seed."""

import math
from itertools import pairwise

import pytest

from mobility import trace
from mobility.models.random_waypoint import random_waypoint

AREA = (1500.0, 300.0)
PLACES = [(f"sta{i}", 50.0 * i, 150.0, 1.5) for i in range(1, 31)]
GOLDEN = [1226.1521881258966, 15.545221702562495, 1.5, 10.836360097674229]  # x, y, z, m/s


def legs_of(seed: int = 1, mean_mps: float = 10.0, pause_s: float = 0.0, end_s: float = 400.0, places=PLACES) -> dict[str, list]:
    legs = random_waypoint(places, AREA, speed=mean_mps, pause=pause_s, begin_s=10.0, end_s=end_s, seed=seed)
    return {name: [leg for leg in legs if leg.station == name] for name, *_ in places}


def test_stations_stand_until_the_beginning_and_go_on_to_the_end():
    for (_, x, y, z), legs in zip(PLACES, legs_of().values(), strict=True):
        assert (legs[0].start_s, legs[0].to, legs[0].speed_mps) == (0, (x, y, z), 0)
        assert legs[1].start_s == 10
        arrival_s = legs[-1].start_s + math.dist(legs[-2].to, legs[-1].to) / legs[-1].speed_mps
        assert legs[-1].start_s < 400 <= arrival_s


@pytest.mark.parametrize("pause_s", [0.0, 5.0])
def test_a_leg_begins_when_the_last_has_ended_and_the_pause_too(pause_s):
    for legs in legs_of(pause_s=pause_s).values():
        for (before, leg), after in zip(pairwise(legs[1:]), legs[3:], strict=False):
            assert leg.start_s + math.dist(before.to, leg.to) / leg.speed_mps + pause_s == pytest.approx(after.start_s)


def test_points_and_speeds_are_uniform_in_their_ranges():
    legs = [leg for seed in range(5) for station in legs_of(seed, end_s=2000).values() for leg in station[1:]]
    assert all(0 <= x <= AREA[0] and 0 <= y <= AREA[1] and z == 1.5 for x, y, z in (leg.to for leg in legs))
    for values, low, high in (
        ([leg.to[0] for leg in legs], 0, AREA[0]),
        ([leg.to[1] for leg in legs], 0, AREA[1]),
        ([leg.speed_mps for leg in legs], 9, 11),
    ):
        # a quarter of n values in each quarter; four standard deviations of a binomial
        n, spread = len(values), 4 * math.sqrt(len(values) * 0.25 * 0.75)
        quarters = [sum(low + (high - low) * q / 4 <= v < low + (high - low) * (q + 1) / 4 for v in values) for q in range(4)]
        assert sum(quarters) == n > 3000
        assert all(abs(count - n / 4) < spread for count in quarters), quarters


def test_the_same_seed_visits_the_same_points_at_any_speed_in_proportion():
    slow, fast = legs_of(mean_mps=2, end_s=910), legs_of(mean_mps=20, end_s=100)  # 900 s and 90 s of movement
    for name, legs in slow.items():
        assert [leg.to for leg in legs] == [leg.to for leg in fast[name]]
        for one, other in zip(legs[1:], fast[name][1:], strict=True):
            assert one.start_s - 10 == pytest.approx(10 * (other.start_s - 10))
            assert other.speed_mps == pytest.approx(10 * one.speed_mps)


def test_seeds_differ_and_a_further_station_changes_no_other_movement():
    assert legs_of(1) == legs_of(1)
    assert legs_of(1)["sta1"] != legs_of(2)["sta1"]
    fewer = legs_of(1, places=PLACES[:5])
    assert all(fewer[name] == legs_of(1)[name] for name in fewer)


def test_the_first_leg_of_seed_1_is_the_one_it_always_was():
    """Python promises that Random(str).random() stays the same; the results of old runs hang on it."""
    leg = legs_of(1)["sta1"][1]
    assert [*leg.to, leg.speed_mps] == pytest.approx(GOLDEN, rel=1e-12)


def test_the_trace_reads_back_and_every_station_follows_its_legs():
    legs = [leg for station in legs_of().values() for leg in station]
    read = trace.parse(trace.write(legs, 400.0).encode(), "t.csv", [name for name, *_ in PLACES])
    for name, station in legs_of().items():
        for leg, after in pairwise(station[1:]):
            middle_s = (leg.start_s + after.start_s) / 2
            at = read.position(name, middle_s)
            assert math.dist(at, leg.to) == pytest.approx(leg.speed_mps * (after.start_s - middle_s), abs=1e-5)
