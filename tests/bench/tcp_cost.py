"""The cost of our own congestion controls: CPU per ACK over loopback at full speed, against the kernel's own reno.

One process on one core sends to itself in a network namespace: segments of 1460 bytes that no layer joins, an ACK for
each, a window of 64 segments. What is counted is the process's CPU time, the packets' processing in its context
included, over the ACKs that its sender took. Bouts of all algorithms alternate; a ratio is of neighbours in time, and
the table has the median of these. `programs`: how long the algorithm's own programs take for an ACK, by the kernel's
count (kernel.bpf_stats_enabled, in a bout of its own). `instructions`: what the verifier walked, of all its programs.
"""

import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from testbed.errors import RunError
from testbed.programs import BUILT
from tests.bench import Table

REFERENCE = "reno"
BOUT_S = 0.25
ROUNDS = 24
CHUNK = bytes(1 << 18)
WINDOW = 64 * 1460
TCP_INFO_SEGS_IN = 140  # offset of tcpi_segs_in in struct tcp_info, include/uapi/linux/tcp.h
SETUP = (
    "mount -t bpf bpf /sys/fs/bpf",
    "ip link set lo mtu 1500 gso_max_segs 1 up",
    "ip route change local 127.0.0.1 dev lo table local quickack 1",
    "sysctl -qw net.ipv4.tcp_sack=0 net.ipv4.tcp_timestamps=0",
)
# TCP-AP paces only where it knows the hops; its rate is then the round trip's, far below what the others reach.
LOADED = {"tahoe": (), "reno": (), "vegas": (), "atcp": (), "tcpap": (), "tcpap, paced": ("hops=1", "rate_kbps=1000000")}


def measure() -> Table:
    inside = ["unshare", "--net", "--mount", sys.executable, "-m", "tests.bench.tcp_cost"]
    done = subprocess.run(inside, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"tcp_cost: {done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}")
    columns = ["algorithm", "CPU us per ACK", "ratio", "quartiles", "Mbit/s", "programs ns per ACK", "instructions"]
    title = f"Congestion controls over loopback, {ROUNDS} bouts of {BOUT_S:g} s each, by turns"
    return Table(title, columns, "ratio under 1.05", json.loads(done.stdout))


def main() -> None:
    """In the namespaces: loads, measures, unloads, prints the rows."""
    for command in SETUP:
        subprocess.run(command.split(), check=True)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    names = {}
    try:
        for number, (label, parameters) in enumerate(LOADED.items()):
            name = f"bench_{number}"
            _loader("load", label.split(",")[0], *parameters, "--name", name)
            names[label] = name
        loaded = {row["name"]: row for row in json.loads(_loader("list", "--json"))["loaded"]}
        of_programs = {label: _programs_ns(name) for label, name in names.items()}
        measured = {f"{REFERENCE} (kernel)": REFERENCE, **names}
        bouts = [{label: _bout(name) for label, name in measured.items()} for _ in range(ROUNDS)]
    finally:
        for name in names.values():
            _loader("unload", name)
    walked = {label: sum(loaded[name]["verified_instructions"].values()) for label, name in names.items()}
    print(json.dumps([[*row, of_programs.get(row[0], ""), walked.get(row[0], "")] for row in _rows(bouts)]))


def _programs_ns(name: str) -> float:
    """Over the ACKs of one bout, for which the kernel counts run times."""
    before = _run_times_ns(name)
    subprocess.run(["sysctl", "-qw", "kernel.bpf_stats_enabled=1"], check=True)
    try:
        acks = _bout(name)[2]
    finally:
        subprocess.run(["sysctl", "-qw", "kernel.bpf_stats_enabled=0"], check=True)
    return (_run_times_ns(name) - before) / acks


def _run_times_ns(name: str) -> int:
    total = 0
    for pin in Path(f"/sys/fs/bpf/manet-tcp/{name}").glob("program-*"):
        shown = subprocess.run(["bpftool", "-j", "prog", "show", "pinned", pin], check=True, capture_output=True, text=True)
        total += json.loads(shown.stdout).get("run_time_ns", 0)
    return total


def _rows(bouts: list[dict[str, tuple[float, float, int]]]) -> list[list[str | float]]:
    first = next(iter(bouts[0]))
    rows: list[list[str | float]] = []
    for label in bouts[0]:
        per_ack = statistics.median(bout[label][0] for bout in bouts)
        low, middle, high = statistics.quantiles((bout[label][0] / bout[first][0] for bout in bouts), n=4)
        rate = statistics.median(bout[label][1] for bout in bouts)
        rows.append([label, per_ack, middle, f"{low:.3f} {high:.3f}", rate])
    return rows


def _loader(*words: str) -> str:
    return subprocess.run([BUILT.kernel_tcp, *words], check=True, capture_output=True, text=True).stdout


def _bout(algorithm: str) -> tuple[float, float, int]:
    """CPU microseconds per ACK, Mbit/s, ACKs."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, WINDOW)
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
    sender.connect(listener.getsockname())
    receiver, _ = listener.accept()
    reading = threading.Thread(target=_read, args=(receiver,))
    reading.start()
    sent = 0
    cpu, start = time.process_time(), time.monotonic()
    while time.monotonic() < start + BOUT_S:
        sent += sender.send(CHUNK)
    sender.shutdown(socket.SHUT_WR)
    reading.join()
    cpu, passed = time.process_time() - cpu, time.monotonic() - start
    acks = struct.unpack_from("=I", sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), TCP_INFO_SEGS_IN)[0]
    for end in (listener, sender, receiver):
        end.close()
    return cpu * 1e6 / acks, sent * 8 / passed / 1e6, acks


def _read(receiver: socket.socket) -> None:
    buffer = bytearray(1 << 18)
    # taken off without being copied
    while receiver.recv_into(buffer, len(buffer), socket.MSG_TRUNC):
        pass


if __name__ == "__main__":
    main()
