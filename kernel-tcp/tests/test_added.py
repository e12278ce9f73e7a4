"""Ports that tcp-settings.json gains while `manet-tcp run` works are taken at SIGHUP, and nothing else is."""

from __future__ import annotations

import json
import signal

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
