"""The traffic kind `transfer`: the completion time and the counts of finished and unfinished transfers."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.flows import Flow
from testbed.programs import BUILT
from testbed.runs.run import run_scenario
from testbed.tests.running import Background, chain, free_port, needs_runs, nothing_left, process_of, run_json, wait_until
from traffic import kind_named
from traffic.shared.kind import FlowPlan
from traffic.transfer import PROGRAM

SIZE = 100_000
FLOW = {"from": "sta1", "to": "sta2", "traffic": "transfer", "size": SIZE}
ENDS = {"source": "127.0.0.1", "target": "127.0.0.1"}


@pytest.fixture
def transferred(tmp_path: Path) -> Callable[..., dict]:
    """The report of a transfer over loopback."""

    def run(size: int, seconds: float, *, port_sent_to: int | None = None) -> dict:
        port = free_port()
        kind = kind_named("transfer")
        keys = Flow.model_validate({**FLOW, "size": size}).own_keys()
        plan = FlowPlan("flow1", keys, **ENDS, port=port, seconds=seconds, seed=1, report=tmp_path / "flow1.json", log=tmp_path)
        sender_plan = FlowPlan(**{**vars(plan), "port": port_sent_to or port})
        with subprocess.Popen(kind.receiver(plan).argv) as receiver:
            wait_until(lambda: f":{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text(), "it listens")
            done = subprocess.run(kind.sender(sender_plan, receiver.pid).argv, timeout=60)
            time.sleep(0.2)
            receiver.terminate()
        assert (done.returncode, receiver.returncode) == (0, 0)
        return json.loads(kind.report(plan))

    return run


def test_a_transfer_finishes_when_the_last_byte_is_read(transferred):
    report = transferred(1_000_000, 1.0)
    outcome = report["outcome"]
    assert (outcome["finished"], outcome["transferred_bytes"]) == (True, 1_000_000)
    assert 0 < outcome["completion_s"] < 1.0
    assert report["end"]["sum_received"] == {"bytes": 1_000_000, "seconds": outcome["completion_s"]}
    assert report["end"]["sum_sent"]["bytes"] == 1_000_000
    assert kind_named("transfer").remark(report) is None


def test_one_byte_is_a_transfer(transferred):
    assert transferred(1, 0.3)["outcome"]["finished"]


def test_a_transfer_that_does_not_finish_has_the_bytes_that_were_read_in_time(transferred):
    """10 GB in 0.3 s are 33 GB/s, more than one connection of loopback carries."""
    report = transferred(10_000_000_000, 0.3)
    outcome = report["outcome"]
    assert (outcome["finished"], outcome["completion_s"]) == (False, None)
    assert 0 < outcome["transferred_bytes"] <= report["end"]["sum_received"]["bytes"] <= report["end"]["sum_sent"]["bytes"]
    remark = kind_named("transfer").remark(report)
    assert remark == f"did not finish: {outcome['transferred_bytes']} of 10000000000 bytes in 0.3 s"


def test_ends_that_never_meet_transfer_nothing(transferred):
    report = transferred(SIZE, 1.2, port_sent_to=free_port())
    assert (report["manet"]["connected"], report["manet"]["tries"] >= 2) == (False, True)
    assert "refused" in report["manet"]["remark"]
    assert (report["outcome"]["finished"], report["outcome"]["transferred_bytes"]) == (False, 0)
    assert report["start"]["connected"] == []


def test_a_lost_connection_is_a_remark_and_not_opened_again(tmp_path):
    accepted = []

    def reset(listener: socket.socket) -> None:
        while True:
            try:
                sock, _address = listener.accept()
            except OSError:
                return
            accepted.append(sock.recv(100))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()

    out = tmp_path / "sent.json"
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=reset, args=(listener,), daemon=True).start()
            argv = [sys.executable, PROGRAM, "send", "--source", "127.0.0.1", "--to", "127.0.0.1"]
            argv += ["--port", listener.getsockname()[1], "--receiver", os.getpid(), "--size", 10**9, "--seconds", 0.8]
            subprocess.run([str(word) for word in [*argv, "--out", out]], check=True, timeout=60)
            listener.shutdown(socket.SHUT_RDWR)
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    sent = json.loads(out.read_text())
    assert (sent["connected"], len(accepted)) == (True, 1)
    assert sent["remark"]


def test_the_size_has_bounds():
    for size in (0, 10_000_000_001):
        with pytest.raises(ValueError, match="size"):
            Flow.model_validate({**FLOW, "size": size})


@pytest.mark.root
@needs_runs
def test_a_transfer_in_a_run_finishes_and_is_measured(tmp_path: Path) -> None:
    """100 kB in 3 s at over 1 Mbit/s of TCP over one hop; its own check compares its bytes with the captures'."""
    result = run_scenario(chain(duration=3, flows=[FLOW]), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    flow = metrics["flows"]["flow1"]
    assert (flow["finished"], flow["transferred_bytes"]) == (True, SIZE)
    assert 0.3 < flow["completion_s"] < 3  # 0.4 s at the channel's 2 Mbit/s
    assert flow["iperf3_bps"] == pytest.approx(SIZE * 8 / flow["completion_s"])
    assert flow["goodput_bps"] == flow["acked_bps"] == pytest.approx(SIZE * 8 / 3)
    assert "remarks" not in metrics
    assert run_json(tmp_path / "run")["tcp"]["flow1"].startswith("newreno")


@pytest.mark.root
@needs_runs
def test_an_unfinished_transfer_and_one_without_a_path_are_no_failure(tmp_path: Path) -> None:
    flows = [{**FLOW, "size": "100000000 B"}, {**FLOW, "to": "sta3"}]
    places = [[0, 0], [200, 0], [2000, 0]]
    scenario = chain(hops=None, topology="positions", positions=places, routing="none", flows=flows)
    result = run_scenario(scenario, 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    carried, nothing = metrics["flows"]["flow1"], metrics["flows"]["flow2"]
    assert (carried["finished"], carried["completion_s"]) == (False, None)
    assert 50_000 < carried["transferred_bytes"] < 500_000  # 2 s at 2 Mbit/s
    assert (nothing["finished"], nothing["transferred_bytes"], nothing["acked_bps"]) == (False, 0, 0.0)
    unfinished, apart = metrics["remarks"]
    assert unfinished.startswith(
        f"flow1 from sta1 to sta2 did not finish: {carried['transferred_bytes']} of 100000000 bytes in 2 s"
    )
    assert apart.startswith("flow2 from sta1 to sta3 never connected")


@pytest.mark.root
@needs_runs
@pytest.mark.parametrize(("verb", "end"), [("send", "sender"), ("receive", "receiver")])
def test_a_killed_end_fails_the_run(tmp_path: Path, verb: str, end: str) -> None:
    run = Background(chain(duration=20, flows=[{**FLOW, "size": 10**9}]), tmp_path / "run").at("traffic", 0.1)
    os.kill(process_of(tmp_path / "run", f"transfer.py {verb}"), signal.SIGKILL)
    result = run.result()
    assert result.status == "failed"
    assert f"flow1-{end}" in result.error and "SIGKILL" in result.error
    assert nothing_left(tmp_path / "run")
