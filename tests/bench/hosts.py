"""How far apart two machines are, beside the lookahead of a DCF: `python -m tests.bench hosts` (as root; docs/scaling.md).

Two network namespaces with a veth pair between them, and a VXLAN tunnel over it, stand for two hosts of one rack. They have the
path through the kernels of both hosts, without cable, switch and card: a lower bound. A datagram of 64 bytes goes there and back
by a process on each side, by ones that sleep in recv(2) and by ones that poll. Beside them the wake-up of a sleeping process: the
lateness of timers of 1 ms, and a byte through a pipe there and back. All run at the lowest real-time priority (SCHED_FIFO), as on
a machine without other work; a second each.
"""

import os
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from testbed.errors import UsageError
from testbed.host.namespace import within
from tests.bench import Table

SAMPLES, FIRST = 3000, 200  # and those before, which are not counted
SIFS_US, SLOT_US = 10, 20  # 802.11 DSSS at 2.4 GHz (IEEE 802.11-2020, table 15-6); 9 us slots with OFDM
PAYLOAD = 64
PORT = 9


def measure() -> Table:
    table = Table(
        f"Round trips, us, beside a lookahead of SIFS {SIFS_US} us and slot {SLOT_US} us",
        ["path", "median", "p99", "p99.9", "median / SIFS"],
        "none: this says what one network over several hosts would cost",
    )
    if os.geteuid() != 0:
        raise UsageError("hosts: not root; network namespaces need it: run it with sudo")
    with _hosts() as (ours, theirs, addresses), _first_in_line():
        rows: list[tuple[str, list[float]]] = [("timer of 1 ms, late by", _timers()), ("pipe, there and back", _pipe())]
        for name, address in addresses.items():
            for polls in (False, True):
                how = "both poll" if polls else "both sleep"
                rows.append((f"UDP over {name}, {how}", _ping_pong(ours, theirs, address, polls)))
    for name, values in rows:
        values.sort()
        median = statistics.median(values)
        table.rows.append([name, median, _percentile(values, 0.99), _percentile(values, 0.999), median / SIFS_US])
    return table


def _percentile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]


@contextmanager
def _first_in_line() -> Iterator[None]:
    """Real-time priority for this process and the children that it starts in the block."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _timers() -> list[float]:
    late = []
    for _ in range(SAMPLES // 3):
        due_ns = time.monotonic_ns() + 1_000_000
        time.sleep(0.001)
        late.append((time.monotonic_ns() - due_ns) / 1e3)
    return late


def _pipe() -> list[float]:
    there, back = os.pipe(), os.pipe()

    def answer() -> None:
        while byte := os.read(there[0], 1):
            os.write(back[1], byte)

    def ask() -> None:
        os.write(there[1], b"x")
        os.read(back[0], 1)

    with _child(answer, closing=[there[1]]):
        values = _timed(ask)
        os.close(there[1])
    for descriptor in (there[0], *back):
        os.close(descriptor)
    return values


def _ping_pong(ours: str, theirs: str, addresses: tuple[str, str], polls: bool) -> list[float]:
    near, far = addresses
    answering, asking = _socket(theirs, far), _socket(ours, near)
    for each in (answering, asking):
        each.setblocking(not polls)

    def answer() -> None:
        while True:
            data, source = _received(answering)
            if not data:
                return
            answering.sendto(data, source)

    def ask() -> None:
        asking.sendto(b"x" * PAYLOAD, (far, PORT))
        _received(asking)

    with answering, asking, _child(answer):
        values = _timed(ask)
        asking.sendto(b"", (far, PORT))
    return values


def _received(each: socket.socket) -> tuple[bytes, tuple[str, int]]:
    while True:
        with suppress(BlockingIOError):
            data, source = each.recvfrom(2 * PAYLOAD)
            return data, source


def _timed(once: Callable[[], None]) -> list[float]:
    values = []
    for _ in range(FIRST + SAMPLES):
        began_ns = time.monotonic_ns()
        once()
        values.append((time.monotonic_ns() - began_ns) / 1e3)
    return values[FIRST:]


@contextmanager
def _child(body: Callable[[], None], closing: list[int] | None = None) -> Iterator[None]:
    """A process that carries out `body` and ends; waited for at the end of the block."""
    pid = os.fork()
    if pid == 0:
        try:
            for descriptor in closing or []:
                os.close(descriptor)
            body()
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.waitpid(pid, 0)


def _socket(namespace: str, address: str) -> socket.socket:
    """A UDP socket in a network namespace."""

    def made() -> socket.socket:
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        bound.bind((address, PORT))
        return bound

    return within(namespace, made)


@contextmanager
def _hosts() -> Iterator[tuple[str, str, dict[str, tuple[str, str]]]]:
    """Two namespaces, held by processes that sleep, with a veth pair and a VXLAN tunnel over it; their addresses by path."""
    holders = [subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) for _ in range(2)]
    try:
        home = os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116
        while any(os.stat(f"/proc/{each.pid}/ns/net").st_ino == home for each in holders):  # noqa: PTH116
            time.sleep(0.01)
        pids = [str(each.pid) for each in holders]
        name = f"hosts{os.getpid()}"[:14]
        _ip(None, "link", "add", name, "netns", pids[0], "type", "veth", "peer", "name", name, "netns", pids[1])
        for number, pid in enumerate(pids, 1):
            _ip(pid, "address", "add", f"192.0.2.{number}/24", "dev", name)
            _ip(pid, "link", "set", name, "up")
            remote = f"192.0.2.{3 - number}"
            _ip(pid, "link", "add", "vxlan1", "type", "vxlan", "id", "1", "dstport", "4789", "remote", remote, "dev", name)
            _ip(pid, "address", "add", f"198.51.100.{number}/24", "dev", "vxlan1")
            _ip(pid, "link", "set", "vxlan1", "up")
        ours, theirs = (f"/proc/{pid}/ns/net" for pid in pids)
        yield ours, theirs, {"veth": ("192.0.2.1", "192.0.2.2"), "VXLAN over veth": ("198.51.100.1", "198.51.100.2")}
    finally:
        for each in holders:
            each.kill()
            each.wait()


def _ip(pid: str | None, *words: str) -> None:
    inside = ["nsenter", f"--net=/proc/{pid}/ns/net"] if pid else []
    subprocess.run([*inside, "ip", *words], check=True)
