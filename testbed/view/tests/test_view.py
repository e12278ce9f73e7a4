"""The view of a real run: what it answers is what the run's files, `manet story` and `manet map` say; and what it refuses."""

import asyncio
import csv
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import mean
from types import SimpleNamespace

import polars as pl
import pytest

from analysis.captures.rundir import RunDirectory
from analysis.maps.past_snapshot import of_run
from analysis.metrics.throughput import sender_view
from analysis.story.story import flow_named, of_segment, read_story
from analysis.story.story_text import table_lines
from testbed.errors import UsageError
from testbed.programs import ROOT
from testbed.tests.running import Background, chain, needs_runs
from testbed.view import recorded
from testbed.view.actions import Actions
from testbed.view.app import View
from testbed.view.live import LiveRun, Received
from testbed.view.recorded import RecordedRun
from testbed.view.site import site_of
from testbed.view.tests.serving import Served, view
from testbed.web.guard import Address, Rules

pytestmark = [pytest.mark.root, needs_runs]

RUN = {
    "hops": 3, "window": 4, "duration": 4, "tcp": "newreno", "routing": "aodv",
    "events": [{"at": 2, "power": "sta3", "on": False}, {"at": 3, "power": "sta3", "on": True}],
}  # fmt: skip


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory) -> Path:
    """One run, whatever its verdict: the answers are about its files."""
    directory = tmp_path_factory.mktemp("view") / "run"
    assert Background(chain(**RUN), directory).result().status == "complete"
    return directory


@pytest.fixture(scope="module")
def served(run_dir):
    with view(run_dir) as running:
        yield running


def test_counts_by_fate_are_those_of_the_air_log(served: Served, run_dir):
    with (run_dir / "air.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    counts = served.ask("/api/counts")
    for kind, event in (("sent", "tx"), ("drops", "drop")):
        wanted = Counter((row["station"], row["fate"]) for row in rows if row["event"] == event)
        found = {(station, fate): count for station, table in counts[kind].items() for fate, count in table.items()}
        assert found == wanted
    end = served.ask("/api/run")["end_ns"]
    bins = served.ask(f"/api/overview?from=0&to={int(end) + 1}&bins=50")
    assert sum(bins["fates"]["delivered"]) == sum(row["fate"] == "delivered" for row in rows if row["event"] == "tx")


def test_queues_and_lateness_are_those_of_the_files(served: Served, run_dir):
    run = RunDirectory(run_dir)
    end_ns = int(served.ask("/api/run")["end_ns"])
    for at_ns in range(0, end_ns, end_ns // 20):
        queues = served.ask(f"/api/queues?t={at_ns}")["queues"]
        for name in ("sta1", "sta2", "sta3", "sta4"):
            assert queues.get(name, {"packets": 0})["packets"] == len(served.ask(f"/api/station/{name}?t={at_ns}")["queue"])
    lateness = served.ask("/api/lateness")
    assert lateness["p99_us"] == [float(row["p99_us"]) for row in run.lateness] and len(lateness["t"]) >= 4
    assert max(lateness["max_us"]) == pytest.approx(run.verdict["lateness"]["max_us"], rel=0.125)
    assert served.ask("/api/run")["slot_us"] == 20


def test_routes_are_those_of_the_map(served: Served, run_dir):
    run = RunDirectory(run_dir)
    for at_s in (0.5, 1.5, 2.5, 3.9):
        at_ns = run.begun_ns - run.epoch_ns + round(at_s * 1e9)
        found = served.ask(f"/api/routes?t={at_ns}")["paths"]
        wanted = of_run(run, at_s).paths
        assert [(path["nodes"], path["stop"]) for path in found] == [(list(path.nodes), path.stop) for path in wanted]


def test_the_story_is_that_of_manet_story(served: Served, run_dir):
    run = RunDirectory(run_dir)
    story = read_story(run, flow_named(run, 1))
    found = served.ask("/api/story?flow=flow1&segment=3")
    assert found["lines"] == table_lines(story, of_segment(story, 3)) and len(found["lines"]) > 5


def test_a_frame_has_its_packet_of_the_capture_and_its_segment(served: Served, run_dir):
    with (run_dir / "air.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    sent = [place for place, row in enumerate(rows) if row["event"] == "tx"]
    place = next(place for place in sent if rows[place]["frame"] == "data" and int(rows[place]["bytes"]) > 1000)
    found = served.ask(f"/api/frame/{place}")
    assert found["pcap"]["packet"] == sent.index(place) + 1
    assert any("Internet Protocol" in line for line in found["pcap"]["fields"])
    assert served.ask(f"/api/packet/{rows[place]['packet']}")["segment"]["flow"] == "flow1"


def test_the_throughput_of_datagrams_is_what_the_receivers_capture_has(tmp_path):
    directory = tmp_path / "run"
    flow = {"from": "sta1", "to": "sta3", "traffic": "cbr", "rate": 200_000, "bytes": 500}
    running = Background(chain(hops=2, duration=4, routing="static", flows=[flow]), directory, deadline_s=120).at("traffic")
    received, live = Received(RunDirectory(directory)), []
    for _ in range(10):
        live.append(received.totals()["flow1"])
        time.sleep(0.2)
    assert running.result().status == "complete"
    packets = RunDirectory(directory).capture("sta3").filter(pl.col("destination_port") == 5201)
    sizes = (packets["payload_bytes"] + 28).sum()
    assert live == sorted(live) and 0 < live[-1] <= sizes and live[-1] % 500 == 0
    run = RecordedRun(directory)
    begin, end = run.traffic_ns or 0, run.end_ns
    whole = run.series("flow1", begin, end, 10)["throughput"]["v"]
    assert mean(whole) == pytest.approx(8e9 * sizes / (end - begin)) and max(whole) == pytest.approx(200_000, rel=0.1)
    (directory / "captures" / "sta3.pcap").unlink()
    assert "sta3.pcap" in RecordedRun(directory).series("flow1", begin, end, 10)["error"]


def test_throughput_is_that_of_the_flow_however_short_the_window(served: Served, run_dir):
    about = served.ask("/api/run")
    begin, end = int(about["traffic_ns"]), int(about["end_ns"])
    whole = served.ask(f"/api/series?flow=flow1&from={begin}&to={end}&points=10")["throughput"]["v"]
    run = RunDirectory(run_dir)
    story = read_story(run, flow_named(run, 1))
    packets = run.capture_of(story.flow, "sta1")
    acked = sender_view(packets, story.connection, story.connection.initial_sequence(packets) or 0).acked.total
    assert mean(whole) == pytest.approx(8e9 * acked / (end - begin))
    for at in range(begin, end, (end - begin) // 20):
        rates = served.ask(f"/api/series?flow=flow1&from={at}&to={at + 10_000_000}&points=100")["throughput"]["v"]
        assert all(0 <= rate < 2e6 for rate in rates), "no more than the radio's 2 Mbit/s"


def test_the_window_is_that_of_the_socket_at_timeouts_too(served: Served, run_dir):
    """No segment comes from the path while its relay is off, so there are no samples."""
    about = served.ask("/api/run")
    cwnd = served.ask(f"/api/series?flow=flow1&from={about['traffic_ns']}&to={about['end_ns']}&points=1000")["cwnd"]
    with (run_dir / "tcp.csv").open(newline="") as file:
        of_flow = [row for row in csv.DictReader(file) if row["dport"] == "5201" and row["station"] == "sta1"]
    epoch_ns = RunDirectory(run_dir).epoch_ns
    checked = 0
    for row, after in pairwise(of_flow):
        if row["event"] == "timeout" and row["snd_cwnd"] != after["snd_cwnd"]:
            at_s = (int(row["t_ns"]) + int(after["t_ns"])) / 2e9 - epoch_ns / 1e9
            drawn = [value for t, value in zip(cwnd["t"], cwnd["v"], strict=True) if t <= at_s][-1]
            assert drawn == int(after["snd_cwnd"]), "a row has the state before its event"
            checked += 1
    assert checked, "the relay is off for a second"


def test_a_queue_is_what_was_enqueued_and_not_yet_sent(served: Served, run_dir):
    with (run_dir / "air.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    packet = next(row for row in rows if row["event"] == "enqueue" and row["station"] == "sta1" and int(row["bytes"]) > 1000)
    own = [row for row in rows if row["packet"] == packet["packet"]]
    last = max(int(row["t_ns"]) + int(row["airtime_ns"] or 0) for row in own)
    for at_ns, waits in ((int(packet["t_ns"]) + 1, True), (last - 1, True), (last + 1, False)):
        queue = served.ask(f"/api/station/sta1?t={at_ns}")["queue"]
        assert (int(packet["packet"]) in [entry["packet"] for entry in queue]) is waits


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/nothing", 404), ("/etc/passwd", 404), ("/static/../app.py", 404), ("/static/%2e%2e/%2e%2e/site.py", 404),
        ("/static//etc/passwd", 404), ("/static/a%00b.js", 404), ("/static/" + "a" * 300 + ".js", 404),
        ("/static/vendor", 404), ("/static/vendor/../../app.py", 404), ("/api/frame/999999999", 400),
        ("/api/frames?from=x&to=2", 400),
        ("/api/frames?from=5&to=5", 400),
        ("/api/station/nobody?t=1", 400), ("/api/story?flow=flow9&segment=1", 400), ("/api/story?flow=flow1&t=nan", 400),
        ("/api/overview?from=9999999999999999990&to=9999999999999999999", 400), ("/api/queues?t=-9223372036854775809", 400),
        ("/api/drops?from=0&to=1&limit=99999999999999999999", 400),
        ("/api/nav?from=9223372036854775807&to=9223372036854775808", 400),
        ("/api/packet/" + "9" * 5000, 400), ("/api/frame/" + "9" * 5000, 400), ("/api/packet/4294967296", 400),
        ("/api/frame/-1", 400),
        ("/api/story?flow=flow1&segment=" + "9" * 19, 400), ("/api/story?flow=flow1&t=1e300", 400),
        ("/api/frames?to=1" + "0" * 5000, 400), ("/api/queues?t=%D9%A3", 400),
        ("/api/run?run=../../etc", 400), ("/api/packet/0", 400), ("/api/series?flow=flow1&from=0", 400),
    ],
)  # fmt: skip
def test_a_wrong_address_is_one_line(served: Served, path, status):
    found, body = served.answer(path)
    line = json.loads(body)["error"]
    assert found == status and line and "\n" not in line and "Traceback" not in line


def test_a_view_imports_no_editor():
    program = "import sys, testbed.view.site; print({'tomlkit', 'testbed.view.editor'} & set(sys.modules))"
    argv = [sys.executable, "-P", "-c", program]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.stdout == "set()\n"


def test_a_view_is_read_only_unless_it_is_told_otherwise(served: Served, run_dir):
    connection = http.client.HTTPConnection(served.base.removeprefix("http://"))
    connection.request("POST", "/api/control", b"{}", {"Authorization": f"Bearer {served.token}"})
    assert connection.getresponse().status == 405
    with pytest.raises(UsageError, match="for a run under way"):
        site_of(str(run_dir), control=True)
    with pytest.raises(UsageError, match="no such folder"):
        site_of(str(run_dir / "none"))


def test_a_thousand_connections_leave_the_server_answering(served: Served):
    host, port = served.base.removeprefix("http://").split(":")
    idle = []
    try:
        for _ in range(1000):
            one = socket.socket()
            one.settimeout(5)
            one.connect((host, int(port)))
            idle.append(one)
        refused = idle[-1]
        refused.sendall(b"GET /api/run HTTP/1.1\r\nHost: " + f"{host}:{port}".encode() + b"\r\n\r\n")
        assert refused.recv(100).startswith(b"HTTP/1.1 503")
    finally:
        for one in idle:
            one.close()
    for _ in range(50):
        if served.answer("/api/run")[0] == 200:
            break
    assert served.ask("/api/run")["kind"] == "recorded"


def test_the_page_of_a_forwarded_port_is_answered_and_that_of_another_name_is_not(served: Served):
    """A laptop's `localhost:8080` that leads to this port, as `ssh -L`, Vagrant and containers forward it."""
    for host in ("localhost:8080", "127.0.0.1:1"):
        assert served.answer("/api/run", Host=host, Origin=f"http://{host}")[0] == 200
    status, body = served.answer("/api/run", Host="rebound.example:8080", Origin="http://rebound.example:8080")
    assert status == 421 and b"--public-url" in body


def test_a_huge_head_is_refused(served: Served):
    try:
        status = served.answer("/api/run", Cookie="x" * 300_000)[0]
    except OSError:  # it closes the connection before the head has ended
        status = 431
    assert status in (400, 431)
    assert served.ask("/api/run")["kind"] == "recorded"


def test_a_folder_of_runs_lists_them_and_opens_each(run_dir):
    with view(run_dir.parent) as one:
        assert one.ask("/api/run")["kind"] == "recorded", "a folder with one run is that run"


@pytest.mark.parametrize(
    ("slow", "ask"), [("read_nav", lambda run: run.nav(0, 10**9)), ("read_story", lambda run: run.story_of("flow1"))]
)
def test_a_long_first_answer_delays_no_other(run_dir, monkeypatch, slow, ask):
    run, begun, goes_on = RecordedRun(run_dir), threading.Event(), threading.Event()
    usual = getattr(recorded, slow)

    def held(*given):
        begun.set()
        assert goes_on.wait(60)
        return usual(*given)

    monkeypatch.setattr(recorded, slow, held)
    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(ask, run)
        try:
            assert begun.wait(60)
            others = [(run.window, 0, 10**9, 10), (run.counts,), (run.queues, 10**9), (run.station, "sta1", 10**9)]
            for question, *words in others:
                assert pool.submit(question, *words).result(20)
        finally:
            goes_on.set()
        assert long.result(60)


def test_many_runs_are_asked_about_at_once(run_dir, tmp_path):
    for number in range(6):
        shutil.copytree(run_dir, tmp_path / "all" / f"seed-{number}")
    site = site_of(str(tmp_path))

    with ThreadPoolExecutor(8) as pool:
        for number in range(60):
            path = f"all/seed-{number % 6}"
            found = list(pool.map(site.viewed, [path] * 8))
            assert {id(run) for run in found} == {id(found[0])}, "each would read the air log"


def test_a_page_that_comes_as_the_run_ends_is_told_so(run_dir):
    sent: list[dict] = []

    async def receive() -> dict:
        return {"type": "websocket.connect"}

    async def send(message: dict) -> None:
        sent.append(message)

    address = Address("127.0.0.1", 8000, frozenset({"127.0.0.1"}))
    scope = {"type": "websocket", "path": "/api/live", "query_string": b"token=secret", "headers": [(b"host", b"127.0.0.1:8000")]}
    was = SimpleNamespace(viewed=lambda _run: LiveRun(run_dir))  # what the page was told a moment before
    application = View(was).app(Rules(address, "secret"))
    asyncio.run(application(scope, receive, send))
    assert [message["type"] for message in sent] == ["websocket.accept", "websocket.close"]
    assert sent[-1]["code"] == 1000


@pytest.mark.parametrize(
    "wanted", [[], {}, {"op": []}, {"op": {}}, {"op": "stop"}, {"op": "move", "station": 5, "position": [1, 2]}]
)
def test_a_wrong_action_is_one_line(wanted, run_dir):
    with pytest.raises(UsageError):
        Actions(run_dir).do(wanted)
