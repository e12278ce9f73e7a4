"""How packets go: following what nodes say, without a network."""

import pytest

from testbed.runs.ways import Next, follow, next_of

NAMES = {f"10.0.0.{number}": f"sta{number}" for number in range(1, 7)}
STATUS = {"routes": [{"destination": "10.0.0.4", "path": ["10.0.0.1", "10.0.0.2", "10.0.0.4"]}, {"destination": "10.0.0.5"}]}


def way(hops: dict[str, Next], deaf: tuple[str, str] | None = None):
    return follow("flow1", "sta1", "sta4", "10.0.0.4", lambda node, _: hops[node], NAMES, lambda a, b: (a, b) != deaf, "9 kbit/s")


def over(number: int) -> Next:
    return Next(f"10.0.0.{number}", "wlan0")


CHAIN = {"sta1": over(2), "sta2": over(3), "sta3": over(4)}


def test_a_way_is_followed_to_its_target():
    found = way(CHAIN)
    assert (found.nodes, found.stop, found.told) == (("sta1", "sta2", "sta3", "sta4"), "", "3 hops, 9 kbit/s")


@pytest.mark.parametrize(
    ("change", "deaf", "nodes", "stop", "towards"),
    [
        ({"sta2": Next(problem="no route")}, None, ("sta1", "sta2"), "sta2: no route", ""),
        ({}, ("sta2", "sta3"), ("sta1", "sta2"), "sta2: sta3 does not hear it", "sta3"),
        ({"sta3": over(1)}, None, ("sta1", "sta2", "sta3"), "sta3: a loop, back to sta1", "sta1"),
        ({"sta2": Next("10.0.0.4", "bat0")}, None, ("sta1", "sta2"), "sta2: goes into bat0, its way is not seen", ""),
    ],
)
def test_a_way_that_breaks_says_where_and_why(change, deaf, nodes, stop, towards):
    found = way(CHAIN | change, deaf)
    assert (found.nodes, found.stop, found.towards) == (nodes, stop, towards)


def test_the_path_that_a_source_has_is_the_whole_way():
    found = way({"sta1": Next(path=("10.0.0.1", "10.0.0.3", "10.0.0.4"), device="wlan0")})
    assert (found.nodes, found.stop) == (("sta1", "sta3", "sta4"), "")


@pytest.mark.parametrize(
    ("said", "target", "found"),
    [
        ('[{"dst":"10.0.0.4","gateway":"10.0.0.2","dev":"wlan0"}]', "10.0.0.4", Next("10.0.0.2", "wlan0")),
        ('[{"dst":"10.0.0.2","dev":"wlan0"}]', "10.0.0.2", Next("10.0.0.2", "wlan0")),
        ("", "10.0.0.4", Next(problem="no route")),
        ('[{"dst":"10.0.0.4","dev":"manet0"}]', "10.0.0.4", Next(path=("10.0.0.1", "10.0.0.2", "10.0.0.4"), device="wlan")),
        ('[{"dst":"10.0.0.5","dev":"manet0"}]', "10.0.0.5", Next(problem="no route")),
        ('[{"dst":"10.0.0.6","dev":"manet0"}]', "10.0.0.6", Next(problem="no route")),
    ],
    ids=["gateway", "neighbour", "unreachable", "source route", "a route without a path", "held"],
)
def test_what_a_kernel_and_a_daemon_say_is_a_next_hop(said, target, found):
    assert next_of(said, STATUS, target) == found
