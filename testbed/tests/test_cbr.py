"""The program that sends and receives trains of datagrams: the times of sending, and the counts of refused datagrams."""

import argparse
import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from testbed.programs import BUILT
from testbed.runs.run import run_scenario
from testbed.tests.running import chain, needs_runs, run_json
from traffic.programs import datagrams
from traffic.shared.datagrams import DATAGRAMS

PACKET_BYTES = 512
STREAM = {"from": "sta1", "to": "sta2", "traffic": "cbr", "rate": 100_000, "bytes": PACKET_BYTES}


@pytest.fixture
def receiver():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(5)
        yield sock


def options(receiver: socket.socket, packets: int = 1) -> argparse.Namespace:
    """Ten trains, one a millisecond."""
    ends = {"source": "127.0.0.1", "to": "127.0.0.1", "port": receiver.getsockname()[1]}
    return argparse.Namespace(**ends, every=0.001, packets=packets, bytes=PACKET_BYTES, sizes=None, seconds=0.0105, dscp=None)


def test_a_flow_without_a_route_at_its_start_sends_once_there_is_one(receiver, monkeypatch):
    class Unreachable(socket.socket):
        tries = 0

        def connect(self, address):
            Unreachable.tries += 1
            if Unreachable.tries <= 3:
                raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))
            super().connect(address)

    monkeypatch.setattr(datagrams.socket, "socket", Unreachable)
    counts = datagrams.send(options(receiver))
    assert (counts["sent"], counts["refused"]) == (7, 3)
    assert counts["port"] > 0
    first = receiver.recv(PACKET_BYTES)
    assert datagrams.STAMP.unpack_from(first)[1] == 3  # datagram k is number k, whatever was refused before it


class Clock:
    """In place of the module `time`: it passes in sleep() only."""

    now_ns = 0

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)

    def time_ns(self) -> int:
        return self.now_ns

    def monotonic(self) -> float:
        return self.now_ns / 1e9

    time = monotonic


def test_the_datagrams_of_a_train_leave_together_and_are_counted_one_by_one(receiver, monkeypatch):
    monkeypatch.setattr(datagrams, "time", Clock())
    counts = datagrams.send(options(receiver, packets=3))
    assert (counts["sent"], counts["refused"]) == (30, 0)
    stamps = [datagrams.STAMP.unpack_from(receiver.recv(PACKET_BYTES)) for _ in range(30)]
    assert stamps == [(number // 3 * 1_000_000, number) for number in range(30)]


def test_a_flow_that_never_has_a_route_ends_with_status_0(tmp_path):
    """From the loopback address no other host can be reached (ip(7), EINVAL)."""
    argv = [sys.executable, DATAGRAMS, "send", "--source", "127.0.0.1", "--to", "192.0.2.1", "--port", "9", "--every", "0.004"]
    argv += ["--packets", "1", "--bytes", "512", "--seconds", "0.05", "--out", tmp_path / "sent.json"]
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"sent": 0' in (tmp_path / "sent.json").read_text()


@pytest.mark.root
@needs_runs
@pytest.mark.parametrize("routing", ["none", {"protocol": "olsr", "settle": 0}], ids=["none", "olsr"])
def test_a_stream_without_a_route_carries_nothing_and_fails_nothing(tmp_path: Path, routing: object) -> None:
    """sta3 hears nobody: OLSR has no route to it, with `none` nobody answers for its address."""
    streams = [STREAM, {**STREAM, "to": "sta3"}]
    places = [[0, 0], [200, 0], [2000, 0]]
    scenario = chain(hops=None, topology="positions", positions=places, routing=routing, flows=streams)
    result = run_scenario(scenario, 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    carried, nothing = metrics["flows"]["flow1"], metrics["flows"]["flow2"]
    assert carried["delivered_bps"] > 80_000 or routing != "none"  # OLSR is not through with its own before the flow is
    assert (nothing["delivered_bps"], nothing["goodput_bps"], nothing["delivery"], nothing["loss"]) == (0.0, 0.0, 0.0, 1.0)
    assert nothing["sent"] == carried["sent"] > 0
    assert nothing["silence_s"] == 2.0
    assert run_json(tmp_path / "run")["status"] == "complete"
