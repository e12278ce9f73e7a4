"""The golden examples of formats/examples, as Python reads and writes them; medium/tests/formats.rs does the same in Rust.

`UPDATE=1` rewrites what Python writes (medium.json, trace-static.csv), to be reviewed as a diff.
"""

import json
import os
import shutil
import socket
import struct
import threading
from pathlib import Path

import pytest

from analysis.captures.air import read_air
from analysis.captures.rundir import RunDirectory
from analysis.metrics.checks import air_counters
from medium.examples import link_feedback_client as client
from scenarios.definition import load_scenario
from scenarios.profiles import RADIOS
from testbed.errors import RunError
from testbed.host.run_queue import WaitTime
from testbed.runs.station_changes import ChangeSummary
from testbed.runs.stopped import StopSummary
from testbed.runs.verdict import CaptureDrops, TrafficStart, add_judgements, reasons_of, verdict_of
from testbed.runs.waits import WaitSummary
from testbed.stages.control import MediumControl
from testbed.stages.medium import medium_config, write_trace
from testbed.stages.site import Site

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "formats" / "examples"
DEADLINE_S = 10


def check(name, written):
    if "UPDATE" in os.environ:
        (EXAMPLES / name).write_text(written)
    assert written == (EXAMPLES / name).read_text(), f"{name} changed; if that is meant: UPDATE=1, and review the diff"


def test_the_golden_scenario_gives_the_golden_configuration_and_trace(tmp_path):
    site = Site(load_scenario(EXAMPLES / "scenario.toml"), 1, tmp_path, cgroup=Path("/"))
    write_trace(site)
    check("trace-static.csv", (tmp_path / "trace.csv").read_text())
    netns = {place.name: f"/proc/{4711 + i}/ns/net" for i, place in enumerate(site.scenario.positions())}
    config = medium_config(site, netns)
    # only paths of this machine are made relative
    config["radio"] = config["radio"].replace(str(RADIOS), "../../medium/radios")
    config |= {"trace": "trace-static.csv", "control_socket": "medium.sock", "feedback_dir": "feedback"}
    check("medium.json", json.dumps(config, indent=1) + "\n")


def test_the_golden_air_log_is_read_and_agrees_with_the_golden_counters():
    air = read_air(EXAMPLES / "air.csv")
    counters = json.loads((EXAMPLES / "counters.json").read_text())
    assert counters["format"] == "manet-counters/1"
    assert [result.detail for result in air_counters(air, counters["stations"]) if not result.ok] == []
    # the example is worth something only if it has nearly everything in it
    assert set(air["event"]) == {"tx", "enqueue", "deliver", "drop"}
    assert set(air["frame"]) == {"rts", "cts", "data", "ack", "bcast"}
    sent = air.filter(air["event"] == "tx")
    assert {"delivered", "error", "weak"} <= set(sent["fate"])
    assert {"collision", "hidden", "busy", "nav"} & set(sent["fate"])
    assert {"queue-full", "retry-short"} <= set(air.filter(air["event"] == "drop")["fate"])


def test_the_golden_lateness_is_read(tmp_path):
    shutil.copy(EXAMPLES / "lateness.csv", tmp_path)
    assert [(row["p99_us"], row["stalled_ms"], row["verdict"]) for row in RunDirectory(tmp_path).lateness] == [
        ("100", "0", "valid"), ("0", "700", "void"),
    ]  # fmt: skip


def test_the_golden_verdict_is_read(tmp_path):
    shutil.copy(EXAMPLES / "verdict.json", tmp_path)
    assert verdict_of(tmp_path) == "void"  # one release of five is late
    assert any("2 frames were lost at the TAPs" in reason for reason in reasons_of(tmp_path))


def test_a_runs_verdict_is_the_mediums_with_the_programs_waits(tmp_path):
    shutil.copy(EXAMPLES / "verdict.json", tmp_path)
    seen = WaitSummary()
    for waited_ms, turns in [(210, 700)] * 18 + [(900, 60)] * 2:
        seen.add(WaitTime(waited_ms * 1_000_000, turns), 1.0)
    drops = CaptureDrops({"sta1": 3})
    stopped, changed = StopSummary({"flow1-sender (iperf3)": 4.0}), ChangeSummary({"sta2": ["wlan0: set down", "wlan0: set up"]})
    judged = {"programs": seen, "traffic_start": TrafficStart(0.2136), "stopped": stopped, "changed": changed}
    add_judgements(tmp_path, **judged, capture_drops=drops)
    check("verdict-run.json", (tmp_path / "verdict.json").read_text())


def feedback_messages():
    messages = []
    for line in (EXAMPLES / "feedback.txt").read_text().splitlines():
        if not line.startswith("#"):
            at = line.index("{")
            messages.append((bytes.fromhex(line[:at]), json.loads(line[at:])))
    return messages


@pytest.mark.parametrize(("packet", "says"), feedback_messages())
def test_the_example_client_speaks_the_golden_messages(packet, says):
    if says["type"] == "subscribe":
        assert client.message(client.SUBSCRIBE, struct.pack("<I", says["flags"])) == packet
    elif says["type"] == "purge":
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with near, far:
            client.purge(near, says["neighbour"], says["token"])
            assert far.recv(client.MAX_LEN) == packet
    elif says["type"] == "filter":
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with near, far:
            client.select_overheard(near, says["program"])
            assert far.recv(client.MAX_LEN) == packet
    else:
        decoded = client.decode(packet)
        assert {key: value.hex() if isinstance(value, bytes) else value for key, value in decoded.items()} == says


def test_the_control_connection_speaks_the_golden_exchanges(tmp_path):
    exchanges = [json.loads(line) for line in (EXAMPLES / "control.jsonl").read_text().splitlines()]
    received = []

    def serve(listener):
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as stream:
            for exchange in exchanges:
                received.append(json.loads(stream.readline()))
                stream.write(json.dumps(exchange["answer"]).encode() + b"\n")
                stream.flush()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(DEADLINE_S)
        listener.bind(str(tmp_path / "medium.sock"))
        listener.listen()
        server = threading.Thread(target=serve, args=[listener])
        server.start()
        control = MediumControl(tmp_path / "medium.sock")
        for exchange in exchanges:
            if exchange["answer"]["ok"]:
                assert control.ask(**exchange["request"]) == exchange["answer"]
            else:
                with pytest.raises(RunError, match="unknown variant"):
                    control.ask(**exchange["request"])
        control.close()
        server.join(DEADLINE_S)
    assert received == [exchange["request"] for exchange in exchanges]
