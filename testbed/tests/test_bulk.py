"""The program that starts iperf3 again until its ends meet, with a stand-in for iperf3."""

import json
import os
import signal
import subprocess
import sys

import pytest

from analysis.captures.iperf import read_report
from analysis.metrics.analyse import analyse_run
from testbed.errors import RunError
from testbed.programs import BUILT
from testbed.runs.run import run_scenario
from testbed.stages.traffic import RunningFlow, finish_flow
from testbed.tests.running import chain, needs_runs
from traffic.bulk import CLIENT, SERVER, with_servers_part
from traffic.programs import iperf_client
from traffic.shared.kind import FlowPlan

WHOLE = {"sum_sent": {"bytes": 1_000_000, "end": 10.0}}
PART = [{"sum": {"bytes": 250_000, "end": second}} for second in (1, 2, 3, 4)]
NOT_BEGUN = {"error": "unable to connect stream: No route to host", "end": {}}
UNREACHED = {"error": "unable to connect to server - server may have stopped running or use a different port: No route to host"}
STAND_IN = """
import json, sys
from pathlib import Path
answers, calls = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
with calls.open("a") as file: file.write(sys.argv[-1] + "\\n")
answer = answers[min(len(calls.read_text().split()), len(answers)) - 1]
print(json.dumps(answer)); sys.exit(1 if "error" in answer else 0)
"""


@pytest.fixture
def bulk(tmp_path):
    """Status, report, and the seconds that each test was to last; `server_requests` counts the requests for a new server."""

    def run(answers: list[dict], seconds: float) -> tuple[int, dict, list[int]]:
        (tmp_path / "answers.json").write_text(json.dumps(answers))
        (tmp_path / "iperf.py").write_text(STAND_IN)
        command = [sys.executable, tmp_path / "iperf.py", tmp_path / "answers.json", tmp_path / "calls"]
        argv = [sys.executable, CLIENT, "--seconds", seconds, "--report", tmp_path / "report.json", "--receiver", os.getpid()]
        run.server_requests = 0
        usual = signal.signal(signal.SIGHUP, lambda *_: setattr(run, "server_requests", run.server_requests + 1))
        try:
            status = subprocess.run([str(word) for word in [*argv, "--", *command]], timeout=60).returncode
        finally:
            signal.signal(signal.SIGHUP, usual)
        lengths = [int(word) for word in (tmp_path / "calls").read_text().split()]
        return status, json.loads((tmp_path / "report.json").read_text()), lengths

    return run


def test_a_flow_that_connects_late_sends_for_the_remaining_time(bulk):
    status, report, lengths = bulk([UNREACHED, UNREACHED, UNREACHED, {"end": {}}], 30)
    assert (status, report["manet"]["tries"], report["manet"]["connected"]) == (0, 4, True)
    assert lengths[0] == 30 and lengths[-1] < 30
    assert "error" not in report and bulk.server_requests == 0


def test_ends_that_never_meet_carry_nothing_and_fail_nothing(bulk):
    status, report, lengths = bulk([UNREACHED], 2)
    assert (status, report["manet"]["connected"]) == (0, False)
    assert report["manet"]["tries"] == len(lengths) >= 1
    assert "error" not in report


def test_a_test_that_did_not_begin_to_send_is_begun_again_with_a_new_server(bulk):
    status, report, lengths = bulk([NOT_BEGUN, {"end": WHOLE}], 10)
    assert (status, report["manet"]["tries"], report["manet"]["connected"], bulk.server_requests) == (0, 2, True, 1)
    assert len(lengths) == 2 and "error" not in report


def test_losses_after_the_end_of_sending_are_a_remark(bulk):
    status, report, lengths = bulk([{"error": "unable to receive results", "end": WHOLE}], 10)
    assert (status, report["manet"]["remark"], len(lengths)) == (0, "unable to receive results", 1)
    assert report["manet"]["connected"] and "error" not in report


def test_a_client_without_a_report_gets_the_report_of_its_server(tmp_path):
    """A partition at the end of half an hour on a loaded host: both reports of HV's pattern 1 at 2 m/s."""
    start = {
        "cookie": "c",
        "connected": [
            {"socket": 5, "local_host": "10.0.0.2", "local_port": 5201, "remote_host": "10.0.0.1", "remote_port": 40501}
        ],
        "test_start": {"protocol": "TCP", "duration": 2},
        "timestamp": {"timesecs": 7},
    }
    seconds = [{"sum": {"start": n, "end": n + 1, "bytes": 1000}} for n in range(3)]
    tried = {"tries": 1, "first_try_s": 6.5, "connected": True, "remark": "iperf3 wrote no report"}
    twice = [*seconds[:2], seconds[1], seconds[2]]  # iperf3's last interval before a client's end is there twice
    joined = with_servers_part({"manet": tried}, [{"start": start, "intervals": twice}])
    (tmp_path / "flow1.json").write_text(joined or "")
    report = read_report(tmp_path / "flow1.json")
    assert (report.connection.source, report.connection.source_port, report.connection.destination_port) == (
        "10.0.0.1",
        40501,
        5201,
    )
    assert (report.received_bytes, report.error, report.connected) == (2000, None, True)


@pytest.mark.parametrize(
    ("remark", "received"),
    [(None, {"bytes": 5000, "seconds": 4.5}), ("the client has terminated", {"bytes": 3000, "seconds": 3})],
)
def test_the_receiver_s_count_is_the_exchanged_one_else_that_of_its_server(remark, received):
    """Set-up over a slow path: the client was interrupted 3 s after the server had begun to count, and 4 s were to be sent."""
    start = {"cookie": "c", "test_start": {"duration": 4}}
    served = {"start": start, "intervals": [{"sum": {"start": n, "end": n + 1, "bytes": 1000}} for n in range(3)]}
    end = {"sum_received": {"bytes": 5000, "seconds": 4.5}}
    joined = with_servers_part({"start": start, "end": end, "manet": {"connected": True, "remark": remark}}, [served])
    assert json.loads(joined)["end"]["sum_received"] == received
    assert json.loads(joined)["server_output_json"] == served


def test_a_client_that_sends_and_cannot_be_brought_to_report_has_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(iperf_client, "CLOSING_S", 0.5)
    monkeypatch.setattr(iperf_client, "KILLED_AFTER_S", 0.5)
    deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    command = [sys.executable, "-c", f"{deaf}; open('/dev/null', 'wb', 0).write(bytes(99999)); time.sleep(60)"]
    tried = iperf_client._try(iperf_client.Iperf(), command, 1.0)
    assert (tried.sent, tried.sent_to_its_end, tried.error) == (True, True, "iperf3 wrote no report")


def test_a_client_that_could_write_a_part_of_its_first_block_only_is_not_interrupted(monkeypatch):
    """A path that breaks after the connection: no ACK makes room for more."""
    monkeypatch.setattr(iperf_client, "SETUP_S", 0.1)
    sends = "open('/dev/null', 'wb', 0).write(bytes(45090))"
    command = [sys.executable, "-c", f"import time; {sends}; time.sleep(1.5); print('{{}}')"]
    assert not iperf_client._try(iperf_client.Iperf(), command, 2.0).interrupted


def test_a_client_that_closes_gets_a_small_share_of_a_core():
    """iperf3 calls select() without a pause until all it has sent is through."""
    sends = "open('/dev/null', 'wb', 0).write(bytes(99999))"
    spins = "while time.monotonic() < began + 4.5: pass"
    says = "print(json.dumps({'cpu_s': time.process_time()}))"
    command = [sys.executable, "-c", f"import json, time; {sends}; began = time.monotonic()\n{spins}\n{says}"]
    assert iperf_client._try(iperf_client.Iperf(), command, 1.0).report["cpu_s"] < 2.5  # of 4.5 s, 1.5 of them before it closes


def test_a_flow_that_ended_while_it_sent_is_an_error_and_not_tried_again(bulk):
    gone = {"error": "control socket has closed unexpectedly", "intervals": PART, "end": {}}
    status, report, lengths = bulk([gone, {"end": WHOLE}], 10)
    assert (status, report["error"], len(lengths)) == (0, gone["error"], 1)


@pytest.mark.parametrize("after_s", [0, 1])
def test_a_client_that_was_killed_is_an_error_and_not_begun_again(tmp_path, after_s):
    """Its data are lost: a second test of the remaining time would be reported as the whole."""
    sends = f"open('/dev/null', 'wb', 0).write(bytes(99999)); time.sleep({after_s})"
    dies = f"import os, sys, time; open(sys.argv[1], 'a').write('x'); {sends}; os.kill(os.getpid(), 9)"
    with subprocess.Popen(["sleep", "60"]) as receiver:
        argv = [sys.executable, CLIENT, "--seconds", 10, "--report", tmp_path / "report.json", "--receiver", receiver.pid]
        argv += ["--", sys.executable, "-c", dies, tmp_path / "calls"]
        status = subprocess.run([str(word) for word in argv], timeout=60).returncode
        receiver.kill()
    assert status == 0
    assert (tmp_path / "calls").read_text() == "x"
    assert json.loads((tmp_path / "report.json").read_text())["error"] == "iperf3 wrote no report (killed by SIGKILL)"


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_flow_that_a_signal_ended_near_its_end_is_an_error_too(bulk, who):
    """SIGTERM to iperf3 at either end: it reports what it has, half a second short of the flow's time."""
    ended = {"error": f"interrupt - the {who} has terminated", "end": {"sum_sent": {"bytes": 1_000_000, "end": 9.5}}}
    status, report, lengths = bulk([ended, {"end": WHOLE}], 10)
    assert (status, report["error"], len(lengths)) == (0, ended["error"], 1)


def test_a_receiver_with_a_killed_server_ends_with_a_message(tmp_path):
    argv = [sys.executable, SERVER, "--report", tmp_path / "served.json", "--"]
    argv += [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "the server, iperf3, was killed by SIGKILL\n")


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_a_flow_partitioned_to_its_end_completes_with_the_delivered_data(tmp_path):
    """The control connection cannot say goodbye either, for longer than anybody waits."""
    cut = {"at": 3, "link": ["sta1", "sta2"], "error_rate": 1.0}
    result = run_scenario(chain(duration=6, events=[cut]), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    flow = metrics["flows"]["flow1"]
    by_second = flow["acked_bps_by_second"]
    assert by_second[1] > 500_000 and sum(by_second[4:]) == 0
    assert flow["goodput_bps"] == pytest.approx(flow["delivered_bps"], rel=0.05)
    report = json.loads((tmp_path / "run" / "traffic" / "flow1.json").read_text())
    assert report["manet"]["remark"]


def test_a_report_that_another_program_damaged_is_an_error_of_one_line_with_its_folder(tmp_path):
    flow = chain(flows=[{"from": "sta1", "to": "sta2"}]).flows[0]
    ends = {"source": "10.0.0.1", "target": "10.0.0.2", "port": 5201}
    plan = FlowPlan("flow1", flow.own_keys(), **ends, seconds=7.0, seed=1, report=tmp_path / "flow1.json", log=tmp_path)
    plan.report.write_text("{")
    with pytest.raises(RunError, match=rf"^{tmp_path}: a file of flow1 is not JSON \(.*\); who changed it\? Run it again$"):
        finish_flow(RunningFlow(plan, flow, None, None))
