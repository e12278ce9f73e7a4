"""Paths of packets: from the routes of the nodes, without a network."""

import pytest

from testbed.runs.flow_paths import NextHop, follow_path, parse_next_hop

NAMES = {f"10.0.0.{number}": f"sta{number}" for number in range(1, 7)}
STATUS = {"routes": [{"destination": "10.0.0.4", "path": ["10.0.0.1", "10.0.0.2", "10.0.0.4"]}, {"destination": "10.0.0.5"}]}


def path_of(hops: dict[str, NextHop], deaf: tuple[str, str] | None = None):
    return follow_path(
        "flow1", "sta1", "sta4", "10.0.0.4", lambda node, _: hops[node], NAMES, lambda a, b: (a, b) != deaf, "9 kbit/s"
    )


def over(number: int) -> NextHop:
    return NextHop(f"10.0.0.{number}", "wlan0")


CHAIN = {"sta1": over(2), "sta2": over(3), "sta3": over(4)}


def test_a_path_is_followed_to_its_target():
    found = path_of(CHAIN)
    assert (found.nodes, found.stop, found.summary) == (("sta1", "sta2", "sta3", "sta4"), "", "3 hops, 9 kbit/s")


@pytest.mark.parametrize(
    ("change", "deaf", "nodes", "stop", "towards"),
    [
        ({"sta2": NextHop(problem="no route")}, None, ("sta1", "sta2"), "sta2: no route", ""),
        ({}, ("sta2", "sta3"), ("sta1", "sta2"), "sta2: sta3 does not hear it", "sta3"),
        ({"sta3": over(1)}, None, ("sta1", "sta2", "sta3"), "sta3: a loop, back to sta1", "sta1"),
        ({"sta2": NextHop("10.0.0.4", "bat0")}, None, ("sta1", "sta2"), "sta2: enters bat0; its path beyond is not visible", ""),
    ],
)
def test_a_broken_path_has_the_place_and_the_reason(change, deaf, nodes, stop, towards):
    found = path_of(CHAIN | change, deaf)
    assert (found.nodes, found.stop, found.towards) == (nodes, stop, towards)


def test_a_source_route_is_the_whole_path():
    found = path_of({"sta1": NextHop(path=("10.0.0.1", "10.0.0.3", "10.0.0.4"), device="wlan0")})
    assert (found.nodes, found.stop) == (("sta1", "sta3", "sta4"), "")


@pytest.mark.parametrize(
    ("output", "target", "found"),
    [
        ('[{"dst":"10.0.0.4","gateway":"10.0.0.2","dev":"wlan0"}]', "10.0.0.4", NextHop("10.0.0.2", "wlan0")),
        ('[{"dst":"10.0.0.2","dev":"wlan0"}]', "10.0.0.2", NextHop("10.0.0.2", "wlan0")),
        ("", "10.0.0.4", NextHop(problem="no route")),
        ('[{"dst":"10.0.0.4","dev":"manet0"}]', "10.0.0.4", NextHop(path=("10.0.0.1", "10.0.0.2", "10.0.0.4"), device="wlan")),
        ('[{"dst":"10.0.0.5","dev":"manet0"}]', "10.0.0.5", NextHop(problem="no route")),
        ('[{"dst":"10.0.0.6","dev":"manet0"}]', "10.0.0.6", NextHop(problem="no route")),
    ],
    ids=["gateway", "neighbour", "unreachable", "source route", "a route without a path", "held"],
)
def test_answers_of_kernel_and_daemon_are_next_hops(output, target, found):
    assert parse_next_hop(output, STATUS, target) == found
