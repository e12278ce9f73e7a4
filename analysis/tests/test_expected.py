"""Expected throughput by hand, and on the ten patterns with the published chain curve; the profile figure of one of them."""

from pathlib import Path

import pytest

from analysis.drawing.profiles import draw_profile
from analysis.metrics.expected import Curve, ExpectedError, expected, percent
from analysis.references import load_reference
from analysis.tests.drawn import page
from mobility import connectivity, files, trace
from mobility.trace import Leg, Trace

PATTERNS = Path(__file__).parents[2] / "mobility" / "patterns"
PUBLISHED = load_reference("published", "holland-vaidya_fig1")
HV = Curve({int(hops): kbps for hops, kbps in zip(*PUBLISHED.series("hops", "acked_kbps"), strict=True)}, PUBLISHED.name)


def test_permanent_neighbours_get_the_throughput_of_one_hop():
    """The paper's own example, two passengers of a car."""
    assert expected({1: 120.0}, HV) == 1463.0


def test_stations_that_never_meet_get_nothing():
    assert expected({0: 120.0}, HV) == 0.0


def test_the_mean_is_over_the_whole_time_partitions_included():
    # (10 s * 1463 + 20 s * 729 + 5 s * 0 + 5 s * 484.4) / 40 s
    assert expected({1: 10.0, 2: 20.0, 0: 5.0, 3: 5.0}, HV) == pytest.approx((14630 + 14580 + 2422) / 40)


def test_a_walk_along_a_chain_is_worth_the_time_spent_at_each_length():
    """1 hop for 25 s, 2 for 20 s, 3 for 35 s (the walk of mobility/tests/test_connectivity.py)."""
    places = trace.place({name: (x, 0.0, 0.0) for name, x in (("a", 0), ("b", 200), ("c", 400), ("d", 0))})
    found = connectivity.links(Trace("t", [*places, Leg(0, "d", (600, 0, 0), 10)], 80.0))
    assert expected(found.hops("a", "d").seconds(), HV) == pytest.approx((25 * 1463 + 20 * 729 + 35 * 484.4) / 80)


def test_it_does_not_depend_on_the_speed():
    once = files.read(PATTERNS / "p04.tcl")
    fast = Trace("t", once.scaled(20.0).legs, 3600 / 20)
    values = [expected(connectivity.links(one).hops("sta1", "sta2").seconds(), HV) for one in (once, fast)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_the_ten_patterns_have_the_hops_of_the_reference():
    """From the shares of hops.csv, which another computation gave; p09 and p06 are the best and the worst."""
    values = {}
    for path in sorted(PATTERNS.glob("p*.tcl")):
        values[path.stem] = expected(connectivity.links(files.read(path)).hops("sta1", "sta2").seconds(), HV)
    by_hand = {"p01": 0.2490 * 1463 + 0.3210 * 729 + 0.2300 * 484.4 + 0.1049 * 339.9 + 0.0460 * 246.4,
               "p08": 0.6822 * 1463 + 0.0779 * 729 + 0.0575 * 484.4 + 0.0908 * 339.9 + 0.0915 * 246.4}  # fmt: skip
    for pattern, value in by_hand.items():
        assert values[pattern] == pytest.approx(value, rel=2e-3)
    assert (max(values, key=values.get), min(values, key=values.get)) == ("p09", "p06")


def test_paths_longer_than_the_curve_are_refused_or_given_its_end():
    short = Curve({1: 100.0, 2: 50.0}, "two chains")
    with pytest.raises(ExpectedError, match="two chains: the curve ends at 2 hops and a path has 3; measure longer chains"):
        expected({3: 1.0}, short)
    assert expected({3: 1.0, 1: 1.0}, short, beyond=True) == 75.0
    assert expected({3: 0.0, 1: 1.0}, short) == 100.0  # a length that never occurs needs no value


@pytest.mark.parametrize("values", [{}, {2: 1.0}, {1: 1.0, 3: 1.0}, {0: 1.0, 1: 1.0}, {1: -1.0}, {1: float("nan")}])
def test_a_curve_with_gaps_or_without_numbers_is_refused(values):
    with pytest.raises(ExpectedError, match="measure"):
        Curve(values, "x")


@pytest.mark.parametrize("seconds", [{}, {1: 0.0}, {1: -1.0, 2: 3.0}])
def test_no_time_has_no_mean(seconds):
    with pytest.raises(ExpectedError, match="have no mean"):
        expected(seconds, HV)


def test_a_percentage_of_nothing_is_none():
    assert percent(50.0, 200.0) == 25.0
    assert percent(0.0, 0.0) is None


def test_the_profile_of_a_pattern_is_drawn(tmp_path):
    profile = connectivity.links(files.read(PATTERNS / "p06.tcl")).hops("sta1", "sta2")
    drawn = page(draw_profile, profile, tmp_path / "p06.png", "p06", "note")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p06.pdf", "p06.png", "p06.svg"]
    (panel,) = drawn.panels
    steps = [(round(begin_s, 4), round(end_s, 4), hops) for begin_s, end_s, hops in profile.steps()]
    level = [(one.x[0], one.x[1], one.y[0]) for one in panel.series if one.y[0] == one.y[1]]
    assert level == [step for step in steps if step[2]] and len(level) > 10
    assert [box.x for box in panel.boxes] == [step[:2] for step in steps if not step[2]], "without a path"
    assert (panel.title, panel.xlabel, panel.ylabel) == ("p06", "time (s)", "hops sta1 to sta2") and "note" in drawn.words
