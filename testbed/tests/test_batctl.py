"""The output of batctl in the form of our own daemons' status, on made-up answers as batctl 2023.0 gives them."""

import pytest

from testbed.runs import flow_paths
from testbed.stages import batctl, iproute, status
from testbed.stages.routing.batman_adv import mac_address as mac_of_bat0
from topologies.addresses import mac_address, wire_mac

ORIGINATORS = [
    {"orig_address": mac_address(4), "best": True, "last_seen_msecs": 172, "neigh_address": mac_address(2), "tq": 210},
    {"orig_address": mac_address(4), "last_seen_msecs": 1230, "neigh_address": mac_address(3), "tq": 180},
    {"orig_address": mac_address(300), "best": True, "last_seen_msecs": 40, "neigh_address": mac_address(300), "tq": 255},
    {"orig_address": mac_address(2), "best": True, "last_seen_msecs": 40, "neigh_address": mac_address(2), "throughput": 9000},
]
STATISTICS = "\ttx: 12\n\ttx_bytes: 18000\n\trx: 0\n\tforward: 7\n\ttt_request_tx: 3\n\tmgmt_tx: 44\n"


def test_routes_are_by_address_the_best_first_and_without_hops():
    found = batctl.routes_of(ORIGINATORS)
    assert [(route["destination"], route["via"], route["state"]) for route in found] == [
        ("10.0.0.2", "10.0.0.2", "best"),
        ("10.0.0.4", "10.0.0.2", "best"),
        ("10.0.0.4", "10.0.0.3", "other"),
        ("10.0.1.44", "10.0.1.44", "best"),
    ]
    assert all(route["hops"] is None for route in found)
    assert (found[0]["throughput_kbps"], found[1]["quality"], found[1]["seen_s"]) == (9000, 210, 0.172)


def test_a_radio_that_is_no_stations_keeps_its_mac():
    stranger = {"orig_address": "52:54:00:12:34:56", "neigh_address": mac_address(2), "tq": 9}
    assert batctl.routes_of([*ORIGINATORS, stranger])[-1]["destination"] == "52:54:00:12:34:56"


def test_counters_are_those_of_packets():
    assert batctl.counters_of(STATISTICS) == {"tx": 12, "rx": 0, "forward": 7, "mgmt-tx": 44}


def test_no_radio_and_no_wire_has_the_address_of_a_bat0():
    assert mac_of_bat0(300) == "02:00:00:02:01:2c"
    assert mac_of_bat0(1) not in (mac_address(1), wire_mac(1, 1))


def test_each_route_and_each_neighbour_is_one_line():
    known = {
        "protocol": "batman-adv", "address": "10.0.0.1", "routes": batctl.routes_of(ORIGINATORS),
        "neighbours": batctl.neighbours_of([{"neigh_address": mac_address(2), "last_seen_msecs": 1500}]),
        "counters": batctl.counters_of(STATISTICS),
    }  # fmt: skip
    printed = "\n".join(" ".join(line.split()) for line in status.lines("sta1", known))
    assert printed.startswith("sta1: batman-adv, 10.0.0.1\n")
    assert "10.0.0.4 via 10.0.0.2 quality 210/255 best heard 0.2 s ago" in printed
    assert "10.0.0.2 via 10.0.0.2 9000 kbit/s best heard 0.0 s ago" in printed
    assert "10.0.0.2 neighbour heard heard 1.5 s ago" in printed
    assert "counters: forward 7, mgmt-tx 44, tx 12" in printed


@pytest.mark.parametrize(
    ("best", "found"),
    [("10.0.0.2", flow_paths.NextHop("10.0.0.2", "wlan")), (None, flow_paths.NextHop(problem="no route"))],
    ids=["known", "not yet"],
)
def test_the_map_follows_a_packet_below_bat0(monkeypatch, best, found):
    monkeypatch.setattr(iproute, "ask_within", lambda *_: '[{"dst":"10.0.0.4","dev":"bat0"}]')
    monkeypatch.setattr(batctl, "next_radio", lambda _netns, address: best if address == "10.0.0.4" else None)
    assert flow_paths.RouteTables({"sta1": "/ns"}, {}).next_hop("sta1", "10.0.0.4") == found
