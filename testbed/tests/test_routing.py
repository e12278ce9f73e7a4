"""Static routes: shortest paths over links that work both ways."""

import pytest

from scenarios.routing import PROTOCOLS
from testbed.errors import RunError
from testbed.host.protocols import protocols
from testbed.stages import routing
from testbed.stages.routing.static import lengths, next_hops, require_paths, usable


def both_ways(*pairs: tuple[str, str]) -> list[tuple[str, str]]:
    return [*pairs, *((b, a) for a, b in pairs)]


def test_a_chain_is_walked_neighbour_by_neighbour() -> None:
    hops = next_hops(["a", "b", "c", "d"], both_ways(("a", "b"), ("b", "c"), ("c", "d")))
    assert hops["a"] == {"b": "b", "c": "b", "d": "b"}
    assert hops["c"] == {"b": "b", "d": "d", "a": "b"}


def test_of_equal_paths_the_one_over_the_first_station_is_taken() -> None:
    square = both_ways(("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))
    assert next_hops(["a", "b", "c", "d"], square)["a"]["d"] == "b"
    assert next_hops(["a", "b", "c", "d"], list(reversed(square)))["a"]["d"] == "b"


def test_a_link_that_works_one_way_is_no_link() -> None:
    assert next_hops(["a", "b"], [("a", "b")]) == {"a": {}, "b": {}}


def test_an_unreachable_station_has_no_route() -> None:
    assert "c" not in next_hops(["a", "b", "c"], both_ways(("a", "b")))["a"]


def test_a_flow_without_a_path_is_named_and_one_through_a_gateway_has_one() -> None:
    hops = next_hops(["a", "b", "c"], both_ways(("a", "b")))
    require_paths({"flow1": ("a", "host1"), "flow2": ("host1", "b"), "flow3": ("host1", "b")}, {"host1": "b"}, hops)
    with pytest.raises(RunError, match=r"^flow2: there is no path from host1 to c at the start positions"):
        require_paths({"flow1": ("a", "b"), "flow2": ("host1", "c")}, {"host1": "b"}, hops)


def test_the_lengths_of_paths_count_the_wires_of_hosts() -> None:
    hops = next_hops(["a", "b", "c", "d"], both_ways(("a", "b"), ("b", "c")))
    ends = {"a": ("a", 0), "host1": ("c", 1)}
    addresses = {"10.0.0.1": ("a", 0), "10.0.0.3": ("c", 0), "10.0.0.4": ("d", 0), "192.168.1.2": ("c", 1)}
    found = lengths(ends, addresses, hops)
    assert found["a"] == {"10.0.0.3": 2, "192.168.1.2": 3}  # not itself, and not whom it cannot reach
    assert found["host1"]["10.0.0.1"] == 3 and found["host1"]["10.0.0.3"] == 1


def test_every_protocol_of_a_scenario_has_its_file_and_every_file_its_options() -> None:
    assert routing.names() == sorted(PROTOCOLS)
    assert set(protocols()) | {"static", "none"} == set(PROTOCOLS)


def test_a_link_on_which_every_frame_is_lost_is_no_link_of_static_routes():
    def link(source, target, error_rate=0.0, *, in_range=True):
        return {"from": source, "to": target, "range": in_range, "error_rate": error_rate}

    links = [link("a", "b"), link("a", "c", 1), link("a", "d", 0.99), link("a", "e", in_range=False)]
    assert usable(links) == [("a", "b"), ("a", "d")]
