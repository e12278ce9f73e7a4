"""The medium's outputs: a capture that tshark reads, an input log that replays the run, and a disk that is full."""

import shutil
import subprocess
import time

import pytest

from tests.medium.medium import MEDIUM, address, air_rows, configuration, needs_medium, pings_answered

pytestmark = needs_medium


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (./setup.sh)")
def test_tshark_finds_no_error_in_the_capture(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2", 3, "-s", "1000") == 3
    daemon.stop()

    def fields(show: str, *names: str) -> list[str]:
        command = ["tshark", "-r", str(tmp_path / "air.pcapng"), "-o", "wlan.check_checksum:TRUE", "-Y", show, "-T", "fields"]
        command += [part for name in names for part in ("-e", name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.splitlines()

    assert fields("_ws.malformed", "frame.number") == []
    tx = [r for r in air_rows(tmp_path) if r["event"] == "tx"]
    assert len(fields("wlan", "frame.number")) == len(tx)
    # control frames 802.11 table 9-1: RTS 0x1b, CTS 0x1c, ACK 0x1d
    for kind, subtype in [("rts", 0x1B), ("cts", 0x1C), ("ack", 0x1D)]:
        seen = fields(f"wlan.fc.type_subtype == {subtype}", "wlan.duration")
        assert len(seen) == sum(r["frame"] == kind for r in tx), kind
    pings = fields("icmp.type == 8", "wlan.ta", "ip.dst", "ip.len", "radiotap.datarate", "frame.time_epoch")
    assert len(pings) >= 3
    # an FCS is right, and every control frame has one; ns-2's data frames have no room for it
    assert fields("wlan.fcs.status", "wlan.fcs.status") == ["1"] * sum(r["frame"] in ("rts", "cts", "ack") for r in tx)
    transmitter, destination, length, rate, epoch = pings[0].split("\t")
    assert (transmitter, destination, length, float(rate)) == ("02:00:00:00:00:01", "10.0.0.2", "1028", 2.0)
    assert abs(float(epoch) - time.time()) < 60


def test_a_replay_in_virtual_time_equals_the_run_byte_for_byte(hosts, start, tmp_path):
    stations = hosts(3)
    log, again = tmp_path / "inputs.jsonl", tmp_path / "again.csv"
    daemon = start(configuration(stations, spacing_m=150.0), "--input-log", str(log), "--inject-lateness", "3000")
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2", 20, "-s", "1400") == 20
    daemon.ask("move", station="sta3", position=[320, 0, 0])
    pings_answered(stations[0], "10.0.0.3", 2, "-W", "0.3")
    daemon.ask("power", station="sta2", on=False)
    pings_answered(stations[0], "10.0.0.2", 1, "-W", "0.3")
    daemon.ask("power", station="sta2", on=True)
    assert pings_answered(stations[0], "10.0.0.2", 3) == 3
    assert daemon.stop() == (0, "")
    subprocess.run([str(MEDIUM), "replay", str(tmp_path / "medium.json"), str(log), str(again)], check=True, timeout=60)
    assert again.read_bytes() == (tmp_path / "air.csv").read_bytes()
    assert len(air_rows(tmp_path)) > 200


def test_a_full_disk_is_one_line_and_a_reason_of_the_verdict(hosts, start):
    stations = hosts(2)
    config = configuration(stations)
    config["outputs"]["air_log"] = "/dev/full"
    daemon = start(config)
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    code, errors = daemon.stop()
    assert code == 1 and errors.count("\n") == 1
    assert errors.startswith("manet-medium: /dev/full: No space left on device")
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] == "void" and any("/dev/full" in reason for reason in verdict["reasons"])
