"""The traffic kind `command`: its words, the readiness of its server, and the end of its programs."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from analysis.metrics.analyse import analyse_run
from keys.errors import UsageError
from scenarios.definition import load_scenario
from scenarios.flows import Flow
from scenarios.scenario import Scenario
from testbed import __main__ as manet
from testbed.errors import RunError
from testbed.host.processes import Processes
from testbed.programs import BUILT
from testbed.runs import preflight
from testbed.runs.run import run_scenario
from testbed.stages import traffic
from testbed.tests.running import Background, chain, needs_runs, nothing_left, process_of, run_json, wait_until
from traffic import kind_named
from traffic import programs as traffic_programs
from traffic.shared.kind import After, FlowPlan, Listening, Printed, Readiness

ENDS = {"from": "sta1", "to": "sta2", "traffic": "command"}
PYTHON = sys.executable
KIND = kind_named("command")


def flow(**keys: object) -> dict:
    return {**ENDS, "command": ["true"], **keys}


def plan(folder: Path, seconds: float = 7.0, **keys: object) -> FlowPlan:
    own = Flow.model_validate(flow(**keys)).own_keys()
    ends = {"source": "10.0.0.1", "target": "10.0.0.2", "port": 5201}
    return FlowPlan("flow1", own, **ends, seconds=seconds, seed=1, report=folder / "flow1.json", log=folder)


# --- keys -----------------------------------------------------------------------------------------


def test_fields_are_filled_in(tmp_path: Path) -> None:
    words = ["x", "-c", "{target}", "{source}:{port}", "{seconds}", "{{a}}"]
    argv = KIND.sender(plan(tmp_path, command=words), 0).argv
    assert argv[-6:] == ["x", "-c", "10.0.0.2", "10.0.0.1:5201", "7", "{a}"]
    assert KIND.sender(plan(tmp_path, seconds=2.5, command=["x", "{seconds}"]), 0).argv[-1] == "2.5"
    assert KIND.receiver(plan(tmp_path)) is None
    assert KIND.receiver(plan(tmp_path, server=["y", "{port}"])).argv[-2:] == ["y", "5201"]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"command": ["x", "{targt}"]}, ["flows.0.command.1", "{targt}", "{target}", "{{ and }}"]),
        ({"server": ["x", "{port:d}"]}, ["flows.0.server.1", "unknown field"]),
        ({"command": ["x", "{"]}, ["flows.0.command.1", "{{ and }}"]),
        ({"command": []}, ["flows.0.command", "first word"]),
        ({"command": ["{target}"]}, ["flows.0.command", "first word"]),
        ({"command": "ping sta2"}, ["flows.0.command", "a list"]),
        ({"server": ["x"], "ready_line": "("}, ["flows.0.ready_line", "regular expression"]),
        ({"server": ["x"], "ready_port": 65536}, ["flows.0.ready_port", "65535"]),
        ({"ready_port": 80}, ["flows.0.ready_port", '"server"']),
        ({"server": ["x"], "ready_port": 80, "ready_after": 1}, ["flows.0.ready_after", '"ready_port"', "remove one"]),
        ({"tcp": "vegas"}, ["flows.0.tcp", "has no TCP"]),
    ],
)
def test_wrong_keys_are_refused_by_name(tmp_path: Path, keys: dict, words: list[str]) -> None:
    path = tmp_path / "x.toml"
    entries = ", ".join(f"{key} = {json.dumps(value)}" for key, value in flow(**keys).items())
    path.write_text(f"hops = 1\nflows = [{{ {entries} }}]\n")
    with pytest.raises(UsageError) as problem:
        load_scenario(path)
    assert all(word in str(problem.value) for word in words), str(problem.value)


@pytest.mark.parametrize(
    ("flows", "key", "words"),
    [
        (['{ server = ["x"], ready_port = 9000 }', '{ server = ["x"], ready_port = 9000 }'], 1, "9000 of sta2 is flow1's"),
        (['{ server = ["x"], ready_port = 5202 }', '{ traffic = "bulk" }'], 0, "5202 of sta2 is flow2's"),
        (['{ traffic = "bulk" }', '{ server = ["x"], ready_port = 5201 }'], 1, "5201 of sta2 is flow1's"),
    ],
)
def test_a_port_that_another_flow_has_at_the_station_is_refused(tmp_path: Path, flows: list[str], key: int, words: str) -> None:
    path = tmp_path / "x.toml"
    ends = 'from = "sta1", to = "sta2", '
    command = 'traffic = "command", command = ["true"], '
    entries = [each.replace("{ ", "{ " + ends + ("" if "traffic" in each else command)) for each in flows]
    path.write_text("\n".join(["hops = 1", "flows = [", *(f"{each}," for each in entries), "]"]))
    refusal = rf'x.toml: line {3 + key}: key "flows.{key}.ready_port": port {words} already'
    with pytest.raises(UsageError, match=refusal) as problem:
        load_scenario(path)
    assert "\n" not in str(problem.value)


def test_equal_ports_at_different_stations_and_a_flow_s_own_port_are_accepted() -> None:
    servers = {"server": ["x"], "ready_port": 5201}
    flows = [flow(**servers), flow(**servers | {"from": "sta2", "to": "sta1"}), flow(server=["x"], ready_port=0)]
    assert [each.ready_port for each in chain(flows=flows).flows] == [5201, 5201, 0]


def test_a_missing_command_is_shown_with_an_example() -> None:
    with pytest.raises(ValueError, match=r'add command = \["ping", "-c", "10", "\{target\}"\]'):
        Flow.model_validate(ENDS)


def test_the_scenario_s_json_gives_the_same_scenario() -> None:
    scenario = chain(flows=[flow(server=["nc", "-lk", "{port}"], ready_port=0)])
    assert Scenario.from_json(scenario.to_json()) == scenario


@pytest.mark.parametrize("word", ["manet-no-such-program", "/proc/no-such-program"])
@pytest.mark.parametrize("key", ["command", "server"])
def test_a_program_that_does_not_exist_is_refused(key: str, word: str) -> None:
    with pytest.raises(UsageError, match=f'key "flows.1.{key}": "{word}" is .*; install it, or write its full path'):
        preflight.check_own_programs(chain(flows=[flow(), flow(**{key: [word]})]))


def test_the_command_line_names_file_and_line_of_a_missing_program(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "x.toml"
    ends = 'from = "sta1", to = "sta2"'
    path.write_text(f'hops = 1\nflows = [\n{{ {ends} }},\n{{ {ends}, traffic = "command", command = ["no-such-program"] }}]\n')
    assert manet.main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    missing = '"no-such-program" is not in PATH; install it, or write its full path'
    name = min(str(path), os.path.relpath(path), key=len)
    assert capsys.readouterr().err == f'manet run: {name}: line 4: key "flows.1.command": {missing}\n'
    flows = f"flows=[{{{ends},traffic='command',command=['n-s']}}]"
    assert manet.main(["run", "chain5", "--set", flows, "--out", str(tmp_path / "out")]) == 2
    assert '--set: key "flows.0.command": "n-s" is not in PATH' in capsys.readouterr().err


def test_a_program_in_path_or_with_its_path_is_accepted() -> None:
    preflight.check_own_programs(chain(flows=[flow(server=[PYTHON]), {"from": "sta1", "to": "sta2"}]))


# --- readiness ------------------------------------------------------------------------------------


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator:
    """Wait for a receiver, a line of Python, by the stage's own function; returns its duration, s."""
    monkeypatch.setattr(traffic, "READY_DEADLINE_S", 1.5)
    with Processes(tmp_path / "log") as children:

        def wait(line: str, readiness: Readiness, port: int = 5201) -> float:
            kind = SimpleNamespace(readiness_of=lambda _keys: readiness)
            running = traffic.RunningFlow(
                SimpleNamespace(name="flow1", keys=None, port=port), SimpleNamespace(kind=kind), None, None
            )
            running.receiver = children.start("flow1-receiver", [PYTHON, "-c", line], remedy="look")
            running.receiver_started = time.monotonic()
            traffic.wait_until_ready([running], children)
            return time.monotonic() - running.receiver_started

        yield wait


def test_the_keys_give_the_condition(tmp_path: Path) -> None:
    def of(**keys: object) -> Readiness:
        return KIND.readiness_of(plan(tmp_path, server=["x"], **keys).keys)

    assert isinstance(of(ready_port=80), Listening) and of(ready_port=80).port == 80
    assert of(ready_port=0).port is None
    assert isinstance(of(ready_line="up"), Printed)
    assert (of(ready_after=3), of()) == (After(3.0), After(0.0))


@pytest.mark.parametrize(
    ("family", "kind"),
    [("AF_INET", "SOCK_STREAM"), ("AF_INET", "SOCK_DGRAM"), ("AF_INET6", "SOCK_STREAM")],
)
def test_a_server_that_listens_is_ready(waiting, family: str, kind: str) -> None:
    if family == "AF_INET6" and not Path("/proc/net/tcp6").exists():
        pytest.skip("this kernel has no IPv6")
    with socket.socket(getattr(socket, family), getattr(socket, kind)) as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    listen = "s.listen();" if kind == "SOCK_STREAM" else ""
    line = (
        f"import socket, time; s = socket.socket(socket.{family}, socket.{kind}); s.bind(('', {port})); {listen} time.sleep(60)"
    )
    waiting(line, Listening(None, port))


def test_a_server_is_ready_by_its_output_or_after_its_time(waiting) -> None:
    waiting("import time; print('a\\nup 7', flush=True); time.sleep(60)", Printed(r"^up \d$", "look"))
    assert waiting("import time; time.sleep(60)", After(2.0)) >= 2.0  # beyond the deadline of the others


@pytest.mark.parametrize(
    ("readiness", "words"),
    [
        (Listening(None, 9, "correct ready_port"), "its receiver does not listen on port 9 after 1.5 s; correct ready_port"),
        (Listening("tcp"), "its receiver does not listen after 1.5 s; the host is overloaded"),
        (Printed("up", "correct ready_line"), 'its receiver has printed no "up" after 1.5 s; correct ready_line'),
    ],
)
def test_a_server_that_is_never_ready_fails_the_run(waiting, readiness: Readiness, words: str) -> None:
    with pytest.raises(RunError) as problem:
        waiting("import time; time.sleep(60)", readiness, port=9)
    assert str(problem.value) == f"flow1: {words}"


@pytest.mark.parametrize("readiness", [After(60.0), Printed("up", "look")])
def test_a_server_that_ends_before_it_is_ready_fails_the_run(waiting, readiness: Readiness) -> None:
    with pytest.raises(RunError, match=r'flow1-receiver: .* ended with status 3: "no device"; look'):
        waiting("import sys; print('no device'); sys.exit(3)", readiness)


# --- the program that starts the command ----------------------------------------------------------


def ran(folder: Path, seconds: float, *words: str) -> dict:
    done = subprocess.run(KIND.sender(plan(folder, seconds=seconds, command=list(words)), 0).argv, timeout=60)
    assert done.returncode == 0
    return json.loads((folder / "flow1.json").read_text())


def test_a_command_that_ends_early_has_its_status(tmp_path: Path) -> None:
    began = time.monotonic()
    report = ran(tmp_path, 0.8, "sh", "-c", "exit 3")
    assert time.monotonic() - began >= 0.8  # the flow's time is the same
    assert (report["exit_status"], report["ended_by_run"], report["argv"]) == (3, False, ["sh", "-c", "exit 3"])
    assert KIND.from_report(report) == {"exit_status": 3, "ended_by_run": False}
    assert KIND.remark(report) == f"ended with status 3: sh, after {report['seconds']:.1f} s"
    killed = ran(tmp_path, 0.5, "sh", "-c", "kill -9 $$")
    assert (killed["exit_status"], KIND.remark(killed).startswith("was killed by signal 9: sh")) == (-9, True)
    assert KIND.remark(ran(tmp_path, 0.1, "true")) is None


def test_a_command_that_is_running_at_the_end_is_ended(tmp_path: Path) -> None:
    report = ran(tmp_path, 0.5, "sleep", "60")
    assert (report["exit_status"], report["ended_by_run"], report["seconds"] >= 0.5) == (None, True, True)
    assert KIND.remark(report) is None


def test_processes_that_a_command_leaves_are_ended(tmp_path: Path) -> None:
    ran(tmp_path, 0.5, "sh", "-c", f"sleep 60 & echo $! >{tmp_path}/pid")
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text(), "it has ended")


@pytest.mark.slow
def test_a_command_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    assert ran(tmp_path, 0.5, "sh", "-c", "trap '' TERM; while :; do sleep 0.2; done")["ended_by_run"]


def test_a_server_that_ends_by_itself_is_an_error(tmp_path: Path) -> None:
    argv = KIND.receiver(plan(tmp_path, server=["sh", "-c", "echo busy; exit 4"])).argv
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (1, "busy\n", "the server, sh, ended with status 4\n")


def test_a_server_ends_at_sigterm(tmp_path: Path) -> None:
    with subprocess.Popen(KIND.receiver(plan(tmp_path, server=["sleep", "60"])).argv) as server:
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
        wait_until(lambda: children.read_text().split(), "it has started")
        pid = int(children.read_text().split()[0])
        wait_until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n", "it runs")
        server.terminate()
    assert not Path(f"/proc/{pid}").exists()


# SIGTERM at the worst moment: the child has started, and nothing of the program knows it yet.
AT_WORST = """
import os, runpy, signal, subprocess, sys

class Popen(subprocess.Popen):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        os.kill(os.getpid(), signal.SIGTERM)

subprocess.Popen, sys.argv = Popen, sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
PROGRAMS = Path(traffic_programs.__file__).parent
SLEEPER = ["sh", "-c", "exec sleep 60", "sh"]  # whatever follows is not read


@pytest.mark.parametrize(
    "words",
    [
        ["command.py", "run", "--seconds", "60", "--out", "report", "--", "sleep", "60"],
        ["command.py", "serve", "--", "sleep", "60"],
        ["iperf_client.py", "--seconds", "60", "--report", "report", "--receiver", "0", "--", *SLEEPER],
        ["iperf_server.py", "--report", "report", "--", *SLEEPER],
    ],
    ids=["run", "serve", "iperf-client", "iperf-server"],
)
def test_sigterm_while_a_child_is_being_started_ends_it_too(tmp_path: Path, words: list[str]) -> None:
    argv = [PYTHON, "-c", AT_WORST, str(PROGRAMS / words[0]), *words[1:]]
    program = subprocess.Popen(argv, cwd=tmp_path, start_new_session=True)
    program.wait(timeout=20)
    left = in_session(program.pid)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def in_session(leader: int) -> list[int]:
    """The processes in the session of a process that has ended; those that nobody has waited for have no command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getsid(int(process.name)) == leader and (process / "cmdline").read_text():
                found.append(int(process.name))
    return found


# --- runs -----------------------------------------------------------------------------------------

SERVE = (
    "import socket; s = socket.create_server(('', {port})); print('up', flush=True)\nwhile True: s.accept()[0].sendall(b'hello')"
)
ASK = "import socket; print(socket.create_connection(('{target}', {port}), 5).recv(9).decode())"


@pytest.mark.root
@needs_runs
def test_commands_of_every_readiness_in_a_run(tmp_path: Path) -> None:
    client, server = [PYTHON, "-c", ASK], [PYTHON, "-c", SERVE]
    ready = [{"ready_port": 0}, {"ready_line": "^up$"}, {"ready_after": 1}]
    flows = [flow(command=client, server=server, **condition) for condition in ready]
    flows += [flow(command=["sh", "-c", "exit 3"]), flow(command=["sleep", "60"])]
    result = run_scenario(chain(flows=flows), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    ends = [(each["exit_status"], each["ended_by_run"]) for each in metrics["flows"].values()]
    assert ends == [(0, False), (0, False), (0, False), (3, False), (None, True)]
    assert [remark.split(", after")[0] for remark in metrics["remarks"]] == ["flow4 from sta1 to sta2 ended with status 3: sh"]
    assert "hello" in (tmp_path / "run" / "log" / "flow1-sender.log").read_text()
    assert "up" in (tmp_path / "run" / "log" / "flow1-receiver.log").read_text()
    assert nothing_left(tmp_path / "run")


@pytest.mark.root
@needs_runs
@pytest.mark.parametrize(
    ("victim", "words"),
    [
        ("server", ["flow1-receiver", "the server, sleep, was killed by SIGKILL"]),
        ("command.py serve", ["flow1-receiver", "SIGKILL"]),
        ("command.py run", ["flow1-sender", "SIGKILL"]),
    ],
    ids=["server", "its-keeper", "the-command-s-keeper"],
)
def test_a_killed_process_fails_the_run_and_leaves_nothing(tmp_path: Path, victim: str, words: list[str]) -> None:
    flows = [flow(command=["sleep", "70"], server=["sleep", "71"])]
    run = Background(chain(duration=20, flows=flows), tmp_path / "run").at("traffic", 0.1)
    pid = program_of(tmp_path / "run", "command.py serve") if victim == "server" else process_of(tmp_path / "run", victim)
    os.kill(pid, signal.SIGKILL)
    result = run.result()
    assert result.status == "failed"
    assert all(word in result.error for word in words), result.error
    assert run_json(tmp_path / "run")["error"] == result.error
    assert nothing_left(tmp_path / "run")


def program_of(directory: Path, word: str) -> int:
    """The pid of the program that the keeper with `word` in its command line has started."""
    keeper = process_of(directory, word)
    return int(Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()[0])


@pytest.mark.root
@needs_runs
def test_a_killed_command_is_a_result(tmp_path: Path) -> None:
    run = Background(chain(duration=4, flows=[flow(command=["sleep", "70"])]), tmp_path / "run").at("traffic", 0.1)
    os.kill(program_of(tmp_path / "run", "command.py run"), signal.SIGKILL)
    assert run.result().status == "complete"
    metrics = analyse_run(tmp_path / "run")
    assert metrics["flows"]["flow1"]["exit_status"] == -9
    assert "was killed by signal 9: sleep" in metrics["remarks"][0]


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_a_server_that_is_never_ready_fails_its_run(tmp_path: Path) -> None:
    flows = [flow(server=["sleep", "71"], ready_port=0)]
    result = run_scenario(chain(flows=flows), 1, tmp_path / "run", programs=BUILT)
    assert result.status == "failed"
    assert "flow1: its receiver does not listen after 20 s; correct server or ready_port" in result.error
    assert nothing_left(tmp_path / "run")


# --- what the captures have of a command ----------------------------------------------------------

UPLOAD = """
import socket, sys, time
stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM, int(sys.argv[1]))
stream.connect(("{target}", {port}))
for _ in range(15):  # MPTCP opens no subflow after the end of the data
    stream.sendall(bytes(10_000))
    time.sleep(0.2)
stream.shutdown(socket.SHUT_WR)
stream.recv(1)
"""
TAKE = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, int(sys.argv[1]))
server.bind(("", {port}))
server.listen()
print("up", flush=True)
while True:
    stream, _ = server.accept()
    total = 0
    while data := stream.recv(65536):
        total += len(data)
    stream.close()
    print(total, flush=True)
"""
DATAGRAMS = """
import os, socket, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(50):
    sender.sendto(bytes(21) + os.urandom(479), ("{target}", {port}))
    time.sleep(0.02)
"""
ECHO = """
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", {port}))
print("up", flush=True)
while True:
    data, client = server.recvfrom(2000)
    server.sendto(data[:100], client)
"""


def taken(run: Path) -> int:
    """The bytes that the server has read."""
    return int((run / "log" / "flow1-receiver.log").read_text().split()[-1])


@pytest.mark.root
@needs_runs
def test_connections_of_a_command_are_measured(tmp_path: Path) -> None:
    upload = flow(command=[PYTHON, "-c", UPLOAD, "6"], server=[PYTHON, "-c", TAKE, "6"], ready_line="^up$")
    datagrams = flow(command=[PYTHON, "-c", DATAGRAMS], server=[PYTHON, "-c", ECHO], ready_line="^up$", start=4)
    result = run_scenario(chain(duration=8, routing="aodv", flows=[upload, datagrams]), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    stream, packets = metrics["flows"].values()
    assert taken(tmp_path / "run") == 150_000
    assert stream["delivered_bps"] == pytest.approx(150_000 * 8 / 8)
    assert (stream["connections"], stream["sent"], stream["rtt_ms_mean"] > 0) == (1, None, True)
    assert (packets["connections"], packets["sent"], packets["back_sent"], packets["loss"]) == (1, 50, 50, 0)
    assert packets["delivered_bps"] == pytest.approx(50 * 500 * 8 / 8)
    assert (packets["acked_bps"], 0 < packets["latency_ms_mean"] < packets["latency_ms_p95"]) == (None, True)


@pytest.mark.root
@pytest.mark.skipif(not Path("/proc/sys/net/mptcp/enabled").exists(), reason="this kernel has no MPTCP")
@needs_runs
def test_subflows_of_mptcp_over_two_gateways_are_added(tmp_path: Path) -> None:
    """The host offers the address of its second wire (RFC 8684, 3.4.1), so each gateway has a subflow."""
    limits = "ip mptcp limits set subflow 2 add_addr_accepted 2"
    client = ["sh", "-c", f'{limits}; exec "$@"', "sh", PYTHON, "-c", UPLOAD, "262"]
    server = ["sh", "-c", f'{limits}; ip mptcp endpoint add 192.168.2.2 signal; exec "$@"', "sh", PYTHON, "-c", TAKE, "262"]
    upload = flow(command=client, server=server, ready_line="^up$", to="host1")
    gateways = [{"name": "gw1", "at": [150, 200]}, {"name": "gw2", "at": [150, 0]}]
    scenario = {"topology": "positions", "positions": [[0, 100], *gateways], "warmup": 0, "duration": 8, "routing": "static"}
    wires = [{"station": name, "host": "host1"} for name in ("gw1", "gw2")]
    run = Scenario.model_validate(scenario | {"wires": wires, "flows": [upload]})
    result = run_scenario(run, 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    measured = metrics["flows"]["flow1"]
    assert measured["connections"] == 2
    assert measured["longest_silence_s"] > 2  # the data take 15 x 0.2 s of the 8 s
    assert taken(tmp_path / "run") == 150_000
    # a block that MPTCP repeats on the other subflow (RFC 8684, 3.3.6) counts on both
    assert 150_000 <= measured["delivered_bps"] <= 2 * 150_000 and measured["delivered_bps"] == measured["air_bps"]
