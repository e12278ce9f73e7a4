"""The link-feedback socket: failures, purges, overheard frames, and clients that misbehave."""

import json
import struct

from medium.examples import link_feedback_client as client
from routing.host.tests.harness import DEADLINE_S
from tests.medium.medium import RADIO, address, air_rows, configuration, needs_medium, pings_answered

pytestmark = needs_medium


def test_a_frame_out_of_range_returns_as_link_feedback(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations, spacing_m=1000.0))
    address(stations)
    stations[0].sh("ip", "neighbour", "add", "10.0.0.2", "lladdr", "02:00:00:00:00:02", "dev", "wlan0")
    connection = client.connect(str(tmp_path / "feedback" / "sta1.sock"), client.WANT_FAILURES)
    connection.settimeout(DEADLINE_S)
    assert pings_answered(stations[0], "10.0.0.2", 1) == 0
    failed = next(client.receive(connection))
    assert failed["type"] == "failed" and failed["neighbour"] == "02:00:00:00:00:02"
    assert failed["reason"] == "short retry limit"
    assert failed["frame"][:14].hex() == "020000000002" + "020000000001" + "0800"
    assert daemon.ask("drops")["drops"]["sta1"] == {"retry-short": 1}
    daemon.stop()
    assert {r["fate"] for r in air_rows(tmp_path) if r["event"] == "tx"} == {"weak"}


def test_queued_frames_for_a_neighbour_are_purged_and_returned(hosts, start, tmp_path):
    stations = hosts(2)
    start(configuration(stations, spacing_m=1000.0))
    address(stations)
    stations[0].sh("ip", "neighbour", "add", "10.0.0.2", "lladdr", "02:00:00:00:00:02", "dev", "wlan0")
    connection = client.connect(str(tmp_path / "feedback" / "sta1.sock"), 0)
    connection.settimeout(DEADLINE_S)
    # each frame is tried 7 times for some 20 ms in all: of 40 at once most still wait
    stations[0].sh("ping", "-n", "-c", "40", "-l", "40", "-W", "0.001", "10.0.0.2", check=False)
    client.purge(connection, "02:00:00:00:00:02", token=99)
    received = []
    for message in client.receive(connection):
        received.append(message)
        if message["type"] == "purge_done":
            break
    assert received[-1] == {"type": "purge_done", "token": 99, "count": len(received) - 1}
    assert len(received) > 2
    assert all(m["type"] == "purged" and m["token"] == 99 and m["frame"][12:14] == b"\x08\x00" for m in received[:-1])


def test_frames_for_others_are_overheard_on_request(hosts, start, tmp_path):
    stations, log = hosts(3), tmp_path / "inputs.jsonl"
    daemon = start(configuration(stations, spacing_m=100.0), "--input-log", str(log))
    address(stations)
    connection = client.connect(str(tmp_path / "feedback" / "sta3.sock"), client.WANT_OVERHEARD)
    connection.settimeout(DEADLINE_S)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    heard = next(m for m in client.receive(connection) if m["frame"][12:14] == b"\x08\x00")
    assert {heard["transmitter"], heard["receiver"]} == {"02:00:00:00:00:01", "02:00:00:00:00:02"}
    connection.close()
    assert pings_answered(stations[0], "10.0.0.2", 1) == 1
    assert daemon.stop() == (0, "")
    inputs = [json.loads(line)["input"]["Air"] for line in log.read_text().splitlines()]
    requests = [air["Overhear"] for air in inputs if "Overhear" in air]
    assert requests == [{"station": 2, "on": True}, {"station": 2, "on": False}]


def test_a_filter_selects_the_overheard_frames(hosts, start, tmp_path):
    stations = hosts(3)
    daemon = start(configuration(stations, spacing_m=100.0))
    address(stations)
    connection = client.connect(str(tmp_path / "feedback" / "sta3.sock"), client.WANT_OVERHEARD)
    connection.settimeout(DEADLINE_S)
    # the last two bytes of the IPv4 source, behind 14 bytes of Ethernet and 14 of IPv4
    from_sta2 = [(0x28, 0, 0, 28), (0x15, 0, 1, 0x0002), (0x06, 0, 0, 1), (0x06, 0, 0, 0)]
    client.select_overheard(connection, from_sta2)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    client.select_overheard(connection, [(0x99, 0, 0, 0)])  # refused: the earlier one stays
    received = []
    for message in client.receive(connection):
        received.append(message)
        if message["type"] == "error":
            break
    assert {m["transmitter"] for m in received[:-1]} == {"02:00:00:00:00:02"}
    assert len(received) >= 5
    assert daemon.stop() == (0, "")


def test_a_client_that_never_reads_does_not_stall_the_medium(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations, 10.0, radio=str(RADIO.with_name("dot11g-54m.toml"))))
    address(stations)
    connection = client.connect(str(tmp_path / "feedback" / "sta1.sock"), client.WANT_DELIVERED)
    connection.settimeout(DEADLINE_S)
    # more messages than the backlog (1024) and a socket (some 280) hold; -f: each as soon as the one before is answered
    stations[0].sh("ping", "-n", "-q", "-f", "-c", "2000", "-W", "2", "10.0.0.2")
    afterwards = daemon.ask("status")["model_ns"]
    assert pings_answered(stations[0], "10.0.0.2") == 5
    # the newest are kept: whoever reads at last comes to them, and not by way of all that was before
    received = 0
    while client.decode(connection.recv(client.MAX_LEN))["model_ns"] <= afterwards:
        received += 1
    assert 1024 - 5 <= received < 1900


def test_malformed_feedback_messages_are_answered_and_ignored(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    bad = [
        b"x",
        b"\x00" * 8,
        bytes([1, 1, 0, 0]) + struct.pack("<I", 4_000_000_000),
        client.message(client.SUBSCRIBE, b"\xff" * 4),
        client.message(client.PURGE, b"short"),
        client.message(client.FAILED, b"\x00" * 20),
        client.message(200, b""),
        b"\xff" * 60_000,
    ]
    with client.connect(str(tmp_path / "feedback" / "sta1.sock"), 0) as connection:
        connection.settimeout(DEADLINE_S)
        for packet in bad:
            connection.send(packet)
            answer = client.decode(connection.recv(client.MAX_LEN))
            assert answer["type"] == "error" and answer["text"], packet[:20]
    assert pings_answered(stations[0], "10.0.0.2") == 5
    assert daemon.stop()[0] == 0
