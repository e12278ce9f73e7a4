"""Stations on the medium: pings over the air and over wires, moves, power, and interfaces or processes that vanish."""

import json
import time

from medium.examples import link_feedback_client as client
from routing.host.tests.harness import DEADLINE_S, Namespace
from tests.medium.medium import address, air_rows, configuration, needs_medium, pings_answered, wire

pytestmark = needs_medium


def test_a_ping_crosses_the_air_and_is_in_every_output(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations))
    link = json.loads(stations[0].sh("ip", "-j", "link", "show", "wlan0"))[0]
    assert (link["mtu"], link["address"], "UP" in link["flags"]) == (1500, "02:00:00:00:00:01", True)
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    status = daemon.ask("status")
    assert status["ok"] and status["stations"] == 2 and status["lateness"]["count"] >= 10
    assert daemon.stop() == (0, "")

    counters = daemon.read("counters.json")["stations"]
    assert counters["sta1"]["tx_data"] >= 5 and counters["sta1"]["delivered_up"] >= 5
    rows = air_rows(tmp_path)
    ended = [r for r in rows if r["event"] == "tx" and r["frame"] == "data" and r["fate"] == "delivered"]
    assert len(ended) >= 10
    verdict = daemon.read("verdict.json")
    assert verdict["tap_read_drops"] == verdict["tap_write_drops"] == verdict["log_drops"] == 0
    assert verdict["lateness"]["count"] == sum(n for _, n in verdict["lateness"]["histogram_us"])
    assert stations[0].interfaces() == ["lo"]
    assert not (tmp_path / "medium.sock").exists() and not list((tmp_path / "feedback").iterdir())


def test_a_move_and_a_link_error_rate_break_the_link(hosts, start):
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    assert daemon.ask("move", station="sta2", position=[900, 0, 0])["ok"]
    assert daemon.ask("positions")["positions"]["sta2"] == [900.0, 0.0, 0.0]
    assert not any(link["range"] for link in daemon.ask("links")["links"])
    assert pings_answered(stations[0], "10.0.0.2", 1, "-W", "1") == 0
    assert daemon.ask("move", station="sta2", position=[100, 0, 0], speed_mps=100_000)["ok"]
    assert pings_answered(stations[0], "10.0.0.2") == 5
    assert daemon.ask("link", **{"from": "sta1", "to": "sta2"}, error_rate=1.0)["ok"]
    assert pings_answered(stations[0], "10.0.0.2", 1, "-W", "1") == 0
    assert len(daemon.ask("air", last=7)["rows"]) == 7


def carrier(host: Namespace, ifname: str) -> bool:
    return "LOWER_UP" in json.loads(host.sh("ip", "-j", "link", "show", ifname))[0]["flags"]


def test_a_station_without_power_is_silent_and_its_host_sees_no_carrier(hosts, start, tmp_path):
    radio, gateway, inet = hosts(3)
    daemon = start(configuration([radio, gateway], wires=[wire("sta2", gateway, "inet1", inet, delay_us=1_000)]))
    address([radio, gateway])
    address([gateway, inet], "eth0", "10.9.0")
    places = [(radio, "wlan0"), (gateway, "wlan0"), (gateway, "eth0"), (inet, "eth0")]
    assert [carrier(*place) for place in places] == [True] * 4
    assert pings_answered(radio, "10.0.0.2") == pings_answered(inet, "10.9.0.1") == 5

    assert daemon.ask("power", station="sta2", on=False) == {"ok": True}
    assert [carrier(*place) for place in places] == [True, False, False, False]
    assert not any(link["range"] or link["sensed"] for link in daemon.ask("links")["links"])
    sent_before = daemon.ask("counters")["stations"]["sta2"]["tx_ack"]
    connection = client.connect(str(tmp_path / "feedback" / "sta1.sock"), client.WANT_FAILURES)
    connection.settimeout(DEADLINE_S)
    assert pings_answered(radio, "10.0.0.2", 1, "-W", "1") == 0
    assert next(client.receive(connection))["type"] == "failed"
    assert pings_answered(inet, "10.9.0.1", 1, "-W", "0.3") == 0
    time.sleep(1.5)  # the kernel looks at carriers once a second
    assert pings_answered(gateway, "10.0.0.1", 3, "-W", "0.3") == 0
    counters = daemon.ask("counters")
    assert counters["stations"]["sta2"]["tx_ack"] == sent_before and counters["queues"] == {"sta1": 0, "sta2": 0}

    assert daemon.ask("power", station="sta2", on=True) == {"ok": True}
    assert [carrier(*place) for place in places] == [True] * 4
    time.sleep(1.5)  # once more
    assert pings_answered(radio, "10.0.0.2") == pings_answered(inet, "10.9.0.1") == 5
    assert daemon.ask("power", station="sta9", on=True) == {"ok": False, "error": "there is no station `sta9`"}
    # frames that the kernel dropped without a carrier are not lost at the TAPs
    assert not any("from-host" in drops for drops in daemon.ask("drops")["hosts"].values())
    assert daemon.stop() == (0, "")
    assert not any("lost at the TAPs" in reason for reason in daemon.read("verdict.json")["reasons"])


def test_wired_links_have_their_delay_and_rate(hosts, start):
    radio, left, right = hosts(3)
    daemon = start(configuration([radio], wires=[wire("gw1", left, "inet1", right, delay_us=20_000)]))
    address([left, right], "eth0", "10.9.0")
    pings_answered(left, "10.9.0.2", 1)  # ARP
    out = left.sh("ping", "-n", "-c", "5", "-i", "0.1", "-s", "1172", "10.9.0.2")
    shortest_ms = float(out.rsplit("= ", 1)[1].split("/")[0])
    # 1172 + 8 ICMP + 20 IP + 14 Ethernet = 1214 bytes = 9.712 ms at 1 Mbit/s, and 20 ms, both ways
    assert 59.4 <= shortest_ms < 75
    wires = daemon.ask("counters")["wires"]
    assert [(w["from"], w["to"]) for w in wires] == [("gw1", "inet1"), ("inet1", "gw1")]
    assert all(w["delivered"] >= 6 and w["queue_full"] == 0 for w in wires)


def test_a_packet_longer_than_802_11_can_send_is_refused_and_a_reason_of_the_verdict(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    for station in stations:
        station.sh("ip", "link", "set", "wlan0", "mtu", "5000")
    assert pings_answered(stations[0], "10.0.0.2", 2, "-s", "2268") == 2  # 2268 + 8 ICMP + 20 IP = 2296
    assert pings_answered(stations[0], "10.0.0.2", 3, "-s", "2269", "-W", "0.3") == 0
    assert daemon.ask("drops")["drops"] == {"sta1": {"too-long": 3}, "sta2": {}}
    assert daemon.stop() == (0, "")
    assert daemon.read("counters.json")["stations"]["sta1"]["too_long"] == 3
    rows = air_rows(tmp_path)
    assert [(r["bytes"], r["fate"]) for r in rows if r["event"] == "drop"] == [("2297", "too-long")] * 3
    assert max(int(r["bytes"]) for r in rows if r["event"] == "tx") == 2296 + 34  # ns-2's overhead
    verdict = daemon.read("verdict.json")
    assert (verdict["verdict"] != "valid", verdict["too_long"]) == (True, 3)
    assert any("3 frames were longer than 802.11 can send" in reason for reason in verdict["reasons"])


def test_a_station_whose_process_dies_does_not_end_the_run(hosts, start):
    stations = hosts(3)
    daemon = start(configuration(stations, spacing_m=100.0))
    address(stations)
    stations[2].stop()
    assert pings_answered(stations[0], "10.0.0.2") == 5
    assert daemon.stop()[0] == 0


def test_a_deleted_interface_is_reported_and_costs_no_processor_time(hosts, start):
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    stations[1].sh("ip", "link", "delete", "wlan0")
    assert pings_answered(stations[0], "10.0.0.2", 1, "-W", "1") == 0
    code, errors = daemon.stop()
    assert code == 1 and errors.count("\n") == 1 and "the interface of sta2 was deleted" in errors
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] == "void" and verdict["cpu_s"] < 0.5
