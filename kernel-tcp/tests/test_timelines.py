"""Tahoe, classic Reno, NewReno and SACK on scripted losses: the order of sendings and the windows, event by event.

The scripts are those of Fall & Floyd 1996 (section 5: segment 14; 14 and 28; 14, 24, 26 and 28 of the fourth slow
start round, cwnd 15 at the first loss), and one that loses a retransmission. `timelines/ALGORITHM.toml` holds what is
expected and why, `timelines/ns2.csv` what ns-2.35 does (remade by timelines/remake_ns2.py).

UPDATE=1 prints what was seen in the form of the tables. A trial in which the host came between is repeated.
"""

from __future__ import annotations

import csv
import functools
import itertools
import os
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from tcplab import DEADLINE_S, MSS, stations
from timeline import Disturbed, Row, of_capture, parse, read_samples, render, retransmissions

TIMELINES = Path(__file__).resolve().parent / "timelines"
PERIOD = tomllib.loads((TIMELINES.parents[1] / "profiles" / "period.toml").read_text())
ALGORITHMS = ["tahoe", "reno", "newreno", "sack"]
SEGMENTS = 43
RACK_ALONE = (6, 17)  # timelines/sack.toml
TRIALS = 3
# Destination port and lost sendings, `segment:transmission`.
SCRIPTS = {
    "one": (5201, ["14:1"]),
    "two": (5202, ["14:1", "28:1"]),
    "four": (5203, ["14:1", "24:1", "26:1", "28:1"]),
    "again": (5204, ["14:1", "14:2"]),
}
# A window that never bounds; one segment first, as in 1996.
SETTINGS = {"window_segments": 64, "initial_window_segments": 1, "rto_min_us": 200000, "delayed_ack": False}
# Round trip 60 ms, so Linux waits 260 ms or more: the ACKs of two more rounds are over 100 ms before a timer fires.
RELAY = ["--delay-ms", "30", "--lose", ",".join(f"{port}/{loss}" for port, losses in SCRIPTS.values() for loss in losses)]

SERVE = """
import socket, sys, threading
def read(server):
    connection, _ = server.accept()
    while connection.recv(65536):
        pass
servers = [socket.create_server(('10.9.0.2', int(port))) for port in sys.argv[1:]]
threads = [threading.Thread(target=read, args=(server,)) for server in servers]
for thread in threads:
    thread.start()
print('listening')
"""
# Ends when everything is acknowledged: the kernel samples established connections only.
SEND = """
import fcntl, socket, struct, sys, termios, time
sockets = [socket.create_connection(('10.9.0.2', int(port))) for port in sys.argv[2:]]
for s in sockets:
    s.sendall(bytes(int(sys.argv[1])))
for s in sockets:
    while struct.unpack('i', fcntl.ioctl(s, termios.TIOCOUTQ, bytes(4)))[0]:
        time.sleep(0.05)
"""


def version(kernel: str) -> tuple[int, int]:
    major, minor = re.match(r"(\d+)\.(\d+)", kernel).groups()
    return int(major), int(minor)


def algorithm_settings(name: str) -> dict:
    return {**SETTINGS, "algorithm": "newreno" if name == "sack" else name}


def set_sysctls(lab, sack: bool) -> None:
    """The period profile's, those that this kernel has; SACK as asked for."""
    values = {key: str(value) for key, value in PERIOD["sysctl"].items()} | {"net.ipv4.tcp_sack": str(int(sack))}
    for station in (lab.a, lab.b):
        for key, value in values.items():
            station.start("sysctl", "-qw", f"{key}={value}", in_cgroup=False).wait(DEADLINE_S)


def trial(folder: Path, cgroup_root: Path, algorithm: str) -> dict[str, list[Row] | Disturbed]:
    """All four scripts at once, each a connection of its own."""
    ports = [str(port) for port, _ in SCRIPTS.values()]
    with stations(folder, cgroup_root, RELAY, quickack=True) as lab:
        set_sysctls(lab, sack=algorithm == "sack")
        with lab.manet_tcp("tcp.csv", both=algorithm_settings(algorithm)), lab.capture(lab.a) as packets:
            server = lab.b.python(SERVE, *ports)
            lab.ready_line(server, "listening")
            client = lab.a.python(SEND, str(SEGMENTS * MSS), *ports)
            _, said = client.communicate(timeout=DEADLINE_S)
            assert client.returncode == 0, said
            server.wait(DEADLINE_S)
        seen: dict[str, list[Row] | Disturbed] = {}
        for script, (port, _) in SCRIPTS.items():
            try:
                seen[script] = of_capture(packets, read_samples(folder / "tcp.csv", port), port, SEGMENTS)
            except Disturbed as disturbance:
                seen[script] = disturbance
        return seen


@pytest.fixture(scope="module")
def trials(tmp_path_factory, cgroup_root):
    """trials(algorithm, number): what that trial saw; run when first asked for."""

    @functools.cache
    def run(algorithm: str, number: int):
        return trial(tmp_path_factory.mktemp(f"{algorithm}{number}"), cgroup_root, algorithm)

    return run


@functools.cache
def expected(algorithm: str) -> dict[str, dict]:
    table = tomllib.loads((TIMELINES / f"{algorithm}.toml").read_text())
    start = parse(tomllib.loads((TIMELINES / "start.toml").read_text())["timeline"])
    return {script: {**entry, "rows": start + parse(entry["timeline"])} for script, entry in table.items()}


@functools.cache
def ns2() -> dict[tuple[str, str], list[Row]]:
    """(algorithm, script): rows without windows (ns-2's cwnd_ is a fraction, and inflation is kept apart)."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    with (TIMELINES / "ns2.csv").open() as file:
        for row in csv.DictReader(file):
            found[row["algorithm"], row["script"]].append(Row(row["event"], tuple(row["sends"].split())))
    return found


def before_the_first_loss_shows(rows: list[Row]) -> list[tuple]:
    return [(row.event, row.sends) for row in itertools.takewhile(lambda row: not row.event.startswith("dup"), rows)]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_retransmissions_are_ns2s_or_it_is_said_why_not(algorithm, script):
    entry, theirs = expected(algorithm)[script], ns2()[algorithm, script]
    assert before_the_first_loss_shows(entry["rows"]) == before_the_first_loss_shows(theirs)
    if entry["ns2"] == "same":
        assert retransmissions(entry["rows"]) == retransmissions(theirs)
    else:
        assert entry["ns2"].startswith("differs: ")
        assert retransmissions(entry["rows"]) != retransmissions(theirs)


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_sendings_and_windows_are_those_of_the_timeline(trials, features, algorithm, script):
    if algorithm == "sack" and version(features["kernel"]) < RACK_ALONE:
        pytest.skip(f"Linux {features['kernel']} goes by RFC 6675 with tcp_recovery=0; the timeline is RACK's, of 6.17 and newer")
    seen = []
    for number in range(TRIALS):
        rows = trials(algorithm, number)[script]
        if os.environ.get("UPDATE"):
            sys.stderr.write(f"\n[{algorithm} {script}]\n{rows if isinstance(rows, Disturbed) else render(rows)}\n")
            return
        if rows == expected(algorithm)[script]["rows"]:
            return
        seen.append(f"trial {number + 1}: {rows}" if isinstance(rows, Disturbed) else f"trial {number + 1}:\n{render(rows)}")
    pytest.fail("expected\n" + render(expected(algorithm)[script]["rows"]) + "\nseen\n" + "\n".join(seen), pytrace=False)
