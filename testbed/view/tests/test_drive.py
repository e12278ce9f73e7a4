"""A run under way, driven by programs: metrics, positions in and out, terminals and GPS receivers; and what is refused."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from record.events_file import read_events
from record.files import read_object
from scenarios.scenario import Scenario
from testbed.programs import ROOT
from testbed.runs.by_hand import with_actions
from testbed.tests.running import chain, needs_runs
from testbed.view.positions import MAX_MOVES_PER_S
from testbed.view.tests.serving import Served, view

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs, pytest.mark.alone("acts on a run under way, in real time")]

DEADLINE_S = 60
SCENARIO = """
hops = 2
routing = "static"
tcp = "newreno"
window = 8
warmup = 0
duration = 900
gps = { origin = [60.0, 10.0], rate = 10 }
"""
READ_GPS = "import socket; s = socket.create_connection(('127.0.0.1', 10110), 5); print(s.makefile().readline())"


class Run:
    """A run of ten minutes, which the fixture ends."""

    def __init__(self, folder: Path) -> None:
        self.directory = folder / "results" / "all" / "seed-1"
        (folder / "long.toml").write_text(SCENARIO)
        argv = [sys.executable, "-P", "-m", "testbed", "run", str(folder / "long.toml"), "--out", str(folder / "results")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with (folder / "output").open("w") as output:
            self.process = subprocess.Popen(argv, stdout=output, stderr=output, cwd=ROOT, env=environment)
        deadline = time.monotonic() + DEADLINE_S
        while "traffic_ns" not in read_object(self.directory / "run.json"):
            assert time.monotonic() < deadline and self.process.poll() is None, (folder / "output").read_text()
            time.sleep(0.2)

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(DEADLINE_S)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    running = Run(tmp_path_factory.mktemp("drive"))
    try:
        yield running
    finally:
        running.end()


@pytest.fixture(scope="module")
def served(run: Run) -> Iterator[Served]:
    with view(run.directory, "--control") as with_control:
        yield with_control


def opened(served: Served, path: str, token: str | None = None, **options: Any) -> ClientConnection:
    mark = "&" if "?" in path else "?"
    url = f"{served.base.replace('http', 'ws', 1)}{path}{mark}token={served.token if token is None else token}"
    return connect(url, open_timeout=DEADLINE_S, **options)


def line_of(channel: ClientConnection, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The next line that is wanted."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        line = json.loads(channel.recv(DEADLINE_S))
        if wanted(line):
            return line
    raise AssertionError("no such line")


def metrics_of(served: Served) -> dict[tuple[str, ...], float]:
    status, body = served.answer("/metrics")
    assert status == 200
    families = text_string_to_metric_families(body.decode())
    return {(one.name, *list(one.labels.values())[1:]): one.value for family in families for one in family.samples}


def until(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + DEADLINE_S
    while not (value := found()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return value


def is_valid(served: Served) -> bool:
    return metrics_of(served)["manet_run_verdict", "valid"] == 1


# --- metrics


def test_metrics_are_what_the_medium_and_the_samples_say(served: Served, run: Run) -> None:
    until(lambda: ("manet_flow_acked_bytes_total", "flow1", "sta1", "sta3") in metrics_of(served))
    until(lambda: any(metrics_of(served)["manet_station_queue_packets", "sta1"] > 0 for _ in range(20)))
    before = metrics_of(served)
    time.sleep(2)
    after = metrics_of(served)
    assert after["manet_run_up",] == 1 and after["manet_stations",] == 3
    assert 1.5 < after["manet_run_time_seconds",] - before["manet_run_time_seconds",] < 20
    for name, *labels in (
        ("manet_flow_acked_bytes_total", "flow1", "sta1", "sta3"), ("manet_station_frames_sent_total", "sta2", "data"),
        ("manet_station_airtime_seconds_total", "sta1"), ("manet_station_packets_received_total", "sta3"),
    ):  # fmt: skip
        assert after[name, *labels] > before[name, *labels] > 0, name
    assert 1 <= after["manet_flow_cwnd_segments", "flow1", "sta1", "sta3"] <= 8
    assert 0 < after["manet_flow_rtt_seconds", "flow1", "sta1", "sta3"] < 10
    assert after["manet_medium_lateness_seconds", "0.99"] <= after["manet_medium_lateness_max_seconds",]
    assert sum(after["manet_run_verdict", verdict] for verdict in ("valid", "suspect", "void")) == 1
    assert served.answer("/metrics", Authorization="")[0] == 401


# --- positions


def test_positions_and_signals_come_at_the_rate_that_was_asked_for(served: Served) -> None:
    with opened(served, "/api/positions?rate=10&links=2") as channel:
        first = line_of(channel, lambda line: "links" in line)
        assert first["positions"]["sta2"] == [200.0, 0.0, 0.0] and first["t_s"] > first["traffic_s"] > 0
        link = next(link for link in first["links"] if (link["from"], link["to"]) == ("sta1", "sta2"))
        # two-ray ground at 200 m: 24.5 dBm + 10 log10(1.5^4 / 200^4) dB = -60.5 dBm
        assert link == {"from": "sta1", "to": "sta2", "rssi_dbm": -60.5, "range": True, "error_rate": 0.0}
        last = first
        for _ in range(20):
            last = json.loads(channel.recv(DEADLINE_S))
        assert 1.5 < last["t_s"] - first["t_s"] < 10, "20 lines at 10 a second"


def test_a_move_is_carried_out_recorded_and_repeated(served: Served, run: Run) -> None:
    with opened(served, "/api/positions?rate=10") as channel:
        for moved, y in enumerate((10.0, 20.0, 30.0), start=1):
            channel.send(json.dumps({"station": "sta2", "position": [200, y]}))
            line_of(channel, lambda line, moved=moved: line.get("moved") == moved)
        line_of(channel, lambda line: line.get("positions", {}).get("sta2") == [200.0, 30.0, 0.0])
        for wrong, words in (
            ("x", "is one line of JSON"), ("[1]", "is one line of JSON"), ('{"op": "power"}', "is one line of JSON"),
            ('{"station": "sta9", "position": [1, 2]}', "sta9"), ('{"station": "sta2", "position": [1e9, 0]}', "position"),
            ('{"station": "sta2"}', "position: is missing"), ('{"station": "sta2", "position": [1, 2], "x": 1}', "x: is no key"),
        ):  # fmt: skip
            channel.send(wrong)
            error = line_of(channel, lambda line: "error" in line)
            assert words in error["error"] and "\n" not in error["error"], wrong
        channel.send(json.dumps({"station": "sta2", "position": [200, 0]}))
        line_of(channel, lambda line: line.get("positions", {}).get("sta2") == [200.0, 0.0, 0.0])
    moves = [row for row in read_events(run.directory) if row["event"] == "move"]
    assert [(row["station"], row["source"]) for row in moves] == [("sta2", "view")] * 4
    repeated = with_actions(run.directory, chain(hops=2, duration=900)).scenario
    assert [event.to for event in repeated.events if event.move == "sta2"] == [(200, 10), (200, 20), (200, 30), (200, 0)]


@pytest.mark.parametrize(
    "path", ["/api/positions?rate=0", "/api/positions?rate=21", "/api/positions?links=x", "/api/positions?rate=nan"]
)
def test_a_wrong_rate_ends_the_channel_with_a_reason(served: Served, path: str) -> None:
    with opened(served, path) as channel, pytest.raises(ConnectionClosed) as ended:
        channel.recv(DEADLINE_S)
    assert ended.value.rcvd is not None and ended.value.rcvd.code == 1008 and "is no number from" in ended.value.rcvd.reason


def test_a_program_that_moves_too_fast_waits_and_the_run_stays_valid(served: Served) -> None:
    """10,000 messages at once: MAX_MOVES_PER_S are carried out at most, and those of a client that has gone are forgotten."""
    if not is_valid(served):
        pytest.skip("this machine was too loaded before; end other programs on it")
    with opened(served, "/api/positions?rate=2&links=0") as channel:
        begun = time.monotonic()
        sent = 0
        while time.monotonic() - begun < 5 and sent < 10_000:
            channel.send('{"station": "sta2", "position": [200, 5]}')
            sent += 1
        moved = line_of(channel, lambda line: line.get("moved", 0) > 0)["moved"]
        took = time.monotonic() - begun
        assert moved <= MAX_MOVES_PER_S * (took + 1)
        assert served.answer("/api/run")[0] == 200, "others are answered meanwhile"
    with opened(served, "/api/positions") as channel:
        channel.send(json.dumps({"station": "sta2", "position": [200, 0]}))
        line_of(channel, lambda line: line.get("positions", {}).get("sta2") == [200.0, 0.0, 0.0])
    assert is_valid(served)


# --- terminals


class Typed:
    """A terminal, as the page uses it."""

    def __init__(self, served: Served, station: str) -> None:
        self._stack, self.output = ExitStack(), b""
        self.channel = self._stack.enter_context(opened(served, f"/api/terminal?station={station}"))

    def close(self) -> None:
        self._stack.close()

    def start(self, line: str) -> None:
        self.channel.send(json.dumps({"line": line, "columns": 80, "lines": 24}))

    def said(self) -> dict[str, Any]:
        """The next message that is no output."""
        while True:
            message = self.channel.recv(DEADLINE_S)
            if isinstance(message, str):
                return json.loads(message)
            self.output += message

    def shows(self, text: bytes) -> None:
        while text not in self.output:
            message = self.channel.recv(DEADLINE_S)
            assert isinstance(message, bytes), message
            self.output += message

    def run(self, line: str) -> tuple[int, str]:
        """Exit status and output."""
        self.output = b""
        self.start(line)
        assert self.said() == {"started": True}
        return self.said()["exited"], self.output.decode().replace("\r\n", "\n")


@pytest.fixture
def terminal(served: Served) -> Iterator[Typed]:
    typed = Typed(served, "sta1")
    yield typed
    typed.close()


def test_a_line_runs_at_the_station_with_a_terminal_and_is_recorded(terminal: Typed, served: Served, run: Run) -> None:
    assert terminal.run("tty >/dev/null && stty size && echo $TERM; exit 3") == (3, "24 80\nxterm-256color\n")
    assert terminal.run("ip -brief address | grep -o 10.0.0.1/")[1] == "10.0.0.1/\n"
    assert terminal.run("seq 1 20000 | tail -n 1") == (0, "20000\n")
    assert len(terminal.run("seq 1 20000")[1].split()) == 20000, "the last of the output comes before the end"
    rows = [row for row in read_events(run.directory) if row["source"] == "exec"]
    assert [row["station"] for row in rows][:4] == ["sta1"] * 4 and rows[0]["detail"].endswith(" started")


def test_keys_sizes_and_signals_reach_the_command(terminal: Typed) -> None:
    terminal.start("read word; echo got $word; trap 'echo resized $(stty size)' WINCH; while :; do sleep 0.1; done")
    assert terminal.said() == {"started": True}
    terminal.channel.send(b"hello\r")
    terminal.shows(b"got hello")
    terminal.channel.send(json.dumps({"columns": 100, "lines": 30}))
    terminal.shows(b"resized 30 100")
    terminal.start("true")
    assert "a command runs already" in terminal.said()["error"]
    terminal.channel.send(b"\x03")  # Ctrl-C
    assert terminal.said()["exited"] in (-2, 130)


def test_a_page_that_goes_hangs_its_command_up(served: Served, terminal: Typed) -> None:
    gone = Typed(served, "sta1")
    gone.start("exec sleep 987654")
    assert gone.said() == {"started": True}
    until(lambda: terminal.run("pgrep -f '^sleep 98765[4]'")[0] == 0)
    gone.close()
    until(lambda: terminal.run("pgrep -f '^sleep 98765[4]'")[0] == 1)


def test_wrong_lines_are_refused_in_one_line(served: Served, terminal: Typed) -> None:
    for wrong in ("x", "[]", '{"line": 5, "columns": 80, "lines": 24}', '{"line": "ls"}', '{"columns": 0, "lines": 24}',
                  '{"line": "a\\u0000b", "columns": 80, "lines": 24}', '{"x": 1}',
                  json.dumps({"line": "x" * 5000, "columns": 80, "lines": 24})):  # fmt: skip
        terminal.channel.send(wrong)
        error = terminal.said()["error"]
        assert error and "\n" not in error
    assert terminal.run("echo on")[1] == "on\n"
    elsewhere = Typed(served, "sta9")
    elsewhere.start("ls")
    assert 'there is no station or host "sta9"' in elsewhere.said()["error"]
    elsewhere.close()


def test_floods_of_output_and_of_messages_leave_the_run_valid(served: Served, terminal: Typed) -> None:
    if not is_valid(served):
        pytest.skip("this machine was too loaded before; end other programs on it")
    terminal.start("yes")
    assert terminal.said() == {"started": True}
    begun, received = time.monotonic(), 0
    while time.monotonic() - begun < 3:
        received += len(terminal.channel.recv(DEADLINE_S))
    assert received < 2_000_000 * 4, "a megabyte a second"
    sent = 0
    while time.monotonic() - begun < 8 and sent < 10_000:
        terminal.channel.send(b"x" * 10)
        sent += 1
    terminal.close()
    assert served.answer("/api/run")[0] == 200
    assert is_valid(served)


def test_the_terminal_has_a_limit_of_open_ones(served: Served) -> None:
    terminals = [Typed(served, "sta1") for _ in range(16)]
    try:
        with opened(served, "/api/terminal?station=sta1") as further, pytest.raises(ConnectionClosed) as ended:
            further.recv(DEADLINE_S)
        assert ended.value.rcvd is not None and "16 terminals are open" in ended.value.rcvd.reason
    finally:
        for one in terminals:
            one.close()

    def works() -> bool:
        again = Typed(served, "sta1")
        try:
            return again.run("echo again")[1] == "again\n"
        except ConnectionClosed:
            return False
        finally:
            again.close()

    until(works)


# --- GPS


def test_a_program_in_a_station_sees_a_receiver_at_its_position(terminal: Typed) -> None:
    status, output = terminal.run(f'python3 -c "{READ_GPS}"')
    # sta1 stands at (0, 0), which is 60 degrees north, 10 degrees east
    assert status == 0 and re.match(r"\$GPGGA,\d{6}\.\d\d,6000\.00000,N,01000\.00000,E,1,", output), output


# --- who may


@pytest.mark.parametrize("path", ["/api/positions", "/api/terminal?station=sta1", "/api/live"])
def test_no_token_and_another_origin_are_refused(served: Served, path: str) -> None:
    for token in ("", "x", served.token[:-1]):
        with pytest.raises(InvalidStatus) as refused:
            opened(served, path, token)
        assert refused.value.response.status_code == 403
    for origin in ("http://evil.example", "null", served.base.replace("http", "https", 1)):
        with pytest.raises(InvalidStatus) as refused:
            opened(served, path, origin=origin)
        assert refused.value.response.status_code == 403
    assert served.answer(path)[0] == 426


def test_without_control_positions_are_read_and_nothing_is_moved_or_started(run: Run) -> None:
    before = len(read_events(run.directory))
    with view(run.directory) as served:
        with opened(served, "/api/positions") as channel:
            channel.send(json.dumps({"station": "sta2", "position": [1, 1]}))
            assert "read-only" in line_of(channel, lambda line: "error" in line)["error"]
            assert line_of(channel, lambda line: "positions" in line)["positions"]["sta2"] == [200.0, 0.0, 0.0]
        with opened(served, "/api/terminal?station=sta1") as channel, pytest.raises(ConnectionClosed) as ended:
            channel.recv(DEADLINE_S)
        assert ended.value.rcvd is not None and "read-only" in ended.value.rcvd.reason
    assert len(read_events(run.directory)) == before


# --- the end


def test_the_end_of_the_run_ends_its_channels_and_its_record_has_the_command_lines(tmp_path: Path) -> None:
    run = Run(tmp_path)
    try:
        with view(run.directory, "--control") as served:
            typed = Typed(served, "sta3")
            assert typed.run("echo $((6 * 7))")[1] == "42\n"
            with opened(served, "/api/positions?rate=10") as channel:
                line_of(channel, lambda line: "positions" in line)
                run.process.send_signal(signal.SIGINT)
                assert line_of(channel, lambda line: "end" in line) == {"end": True}
            run.process.wait(DEADLINE_S)
            typed.start("ls")
            assert "ended" in typed.said()["error"]
            with opened(served, "/api/positions") as channel, pytest.raises(ConnectionClosed) as ended:
                channel.recv(DEADLINE_S)
            assert ended.value.rcvd is not None and "no run is under way" in ended.value.rcvd.reason
            assert "manet_run_up" not in served.answer("/metrics")[1].decode()
    finally:
        run.end()
    commands = read_object(run.directory / "run.json")["commands"]
    assert [(one["station"], one["argv"], one["exit_status"]) for one in commands] == [
        ("sta3", ["sh", "-c", "echo $((6 * 7))"], 0)
    ]
    assert Scenario.from_json((run.directory / "scenario.json").read_text()).gps is not None
