"""The traffic kind `web`: sessions of its client with nginx, over loopback and in runs."""

import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.flows import Flow
from testbed.errors import UsageError
from testbed.host.algorithms import missing_struct_ops
from testbed.host.doctor import doctor
from testbed.programs import BUILT
from testbed.runs import preflight
from testbed.runs.run import run_scenario
from testbed.tests.running import Background, chain, free_port, needs_runs, nothing_left, process_of, wait_until
from traffic.programs.web_client import request_text
from traffic.shared import sessions
from traffic.shared.exchanges import MIN_REQUEST_BYTES, REPLY_HEADER_BYTES
from traffic.shared.kind import FlowPlan
from traffic.web import KIND, NGINX

ENDS = {"from": "sta1", "to": "sta2", "traffic": "web"}
QUICK = """
connections = 3
cycles = 3
request_bytes = { cdf = [[80, 0.0], [900, 1.0]] }
replies = { cdf = [[3, 0.0], [6, 1.0]], whole = true }
reply_bytes = { cdf = [[0, 0.0], [9000, 1.0]] }
think_s = { value = 0.05 }
"""
needs_nginx = pytest.mark.skipif(shutil.which(NGINX) is None, reason="nginx is not installed (./setup.sh)")


def quick(folder: Path, http: str = "1.1") -> str:
    """A file of distributions for a session of a fraction of a second."""
    path = folder / "quick.toml"
    path.write_text(f'http = "{http}"\n{QUICK}')
    return str(path)


def plan_of(folder: Path, seconds: float, **keys: object) -> FlowPlan:
    ends = {"source": "127.0.0.1", "target": "127.0.0.1", "port": free_port()}
    own = Flow.model_validate({**ENDS, **keys}).own_keys()
    return FlowPlan("flow1", own, **ends, seconds=seconds, seed=1, report=folder / "flow1.json", log=folder)


def listens(port: int) -> bool:
    return f":{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text()


class Served:
    """A plan's nginx on loopback."""

    def __init__(self, plan: FlowPlan) -> None:
        self.plan = plan
        self.process = subprocess.Popen(KIND.receiver(plan).argv, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: listens(plan.port) or self.process.poll() is not None, "nginx listens")
        assert self.process.poll() is None, self.process.stderr.read()

    def nginx(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()[0])

    def log(self) -> list[dict]:
        return [json.loads(line) for line in (self.plan.log / "flow1-nginx" / "access.log").read_text().splitlines()]

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=30)


@pytest.fixture
def served() -> Iterator[Callable[[FlowPlan], Served]]:
    started: list[Served] = []

    def serve(plan: FlowPlan) -> Served:
        started.append(Served(plan))
        return started[-1]

    yield serve
    for each in started:
        each.end()


def session(plan: FlowPlan) -> tuple[dict, list[dict]]:
    """The report and the record of a session."""
    assert subprocess.run(KIND.sender(plan, 0).argv, timeout=60).returncode == 0
    return json.loads(KIND.report(plan)), sessions.read_record(plan.report.with_name("flow1-requests.jsonl"))


def planned(plan: FlowPlan) -> list[dict]:
    cycles = json.loads(plan.report.with_name("flow1-exchanges.json").read_text())["cycles"]
    return [one for cycle in cycles for one in cycle["objects"]]


def test_a_request_has_its_size_to_the_byte() -> None:
    """From the shortest one on, whether a header fits in or not."""
    for version in ("1.0", "1.1"):
        shortest = len(request_text({"id": "1.1", "body_bytes": 7, "request_bytes": 0}, 1, version, "10.0.0.2:5201"))
        assert shortest <= MIN_REQUEST_BYTES
        for size in range(shortest, shortest + 30):
            text = request_text({"id": "1.1", "body_bytes": 7, "request_bytes": size}, 1, version, "10.0.0.2:5201")
            assert len(text) == size and text.startswith(b"GET /7?id=1.1&try=1") and text.endswith(b"\r\n\r\n")


# --- client and server ----------------------------------------------------------------------------


@needs_nginx
@pytest.mark.parametrize("http", ["1.0", "1.1"])
def test_a_session_finishes_with_every_byte(tmp_path: Path, served: Callable, http: str) -> None:
    plan = plan_of(tmp_path, 1.5, distributions=quick(tmp_path, http))
    server = served(plan)
    report, events = session(plan)
    outcome = report["session"]
    assert (outcome["finished"], outcome["cycles_finished"], outcome["retries"]) == (True, 3, 0)
    got = {event["id"]: (event["request_bytes"], event["body_bytes"]) for event in sessions.finished_requests(events)}
    assert got == {one["id"]: (one["request_bytes"], one["body_bytes"]) for one in planned(plan)}
    assert len(got) >= 9 and KIND.remark(report) is None
    logged = {entry["id"]: (entry["request_bytes"], entry["body_bytes"]) for entry in server.log()}
    assert logged == got
    # 2 think times of 0.05 s, and the rest is service
    assert outcome["service_s"] == pytest.approx(sessions.of(events, "end")[0]["t_s"] - 0.1, abs=0.05)
    assert outcome["session_bytes"] == sum(entry["sent_bytes"] for entry in server.log())


@needs_nginx
@pytest.mark.parametrize("http", ["1.0", "1.1"])
def test_the_header_of_a_reply_has_the_size_that_is_subtracted(tmp_path: Path, served: Callable, http: str) -> None:
    plan = plan_of(tmp_path, 1.0, distributions=quick(tmp_path, http))
    served(plan)
    requests = sessions.finished_requests(session(plan)[1])
    headers = {event["reply_bytes"] - event["body_bytes"] - len(str(event["body_bytes"])) for event in requests}
    assert headers == {REPLY_HEADER_BYTES[http]}


@needs_nginx
def test_http_1_0_opens_a_connection_for_each_object(tmp_path: Path, served: Callable) -> None:
    plan = plan_of(tmp_path, 1.0, distributions=quick(tmp_path, "1.0"))
    served(plan)
    requests = sessions.of(session(plan)[1], "request")
    assert len({event["connection"] for event in requests}) == len(requests) >= 9
    assert all(event["new"] for event in requests)


@needs_nginx
def test_http_1_1_keeps_its_connections(tmp_path: Path, served: Callable) -> None:
    plan = plan_of(tmp_path, 1.0, distributions=quick(tmp_path))
    served(plan)
    requests = sessions.of(session(plan)[1], "request")
    assert len({event["connection"] for event in requests}) <= 3 < len(requests)


@needs_nginx
def test_the_first_object_comes_alone_and_the_others_at_once(tmp_path: Path, served: Callable) -> None:
    plan = plan_of(tmp_path, 1.0, distributions=quick(tmp_path, "1.0"))
    served(plan)
    requests = sessions.of(session(plan)[1], "request")
    for cycle in (1, 2, 3):
        first, *others = sorted((event for event in requests if event["cycle"] == cycle), key=lambda event: event["issued_s"])
        assert first["id"] == f"{cycle}.1"
        assert all(event["issued_s"] >= first["last_s"] for event in others)


@needs_nginx
def test_an_unfinished_session_counts_its_service_and_the_request_in_progress(tmp_path: Path, served: Callable) -> None:
    """A think time of 60 s follows the first cycle: all of 0.6 s that is not thinking is service."""
    plan = plan_of(tmp_path, 0.6, distributions=quick(tmp_path))
    (tmp_path / "quick.toml").write_text((tmp_path / "quick.toml").read_text().replace("0.05", "60"))
    served(plan)
    report, events = session(plan)
    outcome = report["session"]
    assert (outcome["finished"], outcome["cycles_finished"], outcome["cycles_answered"]) == (False, 1, 1)
    think = sessions.of(events, "think")[0]
    assert outcome["service_s"] == pytest.approx(0.6 - (think["t_s"] - think["began_s"]))
    assert KIND.remark(report) == "did not finish: 1 of 3 cycles in 0.6 s"


def test_a_server_that_never_answers_leaves_a_recorded_request(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 0.5, distributions=quick(tmp_path))
    KIND.receiver(plan)  # writes the exchanges
    with socket.create_server(("127.0.0.1", plan.port)):
        report, events = session(plan)
    (request,) = sessions.of(events, "request")
    assert (request["error"], request["first_s"], request["reply_bytes"]) == ("unfinished", None, 0)
    assert request["connection"] is not None and request["sent_s"] is not None
    outcome = report["session"]
    assert (outcome["service_s"], outcome["throughput_bps"], outcome["response_s_mean"]) == (0.5, 0.0, None)
    assert report["manet"]["connected"]


def test_a_client_without_a_server_tries_again_and_never_connects(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 1.2, distributions=quick(tmp_path))
    KIND.receiver(plan)
    report, events = session(plan)
    tries = [event["try"] for event in sessions.of(events, "issue")]
    assert tries == list(range(1, len(tries) + 1)) and len(tries) >= 2
    errors = [event["error"] for event in sessions.of(events, "request")]
    assert "refused" in errors[0] and all("refused" in error or error == "unfinished" for error in errors)
    assert (report["manet"]["connected"], report["start"]["connected"]) == (False, [])
    assert "refused" in report["manet"]["remark"]


def test_a_lost_connection_is_tried_again_on_a_new_one(tmp_path: Path) -> None:
    """The server closes the first connection in mid-reply, and serves nothing after."""
    plan = plan_of(tmp_path, 1.0, distributions=quick(tmp_path))
    KIND.receiver(plan)
    accepted = []

    def cut(listener: socket.socket) -> None:
        while True:
            try:
                sock, address = listener.accept()
            except OSError:
                return
            accepted.append(address[1])
            sock.recv(10_000)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nshort")
            sock.close()

    with socket.create_server(("127.0.0.1", plan.port)) as listener:
        threading.Thread(target=cut, args=(listener,), daemon=True).start()
        report, events = session(plan)
        listener.shutdown(socket.SHUT_RDWR)
    first, *again = sessions.of(events, "request")
    assert (first["try"], first["body_bytes"], first["connection"]) == (1, 5, accepted[0])
    assert again and again[0]["try"] == 2 and again[0]["connection"] == accepted[1] != accepted[0]
    assert again[0]["began_s"] - first["t_s"] >= 0.5
    assert report["session"]["retries"] == len(again) and report["session"]["requests_finished"] == 0
    assert report["session"]["session_bytes"] == sum(event["reply_bytes"] for event in (first, *again)) > 0


@needs_nginx
def test_a_client_that_is_killed_leaves_its_record(tmp_path: Path, served: Callable) -> None:
    plan = plan_of(tmp_path, 60, distributions=quick(tmp_path))
    (tmp_path / "quick.toml").write_text((tmp_path / "quick.toml").read_text().replace("0.05", "60"))
    served(plan)
    record = plan.report.with_name("flow1-requests.jsonl")
    for number in (signal.SIGTERM, signal.SIGKILL):
        record.unlink(missing_ok=True)
        with subprocess.Popen(KIND.sender(plan, 0).argv) as client:
            wait_until(lambda: record.exists() and '"event": "cycle"' in record.read_text(), "a cycle has ended")
            client.send_signal(number)
        events = sessions.read_record(record)
        assert sessions.of(events, "cycle") and sessions.finished_requests(events) and not sessions.of(events, "end")


@needs_nginx
def test_nginx_that_is_killed_is_an_error_in_one_line(tmp_path: Path, served: Callable) -> None:
    server = served(plan_of(tmp_path, 1, distributions=quick(tmp_path)))
    os.kill(server.nginx(), signal.SIGKILL)
    assert server.process.communicate(timeout=30)[1] == "nginx was killed by SIGKILL\n"
    assert server.process.returncode == 1


@needs_nginx
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nginx_ends_with_its_program_and_leaves_its_log_alone(tmp_path: Path, served: Callable, number: int) -> None:
    server = served(plan_of(tmp_path, 1, distributions=quick(tmp_path)))
    nginx = server.nginx()
    assert Path(f"/proc/{nginx}/comm").read_text() == "nginx\n"
    server.process.send_signal(number)
    server.end()
    wait_until(lambda: not Path(f"/proc/{nginx}").exists() or " Z " in Path(f"/proc/{nginx}/stat").read_text(), "nginx has ended")
    if number == signal.SIGTERM:
        assert sorted(path.name for path in (tmp_path / "flow1-nginx").iterdir()) == ["access.log", "nginx.conf"]


@needs_nginx
def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 1, distributions=quick(tmp_path))
    with socket.create_server(("127.0.0.1", plan.port)):
        done = subprocess.run(KIND.receiver(plan).argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and f"127.0.0.1:{plan.port} failed" in done.stderr
    assert done.stderr.splitlines()[-1] == "nginx ended with status 1"


# --- the machine ----------------------------------------------------------------------------------


def test_a_missing_nginx_is_refused_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = chain(flows=[ENDS])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError) as problem:
        preflight.check_own_programs(scenario, "x")
    assert str(problem.value) == 'x: key "flows.0.traffic": "web" needs nginx, not found; apt-get install nginx'
    preflight.check_own_programs(chain(flows=[{"from": "sta1", "to": "sta2"}]))


def test_the_doctor_names_a_missing_nginx(tmp_path: Path) -> None:
    check = next(check for check in doctor(path=str(tmp_path)) if check.name == "nginx")
    assert (check.ok, check.needed) == (False, True) and "nginx" in check.remedy


# --- runs -----------------------------------------------------------------------------------------


@needs_nginx
@pytest.mark.root
@needs_runs
def test_a_session_in_a_run_is_measured_and_its_records_agree(tmp_path: Path) -> None:
    """Sta1's session has HTTP/1.0, sta3's HTTP/1.1; record, log of nginx and captures agree on each request."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    flows = [
        {**ENDS, "to": "sta3", "distributions": quick(old, "1.0")},
        {**ENDS, "from": "sta3", "distributions": quick(new), "cycles": 4},
    ]
    result = run_scenario(chain(hops=2, duration=8, flows=flows), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    names = [check["name"] for check in metrics["checks"]]
    assert {f"flow{n} requests-{where}" for n in (1, 2) for where in ("logged", "captured")} <= set(names)
    one, two = (metrics["flows"][f"flow{n}"] for n in (1, 2))
    assert (one["finished"], one["cycles_finished"], two["finished"], two["cycles_finished"]) == (True, 3, True, 4)
    # in the window of 8 s everything arrived, one flow of captured bytes
    assert one["goodput_bps"] == pytest.approx(one["session_bytes"] * 8 / 8)
    total_s = one["service_s"] + two["service_s"]
    over_all = metrics["kinds"]["web"]
    assert over_all["throughput_bps"] == pytest.approx((one["session_bytes"] + two["session_bytes"]) * 8 / total_s)
    assert (over_all["service_s"], over_all["finished_sessions"]) == (pytest.approx(total_s / 2), 2)
    answered = [(flow["response_s_mean"], flow["cycles_answered"]) for flow in (one, two)]
    assert over_all["response_s"] == pytest.approx(sum(mean * count for mean, count in answered) / 7)
    assert metrics["fairness"]["web"] > 0.5 and "remarks" not in metrics
    assert not (tmp_path / "run" / "log" / "flow1-nginx" / "objects").exists()


@needs_nginx
@pytest.mark.root
@needs_runs
def test_the_exchanges_of_a_seed_are_those_of_every_variant(tmp_path: Path) -> None:
    for name, keys in (("a", {"tcp": "cubic"}), ("b", {"mtu": 1000, "flows": [{**ENDS, "tcp": "newreno"}]})):
        result = run_scenario(chain(**{"flows": [ENDS], "duration": 1, **keys}), 1, tmp_path / name, programs=BUILT)
        assert (result.status, result.error) == ("complete", None)
    series = [(tmp_path / name / "traffic" / "flow1-exchanges.json").read_bytes() for name in ("a", "b")]
    assert series[0] == series[1] and len(json.loads(series[0])["cycles"]) == 14


@needs_nginx
@pytest.mark.root
@needs_runs
@pytest.mark.skipif(missing_struct_ops() != "", reason=missing_struct_ops())
def test_the_tcp_of_a_flow_is_that_of_nginx_s_sockets(tmp_path: Path) -> None:
    """By the kernel's samples of each socket: the algorithm with its layer, and a window of 8 segments at the server."""
    flows = [
        {**ENDS, "distributions": quick(tmp_path), "tcp": "reno-f(reno)"},
        {**ENDS, "distributions": quick(tmp_path), "tcp": "cubic"},
    ]
    result = run_scenario(chain(duration=4, flows=flows), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    with (tmp_path / "run" / "tcp.csv").open() as file:
        rows = list(csv.DictReader(file))
    for port, name in (("5201", "reno-f(reno)"), ("5202", "cubic")):
        at_server = [row for row in rows if (row["station"], row["sport"]) == ("sta2", port)]
        at_client = [row for row in rows if (row["station"], row["dport"]) == ("sta1", port)]
        for ends in (at_server, at_client):
            assert {row["detail"] for row in ends if row["event"] == "algorithm"} == {name}
        assert any(int(row["snd_nxt"]) != int(row["snd_una"]) for row in at_server), "nginx's data were sampled"
        assert max(int(row["snd_cwnd"]) for row in at_server) <= 8


@needs_nginx
@pytest.mark.root
@needs_runs
def test_a_wired_host_serves(tmp_path: Path) -> None:
    flow = {**ENDS, "to": "h1", "distributions": quick(tmp_path)}
    wires = [{"station": "sta2", "host": "h1"}]
    result = run_scenario(chain(duration=5, flows=[flow], wires=wires), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    assert metrics["flows"]["flow1"]["finished"]


@needs_nginx
@pytest.mark.root
@needs_runs
def test_a_client_that_leaves_for_good_and_one_without_a_path_are_no_failure(tmp_path: Path) -> None:
    """Sta1 is off from 1.5 s on: its session of 500 cycles stays unfinished. Sta3 is out of range from the start."""
    flows = [{**ENDS, "distributions": quick(tmp_path), "cycles": 500}, {**ENDS, "from": "sta3"}]
    places = [[0, 0], [200, 0], [2000, 0]]
    scenario = chain(
        hops=None, topology="positions", positions=places, routing="none", flows=flows, duration=6,
        events=[{"at": 1.5, "power": "sta1", "on": False}],
    )  # fmt: skip
    result = run_scenario(scenario, 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    left, apart = metrics["flows"]["flow1"], metrics["flows"]["flow2"]
    assert (left["finished"], apart["finished"]) == (False, False)
    assert 0 < left["cycles_finished"] < 500
    # all the time that is no think time (0.05 s after each cycle) is service, the silence after 1.5 s too
    assert left["service_s"] == pytest.approx(6 - 0.05 * left["cycles_finished"], abs=0.1)
    assert (apart["service_s"], apart["session_bytes"], apart["throughput_bps"], apart["goodput_bps"]) == (6.0, 0, 0.0, 0.0)
    over_all = metrics["kinds"]["web"]
    assert (over_all["finished_sessions"], over_all["sessions"]) == (0, 2)
    unfinished, never, off = metrics["remarks"]
    assert off == "events: sta1 off at 1.5 s"
    assert unfinished.startswith(f"flow1 from sta1 to sta2 did not finish: {left['cycles_finished']} of 500 cycles in 6 s")
    assert never.startswith("flow2 from sta3 to sta2 never connected")


@needs_nginx
@pytest.mark.root
@needs_runs
@pytest.mark.parametrize(
    ("word", "end", "said"),
    [("web_client.py", "sender", "SIGKILL"), ("nginx.conf", "receiver", "nginx was killed by SIGKILL")],
)
def test_a_killed_end_fails_the_run_and_keeps_the_records(tmp_path: Path, word: str, end: str, said: str) -> None:
    flow = {**ENDS, "distributions": quick(tmp_path), "cycles": 1000}
    run = Background(chain(duration=30, flows=[flow]), tmp_path / "run").at("traffic")
    record = tmp_path / "run" / "traffic" / "flow1-requests.jsonl"
    wait_until(lambda: record.exists() and '"event": "cycle"' in record.read_text(), "a cycle has ended")
    os.kill(process_of(tmp_path / "run", word), signal.SIGKILL)
    result = run.result()
    assert result.status == "failed" and "\n" not in result.error
    assert f"flow1-{end}" in result.error and said in result.error
    assert sessions.finished_requests(sessions.read_record(record))
    assert "manet cli" not in result.error, "its path is not the cause"
    assert (tmp_path / "run" / "log" / "flow1-nginx" / "access.log").read_text()
    assert nothing_left(tmp_path / "run")

    metrics = analyse_run(tmp_path / "run")
    events, ended = sessions.read_record(record), metrics["flows"]["flow1"]
    assert (ended["finished"], ended["cycles_planned"]) == (False, 1000)
    assert ended["cycles_finished"] == len(sessions.of(events, "cycle")) > 0
    assert ended["requests_finished"] == len(sessions.finished_requests(events))
    assert 0 < ended["window_s"][1] < 30 and ended["goodput_bps"] > 0
    assert 0 < ended["service_s"] <= ended["window_s"][1]
    assert (metrics["kinds"]["web"]["finished_sessions"], metrics["kinds"]["web"]["sessions"]) == (0, 1)
    assert not [check for check in metrics["checks"] if "iperf3" in check["name"]]
    assert f"did not finish: {ended['cycles_finished']} of 1000 cycles in " in metrics["remarks"][0]


def test_a_web_flow_without_a_report_has_no_check_of_iperf3(tmp_path: Path) -> None:
    """Its run failed before it started."""
    scenario = chain(flows=[{**ENDS, "start": 1}])
    (tmp_path / "scenario.json").write_text(scenario.to_json())
    failed = [check["name"] for check in analyse_run(tmp_path)["checks"] if not check["ok"]]
    assert "flow1 report" in failed and not [name for name in failed if "iperf3" in name]


def test_a_think_time_that_the_run_s_end_interrupts_is_no_service() -> None:
    events = [{"event": "begin", "t_s": 0.0}, {"event": "cycle", "t_s": 2.0, "cycle": 1, "began_s": 0.0}]
    assert sessions.outcome(events, planned=3, seconds=5.0)["service_s"] == 2.0
    assert sessions.outcome(events, planned=1, seconds=5.0)["service_s"] == 5.0, "the last cycle is followed by no think time"


@needs_nginx
def test_a_request_that_the_end_of_the_client_interrupts_is_unfinished(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 60, distributions=quick(tmp_path))
    record = plan.report.with_name("flow1-requests.jsonl")
    KIND.receiver(plan)  # draws the exchanges
    with socket.create_server((plan.target, plan.port)), subprocess.Popen(KIND.sender(plan, 0).argv) as client:
        wait_until(lambda: record.exists() and '"event": "issue"' in record.read_text(), "a request was issued")
        time.sleep(0.3)
        client.send_signal(signal.SIGTERM)
    events = sessions.read_record(record)
    assert [event["error"] for event in sessions.of(events, "request")] == ["unfinished"]
    assert sessions.finished_requests(events) == []
