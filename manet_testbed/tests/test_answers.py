"""The output of programs as values: ping(8), iperf3, ip(8)."""

import json

import pytest

from manet_testbed import MeshError, Ping, Route, Throughput, Verdict

SOME_LOST = """PING 10.0.0.3 (10.0.0.3) 56(84) bytes of data.
64 bytes from 10.0.0.3: icmp_seq=1 ttl=254 time=6.96 ms

--- 10.0.0.3 ping statistics ---
4 packets transmitted, 1 received, 75% packet loss, time 603ms
rtt min/avg/max/mdev = 6.960/9.265/13.167/1.2 ms
"""
NONE_SENT = "connect: Network is unreachable\n"
ERRORS = "4 packets transmitted, 0 received, +4 errors, 100% packet loss, time 3ms\n"


def test_a_ping_counts_and_times() -> None:
    ping = Ping.parse(4, SOME_LOST, "", "sta1: ping")
    assert (ping.sent, ping.received, ping.loss) == (4, 1, 0.75)
    assert (ping.min_ms, ping.rtt_ms, ping.max_ms) == (6.96, 9.265, 13.167)


def test_a_ping_without_a_route_loses_all_and_is_no_error() -> None:
    assert Ping.parse(3, "", f"ping: {NONE_SENT}", "sta1: ping") == Ping(3, 0)
    assert Ping.parse(4, ERRORS, "", "sta1: ping").loss == 1


def test_any_other_failure_of_ping_is_an_error() -> None:
    with pytest.raises(MeshError, match=r'^sta1: ping nowhere: ping sent nothing: "ping: nowhere: Name or service not known"$'):
        Ping.parse(1, "", "ping: nowhere: Name or service not known\n", "sta1: ping nowhere")


def test_a_throughput_is_the_receiver_s() -> None:
    sent = {"seconds": 2.0, "bytes": 260_000, "bits_per_second": 1_040_000.0, "retransmits": 3}
    received = {"seconds": 2.0, "bytes": 250_000, "bits_per_second": 1_000_000.0}
    found = Throughput.parse(json.dumps({"end": {"sum_sent": sent, "sum_received": received}}), "sta1: iperf3 to sta2")
    assert (found.kbps, found.received_bytes, found.sent_bps, found.retransmits) == (1000, 250_000, 1_040_000, 3)


@pytest.mark.parametrize(("text", "words"), [("", "wrote no report"), ('{"error": "unable to connect"}', '"unable to connect"')])
def test_a_failed_measurement_names_its_ends(text: str, words: str) -> None:
    with pytest.raises(MeshError, match=f"^sta1: iperf3 to sta2: .*{words}$"):
        Throughput.parse(text, "sta1: iperf3 to sta2")


def test_a_route_is_read_from_the_json_of_ip() -> None:
    row = {"dst": "10.0.0.3", "gateway": "10.0.0.2", "dev": "wlan0", "protocol": "babel", "metric": 7, "flags": ["onlink"]}
    route = Route.parse(row)
    assert (route.destination, route.via, route.device, route.metric, route.protocol) == (
        "10.0.0.3",
        "10.0.0.2",
        "wlan0",
        7,
        "babel",
    )
    assert (route.kind, str(route), route.raw) == ("unicast", "10.0.0.3 via 10.0.0.2", row)
    refused = Route.parse({"type": "unreachable", "dst": "10.0.0.3", "protocol": "babel"})
    assert (refused.kind, refused.via, str(refused)) == ("unreachable", None, "unreachable 10.0.0.3")


def test_a_verdict_says_why() -> None:
    assert (str(Verdict("valid")), Verdict("valid").valid) == ("valid", True)
    assert (str(Verdict("void", ("late", "stalled"))), Verdict("void").valid) == ("void (late; stalled)", False)
