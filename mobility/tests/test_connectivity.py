"""The oracle: against simple geometry by hand, and against independent computations that step through time."""

import csv
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobility import connectivity, files, trace
from mobility.files import ns2
from mobility.models import MODELS
from mobility.trace import Leg, Trace, TraceError

PATTERNS = Path(__file__).parents[1] / "patterns"
NAMES = [path.stem for path in sorted(PATTERNS.glob("p*.tcl"))]


def walk(*legs: Leg, end_s: float = 100.0, **places: tuple[float, float]) -> Trace:
    return Trace("t", [*trace.place({name: (*at, 0.0) for name, at in places.items()}), *legs], end_s)


def test_a_link_comes_and_goes_at_the_roots_of_the_quadratic():
    # passes 150 m beside the other at 10 m/s: within 250 m while |x| <= 200 m, which is from 30 s to 70 s
    moving = walk(Leg(0, "b", (500, 150, 0), 10), a=(0, 0), b=(-500, 150))
    found = connectivity.links(moving)
    assert [contact.ends for contact in found.contacts] == [("a", "b")]
    assert (found.contacts[0].begin_s, found.contacts[0].end_s) == pytest.approx((30, 70), abs=1e-9)
    assert found.changes == 2


def test_exactly_the_range_is_in_range_and_beyond_is_not():
    assert connectivity.links(walk(a=(0, 0), b=(250, 0), end_s=5)).hops("a", "b").shares() == {1: 1.0}
    assert connectivity.links(walk(a=(0, 0), b=(250.001, 0), end_s=5)).hops("a", "b").shares() == {0: 1.0}


def test_a_contact_that_goes_on_over_a_turn_and_a_stop_is_one():
    moving = walk(Leg(5, "b", (200, 0, 0), 10), Leg(8, "b", (50, 0, 0), 5), Leg(9, "b", (0, 0, 0), 0), a=(0, 0), b=(100, 0))
    assert [(c.begin_s, c.end_s) for c in connectivity.links(moving).contacts] == [(0, 100)]


def test_a_jump_out_of_range_ends_a_contact_at_its_instant():
    moving = walk(Leg(40, "b", (900, 0, 0), math.inf), Leg(60, "b", (10, 0, 0), math.inf), a=(0, 0), b=(100, 0))
    found = connectivity.links(moving)
    assert [(c.begin_s, c.end_s) for c in found.contacts] == [(0, 40), (60, 100)]
    assert found.hops("a", "b").partitions() == [(40, 60)]


def test_stations_that_move_together_stay_together():
    moving = walk(Leg(1, "a", (5000, 0, 0), 10), Leg(1, "b", (5200, 0, 0), 10), a=(0, 0), b=(200, 0))
    assert [(c.begin_s, c.end_s) for c in connectivity.links(moving).contacts] == [(0, 100)]


def test_hops_of_a_chain_with_a_moving_end():
    """d walks from beside a to the end of the chain a b c at 200 m: 1 hop to x = 250 m, 2 to 450 m, then 3."""
    moving = walk(Leg(0, "d", (600, 0, 0), 10), a=(0, 0), b=(200, 0), c=(400, 0), d=(0, 0), end_s=80)
    profile = connectivity.links(moving).hops("a", "d")
    assert [hops for _, _, hops in profile.steps()] == [1, 2, 3]
    assert [until for _, until, _ in profile.steps()] == pytest.approx([25, 45, 80])
    assert profile.mean_hops == pytest.approx((25 + 2 * 20 + 3 * 35) / 80)
    assert (profile.at(0), profile.at(24.9), profile.at(25.1), profile.at(79)) == (1, 1, 2, 3)
    assert [path for _, path in profile.paths] == [["a", "d"], ["a", "b", "d"], ["a", "b", "c", "d"]]


def test_a_path_changes_when_it_breaks_even_if_another_is_as_short():
    """Two relays; the first leaves at 20 s, the second takes over: 2 hops all the time, and one change."""
    moving = walk(Leg(20, "r", (0, 900, 0), math.inf), a=(-200, 0), r=(0, 0), s=(0, 10), b=(200, 0), end_s=50)
    profile = connectivity.links(moving).hops("a", "b")
    assert profile.shares() == {2: 1.0}
    assert profile.path_changes_s() == [20]
    assert [path for _, path in profile.paths] == [["a", "r", "b"], ["a", "s", "b"]]


def test_a_longer_detour_is_no_change_while_the_shortest_path_exists():
    moving = walk(Leg(20, "s", (0, 900, 0), math.inf), a=(-100, 0), s=(0, 0), b=(100, 0), end_s=50)
    assert connectivity.links(moving).hops("a", "b").path_changes_s() == []


def test_the_network_is_partitioned_while_one_station_is_alone():
    moving = walk(Leg(30, "c", (900, 0, 0), math.inf), a=(0, 0), b=(200, 0), c=(400, 0), end_s=120)
    found = connectivity.links(moving)
    assert found.partitioned_share() == pytest.approx(0.75)
    assert found.hops("a", "b").shares() == {1: 1.0}
    # 30 s with a-b 1, b-c 1, a-c 2, then a-b alone: at a quarter of the instants 3 pairs (4 hops), at the others 1 pair (1 hop)
    assert found.mean_hops() == pytest.approx((25 * 4 + 75 * 1) / (25 * 3 + 75 * 1))


def test_one_station_alone_has_no_links_and_no_mean():
    found = connectivity.links(walk(a=(0, 0), end_s=5))
    assert found.contacts == [] and found.partitioned_share() == 0 and math.isnan(found.mean_hops())


def test_a_window_of_the_trace_can_be_selected():
    moving = walk(Leg(0, "b", (500, 150, 0), 10), a=(0, 0), b=(-500, 150))
    steps = connectivity.links(moving, begin_s=40, end_s=80).hops("a", "b").steps()
    assert steps == [(40, pytest.approx(70), 1), (pytest.approx(70), 80, 0)]


def test_a_trace_without_an_end_is_followed_until_all_stand():
    moving = walk(Leg(10, "b", (300, 0, 0), 10), a=(0, 0), b=(0, 0), end_s=None)
    assert connectivity.links(moving).end_s == pytest.approx(40)  # 300 m at 10 m/s from 10 s on
    assert connectivity.links(walk(a=(0, 0), b=(0, 0), end_s=None)).end_s == 1, "nothing moves, and a second is looked at"


def test_unknown_ends_and_empty_windows_are_refused():
    found = connectivity.links(walk(a=(0, 0), b=(1, 0)))
    with pytest.raises(TraceError, match='there is no station "c"; the stations are a, b'):
        found.hops("a", "c")
    with pytest.raises(TraceError, match='"a" is both ends'):
        found.hops("a", "a")
    with pytest.raises(TraceError, match="nothing lies between 9 s and 9 s"):
        connectivity.links(walk(a=(0, 0)), begin_s=9, end_s=9)


# --- against independent computations -----------------------------------------------------------------------------------


def stepped_hops(xy: np.ndarray, range_m: float, a: int, b: int) -> np.ndarray:
    """Hops from a to b (0: none) for positions [time, station, axis], by a search at every instant. A set of stations is a number
    with a bit for each (at most 62)."""
    count = xy.shape[1]
    x, y = np.ascontiguousarray(xy.transpose(2, 1, 0))
    near = np.zeros((count, len(xy)), dtype=np.int64)
    for one in range(count):
        for other in range(one):
            apart = ((x[one] - x[other]) ** 2 + (y[one] - y[other]) ** 2 <= range_m**2).astype(np.int64)
            near[one] |= apart << other
            near[other] |= apart << one
    hops = np.zeros(len(xy), dtype=int)
    front = seen = np.full(len(xy), np.int64(1) << a)
    for length in range(1, count):
        new = np.zeros_like(seen)
        for station in range(count):
            new |= near[station] & -(front >> station & 1)
        front = new & ~seen
        seen = seen | front
        hops[(front >> b & 1).astype(bool)] = length
        if not front.any():
            break
    return hops


def positions_by_hand(text: str, times: np.ndarray) -> np.ndarray:
    """[time, station, axis] from a script's text alone, not by the code under test: the corners of each way, joined by lines."""
    corners: dict[int, list[tuple[float, float, float]]] = {}
    for node, axis, value in re.findall(r"\$node_\((\d+)\) set ([XY])_ (\S+)", text):
        x, y = corners[int(node)][0][1:] if int(node) in corners else (0.0, 0.0)
        corners[int(node)] = [(0.0, float(value) if axis == "X" else x, float(value) if axis == "Y" else y)]
    for at, node, x, y, speed in re.findall(r'at (\S+) "\$node_\((\d+)\) setdest (\S+) (\S+) (\S+)"', text):
        way, at_s = corners[int(node)], float(at)
        here = [float(np.interp(at_s, [t for t, *_ in way], [corner[k] for corner in way])) for k in (1, 2)]
        while way and way[-1][0] >= at_s:  # it turns before it is there
            way.pop()
        arrival_s = at_s + math.hypot(float(x) - here[0], float(y) - here[1]) / float(speed)
        way += [(at_s, *here), (arrival_s, float(x), float(y))]
    columns = [np.array(corners[node]).T for node in sorted(corners)]
    return np.stack([np.stack([np.interp(times, t, x), np.interp(times, t, y)], axis=1) for t, x, y in columns], axis=1)


def test_the_ten_patterns_are_all_here():
    assert [f"p{i:02}" for i in range(1, 11)] == NAMES


@pytest.mark.parametrize("pattern", NAMES)
def test_a_pattern_s_hops_equal_those_of_a_search_every_tenth_of_a_second(pattern):
    """0.1 s at 1 m/s is 10 ms at 10 m/s. They are equal at all 36 000."""
    path = PATTERNS / f"{pattern}.tcl"
    profile = connectivity.links(files.read(path)).hops("sta1", "sta2")
    times = np.arange(0.05, 3600, 0.1)
    stepped = stepped_hops(positions_by_hand(path.read_text(), times), 250.0, 0, 1)
    found = profile.hops[np.searchsorted(profile.times_s, times, side="right") - 1]
    assert times[found != stepped].tolist() == []


@pytest.mark.parametrize("pattern", NAMES)
def test_a_pattern_s_shares_of_hops_are_those_of_the_reference(pattern):
    """Samples every 0.5 s of 3600 s miss by half a step a change at most: 0.25 s times the changes, of 3600 s."""
    with (PATTERNS / "hops.csv").open() as file:
        rows = {row["pattern"]: row for row in csv.DictReader(line for line in file if not line.startswith("#"))}
    row = rows[pattern]
    profile = connectivity.links(files.read(PATTERNS / f"{pattern}.tcl")).hops("sta1", "sta2")
    shares = profile.shares()
    for hops in range(8):
        assert shares.get(hops, 0.0) == pytest.approx(float(row[f"hops{hops}"]), abs=0.0005)
    assert max(shares) < 8
    # samples can miss two changes within half a second, never see one more
    changes = len(profile.steps()) - 1
    assert int(row["changes"]) <= changes <= int(row["changes"]) + 6


def test_god_lines_agree_with_the_oracle():
    """Worked out by hand: node 1 passes at 10 m/s, 150 m beside node 0, and on its way is in range of node 2, too."""
    script = """
    $node_(0) set X_ 0
    $node_(0) set Y_ 0
    $node_(1) set X_ -500
    $node_(1) set Y_ 150
    $node_(2) set X_ 400
    $node_(2) set Y_ 150
    $god_ set-dist 0 1 16777215
    $god_ set-dist 0 2 16777215
    $ns_ at 0 "$node_(1) setdest 500 150 10"
    $ns_ at 30.0 "$god_ set-dist 0 1 1"
    $ns_ at 65.0 "$god_ set-dist 0 2 2"
    $ns_ at 70.0 "$god_ set-dist 0 2 16777215"
    $ns_ at 70.0 "$god_ set-dist 0 1 16777215"
    """
    made = ns2.parse(script.encode(), "p.tcl")
    assert connectivity.disagreeing(connectivity.links(made), ns2.god_lines(made)) == []
    wrong = [ns2.God(40.0, ("sta1", "sta2"), 3)]
    assert connectivity.disagreeing(connectivity.links(made), wrong) == wrong


coordinate = st.floats(0, 600)
leg = st.builds(
    Leg,
    st.floats(0, 90),
    st.sampled_from(["a", "b", "c", "d"]),
    st.tuples(coordinate, coordinate, st.just(0.0)),
    st.one_of(st.floats(0.5, 60), st.just(0.0), st.just(math.inf)),
)


@settings(deadline=None)
@given(st.lists(leg, max_size=14), st.floats(20, 400))
def test_any_movement_s_hops_equal_those_of_a_search_at_every_instant(legs, range_m):
    moving = walk(*sorted(legs, key=lambda leg: leg.start_s), a=(0, 0), b=(200, 100), c=(400, 300), d=(600, 0))
    profile = connectivity.links(moving, range_m).hops("a", "d")
    times = np.arange(0.013, 100, 0.37)
    xy = np.array([[moving.position(name, float(time))[:2] for name in "abcd"] for time in times])
    stepped = stepped_hops(xy, range_m, 0, 3)
    apart = np.sqrt(((xy[:, :, None] - xy[:, None]) ** 2).sum(axis=3))
    clear = (np.abs(apart - range_m) > 1e-4).all(axis=(1, 2))  # no pair at the very edge, where rounding decides
    found = np.array([profile.at(float(time)) for time in times])
    assert (found == stepped)[clear].all()


@pytest.mark.parametrize("model", ["random-waypoint", "gauss-markov", "manhattan", "group"])
def test_every_model_s_hops_equal_those_of_a_search(model):
    places = [(f"sta{i}", 70.0 * i % 1500, 31.0 * i % 300, 0.0) for i in range(1, 16)]
    extra = {"radius": 60.0} if model == "group" else {}
    legs = MODELS[model](places, (1500.0, 300.0), begin_s=0.0, end_s=120.0, seed=3, speed=15.0, **extra)
    moving = Trace(model, legs, 120.0)
    profile = connectivity.links(moving).hops("sta1", "sta9")
    times = np.arange(0.0123, 120, 0.31)
    xy = np.array([[moving.position(name, float(time))[:2] for name in moving.stations()] for time in times])
    found = np.array([profile.at(float(time)) for time in times])
    assert (found == stepped_hops(xy, 250.0, 0, 8)).all()


def test_links_of_a_part_are_those_computed_for_that_part_alone():
    moving = files.read(PATTERNS / "p06.tcl")
    whole = connectivity.links(moving)
    for begin_s, end_s in ((0.0, 50.0), (12.5, 90.25), (60.0, whole.end_s)):
        part, alone = whole.between(begin_s, end_s), connectivity.links(moving, begin_s=begin_s, end_s=end_s)
        assert part.contacts == alone.contacts
        assert part.hops("sta1", "sta2").seconds() == alone.hops("sta1", "sta2").seconds()
