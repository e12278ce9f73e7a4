"""The numbers of a movement, against those calculated by hand."""

import math

import pytest

from mobility import trace
from mobility.summary import summary
from mobility.trace import Leg, Trace


def test_speeds_rest_and_area_of_two_stations():
    """a: 100 m at 10 m/s from 5 s on, then 5 s of rest; b: 25 m at 5 m/s in the last 5 s, and a jump at 10 s. 20 s each."""
    places = trace.place({"a": (0.0, 0.0, 0.0), "b": (50.0, 7.0, 0.0)})
    legs = [Leg(5, "a", (100, 0, 0), 10), Leg(10, "b", (50, -9, 0), math.inf), Leg(15, "b", (200, -9, 0), 5)]
    found = summary(Trace("t", [*places, *legs]), 0, 20)
    assert (found.stations, found.slowest_mps, found.fastest_mps, found.jumps) == (2, 5, 10, 1)
    assert found.mean_mps == pytest.approx((100 + 25) / 40)
    assert found.moving_share == pytest.approx((10 + 5) / 40)
    assert found.area == (0, 100, -9, 7)


def test_a_jump_of_a_rounding_error_is_none():
    """A waypoint that is there twice, with another last digit."""
    legs = [Leg(5, "a", (0.1 + 0.2, 0, 0), math.inf), Leg(6, "a", (0.3, 0, 0), math.inf), Leg(7, "a", (0.4, 0, 0), math.inf)]
    assert summary(Trace("t", [*trace.place({"a": (0.3, 0.0, 0.0)}), *legs]), 0, 20).jumps == 1


def test_a_window_counts_what_happens_in_it():
    moving = Trace("t", [*trace.place({"a": (0.0, 0.0, 0.0)}), Leg(0, "a", (100, 0, 0), 1)])
    found = summary(moving, 50, 70)
    assert (found.mean_mps, found.moving_share) == (1, 1)
    assert found.area[:2] == pytest.approx((50, 70))


def test_without_movement_there_is_no_speed():
    found = summary(Trace("t", trace.place({"a": (0.0, 0.0, 0.0)})), 0, 9)
    assert (found.slowest_mps, found.fastest_mps, found.mean_mps, found.moving_share, found.jumps) == (None, None, 0, 0, 0)
