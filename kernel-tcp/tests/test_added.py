"""Ports that tcp-settings.json gains while `manet-tcp run` works are taken at SIGHUP, and nothing else is."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest
from tcplab import read_line

pytestmark = pytest.mark.root

ELFN = {"probe_us": 2000000, "repair": "unchanged", "packet": "first", "leave": "any-ack", "restore": "at-notice"}


def add_port(lab, process, port: int, settings: dict) -> str:
    """The answer to SIGHUP after both stations have gained a port."""
    path = lab.folder / "tcp-settings.json"
    content = json.loads(path.read_text())
    for station in content["stations"]:
        station.setdefault("ports", {})[str(port)] = settings
    path.write_text(json.dumps(content))
    process.send_signal(signal.SIGHUP)
    return read_line(process.stdout)


def reread(lab, process, ports: dict[str, dict[str, dict]]) -> str:
    """The answer to SIGHUP after the stations have these ports."""
    path = lab.folder / "tcp-settings.json"
    content = json.loads(path.read_text())
    for station in content["stations"]:
        station["ports"] = ports[station["name"]]
    path.write_text(json.dumps(content))
    process.send_signal(signal.SIGHUP)
    return read_line(process.stdout)


def connect(lab, port: int) -> None:
    """An idle connection from `a` to `b` that stays open."""
    server, client = lab.serve(port, read=False), lab.send(1000, port, then="time.sleep(600)")
    for process, line in ((client, "connected"), (client, "sent"), (server, "accepted")):
        lab.ready_line(process, line)


def test_a_port_that_the_file_gained_has_its_settings_from_then_on(lab):
    with lab.manet_tcp(both={"algorithm": "newreno"}) as process:
        assert add_port(lab, process, 5201, {"algorithm": "vegas"}) == "taken"
        assert add_port(lab, process, 5203, {"algorithm": "newreno", "window_segments": 6}) == "taken"
        connect(lab, 5201)
        connect(lab, 5202)
        connect(lab, 5203)
        words = {row["peer"].rpartition(":")[2]: row["words"] for row in lab.a.sockets()}
        limits = {row["peer"].rpartition(":")[2]: row.get("ssthresh") for row in lab.a.sockets()}
    assert " vegas." in words["5201"] and " reno " in words["5202"]
    assert (limits["5202"], limits["5203"]) == (None, "6")


def test_layers_and_unknown_algorithms_are_refused_and_the_run_goes_on(lab):
    with lab.manet_tcp(both={"algorithm": "newreno"}) as process:
        layer = {"name": "elfn", "parameters": ELFN}
        assert add_port(lab, process, 5201, {"algorithm": "newreno", "layers": [layer]}) == "refused"
        assert "layers are taken at the start only" in read_line(process.stderr)
        assert add_port(lab, process, 5201, {"algorithm": "nosuch"}) == "refused"
        connect(lab, 5201)
        assert " reno " in lab.a.sockets()[0]["words"]


def test_a_port_that_left_the_file_may_get_other_settings(lab):
    vegas, small = {"algorithm": "vegas"}, {"algorithm": "newreno", "window_segments": 6}
    with lab.manet_tcp(both={"algorithm": "newreno"}) as process:
        for taken in ({"5201": vegas, "5202": vegas, "5203": vegas}, {"5203": vegas}, {"5202": small, "5203": vegas}):
            assert reread(lab, process, {"a": taken, "b": taken}) == "taken"
        for port in (5201, 5202, 5203):
            connect(lab, port)
        rows = {row["peer"].rpartition(":")[2]: row for row in lab.a.sockets()}
    assert [" vegas." in rows[port]["words"] for port in ("5201", "5202", "5203")] == [False, False, True]
    assert (rows["5201"].get("ssthresh"), rows["5202"].get("ssthresh")) == (None, "6")


def test_ports_are_taken_at_all_stations_or_at_none(lab):
    """The map is full at the second of them."""
    vegas = {"5201": {"algorithm": "vegas"}}
    with lab.manet_tcp(both={"algorithm": "newreno"}) as process:
        fill_map(lab, room=1)
        assert reread(lab, process, {"a": vegas, "b": vegas}) == "refused"
        assert "station b: port 5201: cannot be registered" in read_line(process.stderr)
        connect(lab, 5201)
        assert " reno " in lab.a.sockets()[0]["words"]
        assert reread(lab, process, {"a": vegas, "b": {}}) == "taken"


def fill_map(lab, room: int) -> None:
    """Leave so much room in the youngest map of settings, with entries of stations that do not exist."""
    maps = json.loads(subprocess.run(["bpftool", "-j", "map", "show"], capture_output=True, text=True, check=True).stdout)
    found = max((one for one in maps if one.get("name") == "stations"), key=lambda one: one["id"])
    value = " ".join(["0"] * found["bytes_value"])
    keys = (number.to_bytes(16, "little") for number in range(found["max_entries"] - 2 - room))
    lines = (f"map update id {found['id']} key {' '.join(map(str, key))} value {value}" for key in keys)
    batch = lab.folder / "batch"
    batch.write_text("\n".join(lines) + "\n")
    subprocess.run(["bpftool", "batch", "file", batch], check=True, stdout=subprocess.DEVNULL)
