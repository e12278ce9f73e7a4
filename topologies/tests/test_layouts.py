"""Layouts, addresses and connectivity."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topologies
from topologies import LayoutError, connectivity
from topologies.addresses import GATEWAY_END, HOST_END, wire_interfaces, wire_ip, wire_mac, wire_network
from topologies.layouts import cross_ends


def neighbours_by_range(points, range_m):
    """For every station, the stations at most `range_m` away, in the order of the list."""
    return {
        name: [other for other, *there in points if other != name and math.dist(here, there) <= range_m] for name, *here in points
    }


def names(placed):
    return [station.name for station in placed]


def test_a_chain_of_three_hops_has_four_stations_in_a_line():
    assert topologies.chain(3, 200) == [("sta1", 0, 0, 0), ("sta2", 200, 0, 0), ("sta3", 400, 0, 0), ("sta4", 600, 0, 0)]


def test_a_random_layout_is_uniform_and_a_further_station_moves_no_other():
    placed = topologies.random_uniform(1000, (1500.0, 300.0), 1)
    assert all(0 <= station.x_m <= 1500 and 0 <= station.y_m <= 300 for station in placed)
    spread = 4 * math.sqrt(1000 * 0.25 * 0.75)  # four standard deviations of how many fall into a quarter
    for side in (lambda station: station.x_m // 375, lambda station: station.y_m // 75):
        assert all(abs(sum(side(station) == quarter for station in placed) - 250) < spread for quarter in range(4))
    assert topologies.random_uniform(3, (1500.0, 300.0), 1) == placed[:3]
    assert topologies.random_uniform(3, (1500.0, 300.0), 2) != placed[:3]
    assert (placed[0].x_m, placed[0].y_m) == (215.40690969138066, 252.4727301394153)  # old results hang on it
    with pytest.raises(LayoutError, match="area of 0 x 300 m"):
        topologies.random_uniform(3, (0.0, 300.0), 1)


def test_a_grid_begins_and_ends_in_opposite_corners():
    placed = topologies.grid(2, 3, 50)
    assert names(placed) == ["sta1", "sta2", "sta3", "sta4", "sta5", "sta6"]
    assert placed[0][1:] == (0, 0, 0)
    assert placed[-1][1:] == (100, 50, 0)


def test_the_arms_of_a_cross_share_their_middle_station():
    placed = {station.name: station[1:3] for station in topologies.cross(4, 200)}
    assert len(placed) == 9
    assert placed["sta3"] == (400, 400)
    assert cross_ends(4) == [("sta1", "sta5"), ("sta6", "sta9")]
    assert (placed["sta1"], placed["sta5"], placed["sta6"], placed["sta9"]) == ((0, 400), (800, 400), (400, 0), (400, 800))
    routes = connectivity.next_hops(neighbours_by_range(topologies.cross(4, 200), 250))
    assert "sta3" in connectivity.path(routes, "sta1", "sta5")
    assert "sta3" in connectivity.path(routes, "sta6", "sta9")


def test_stations_without_positions_are_on_a_circle():
    placed = topologies.circle(8)
    assert names(placed) == [f"sta{number}" for number in range(1, 9)]
    assert all(abs(math.hypot(x - 10, y - 10) - 10) < 0.001 for _, x, y, _ in placed)
    assert len({station[1:3] for station in topologies.circle(1000)}) == 1000
    assert placed[0][1:] == (10, 20, 0), "at the top"


def test_explicit_positions_may_bring_names():
    placed = topologies.explicit([(1, 2), (3, 4, 5)], [None, "gw1"])
    assert placed == [("sta1", 1, 2, 0), ("gw1", 3, 4, 5)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: topologies.chain(-1, 200), "0 stations are outside 1 to 2000; give another number of stations"),
        (
            lambda: topologies.cross(3, 200),
            "3 hops have no middle station for a cross; give an even number of hops, 2 or more",
        ),
        (
            lambda: topologies.explicit([(0, 0), (0, -2e7)]),
            "y of sta2 is -2e+07 m, outside -1e+07 to 1e+07 m; move the origin so that all coordinates are within",
        ),
        (
            lambda: topologies.explicit([(0, 0), (1, 1)], ["sta2", None]),
            'two stations are named "sta2"; give each its own name',
        ),
        (
            lambda: topologies.explicit([(0, 0)], ["Gateway 1"]),
            '"Gateway 1" is no station name; use at most 10 of a-z, 0-9 and "-", beginning with a letter',
        ),
        (
            lambda: topologies.explicit([(0,)]),
            "sta1 has 1 coordinates; give x and y, or x, y and z, in metres",
        ),
    ],
)
def test_an_impossible_layout_is_an_error_with_the_remedy(make, message):
    with pytest.raises(LayoutError) as caught:
        make()
    assert str(caught.value) == message


def test_addresses_follow_from_the_number_alone():
    assert (topologies.station_name(1), topologies.mac_address(1), topologies.ip_address(1)) == (
        "sta1",
        "02:00:00:00:00:01",
        "10.0.0.1",
    )
    assert (topologies.mac_address(300), topologies.ip_address(300)) == ("02:00:00:00:01:2c", "10.0.1.44")


def test_a_wire_is_a_network_of_its_own():
    assert (wire_network(3), wire_ip(3, GATEWAY_END), wire_ip(3, HOST_END)) == ("192.168.3.0/30", "192.168.3.1", "192.168.3.2")
    macs = {wire_mac(wire, end) for wire in (1, 2, 250) for end in (GATEWAY_END, HOST_END)}
    assert len(macs) == 6 and "02:00:00:01:fa:02" in macs
    assert not macs & {topologies.mac_address(number) for number in (1, 2, 257, 65534)}
    assert wire_interfaces(["gw", "sta1", "gw", "gw"]) == ["eth0", "eth0", "eth1", "eth2"]
    with pytest.raises(ValueError, match="wire number 251 is outside 1 to 250"):
        wire_network(251)


def test_station_numbers_begin_at_one():
    with pytest.raises(ValueError, match="station number 0 is outside 1 to 65534; number stations from 1"):
        topologies.ip_address(0)


@given(st.integers(1, 65534), st.integers(1, 65534))
def test_no_two_numbers_share_an_address(a, b):
    assert (topologies.ip_address(a) == topologies.ip_address(b)) == (a == b)
    assert (topologies.mac_address(a) == topologies.mac_address(b)) == (a == b)


def test_chain_neighbours_at_200_m_are_one_hop_and_no_more():
    neighbours = neighbours_by_range(topologies.chain(5, 200), 250)
    assert neighbours["sta3"] == ["sta2", "sta4"]
    assert connectivity.hop_counts(neighbours, "sta6") == {f"sta{i}": 6 - i for i in range(1, 7)}


def test_one_way_links_are_followed_in_their_direction_only():
    neighbours = {"a": ["b"], "b": [], "c": ["a"]}
    assert connectivity.hop_counts(neighbours, "b") == {"b": 0, "a": 1, "c": 2}
    assert connectivity.hop_counts(neighbours, "a") == {"a": 0, "c": 1}
    routes = connectivity.next_hops(neighbours)
    assert connectivity.path(routes, "c", "b") == ["c", "a", "b"]
    assert connectivity.path(routes, "b", "c") == []


@given(
    st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 1000)), min_size=1, max_size=12),
    st.floats(1, 1500),
)
def test_every_route_is_as_long_as_its_hop_count(points, range_m):
    placed = topologies.explicit(points)
    neighbours = neighbours_by_range(placed, range_m)
    routes = connectivity.next_hops(neighbours)
    where = {station.name: station[1:] for station in placed}
    for target in neighbours:
        hops = connectivity.hop_counts(neighbours, target)
        for source in neighbours:
            passed = connectivity.path(routes, source, target)
            assert len(passed) == (hops[source] + 1 if source in hops else 0)
            for here, there in pairwise(passed):
                assert math.dist(where[here], where[there]) <= range_m
