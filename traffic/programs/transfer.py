"""A TCP transfer, as a program: `transfer.py send ...` and `transfer.py receive ...`. Standard library only.

The sender connects, again and again until its time is up, and sends `--size` bytes. The receiver closes the connection when it
has read them all: the sender knows then that the transfer has finished, and has sent no FIN that the kernel could count as a
retransmission. At the end of its time the sender signals the receiver (SIGUSR1), which notes the bytes that it has read by then,
and resets a connection that has not finished: nothing is sent after the flow. A lost connection is not opened again.

Times are those of CLOCK_MONOTONIC, the same in all network namespaces.
"""

import argparse
import json
import os
import selectors
import signal
import socket
import struct
import time
from typing import Any

AGAIN_AFTER_S = 0.5
BLOCK_BYTES = 256 << 10
TOTAL_RETRANSMISSIONS = struct.Struct("=100xI")  # <linux/tcp.h>: tcp_info.tcpi_total_retrans


def send(options: argparse.Namespace) -> dict[str, object]:
    """Transfer the bytes within the flow's time, and wait for the end of this time."""
    began_ns, first_try_s = time.monotonic_ns(), time.time()
    deadline = began_ns / 1e9 + options.seconds
    sock, tries, remark = _connection(options, deadline)
    counts: dict[str, object] = {"began_ns": began_ns, "first_try_s": first_try_s, "tries": tries, "connected": sock is not None}
    port = unsent = retransmissions = 0
    finished = False
    if sock is not None:
        port = sock.getsockname()[1]
        unsent, finished, remark = _transfer(sock, options.size, deadline)
    if sock is not None and finished:
        retransmissions = _close(sock)
    time.sleep(max(0.0, deadline - time.monotonic()))
    os.kill(options.receiver, signal.SIGUSR1)
    if sock is not None and not finished:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets
        retransmissions = _close(sock)
    sent_bytes = 0 if sock is None else options.size - unsent
    sent = {"port": port, "bytes": sent_bytes, "retransmissions": retransmissions, "remark": remark}
    return counts | sent


def _connection(options: argparse.Namespace, deadline: float) -> tuple[socket.socket | None, int, str | None]:
    """The connection, if any, the number of tries, and the last error without one."""
    tries, remark = 0, None
    while (left_s := deadline - time.monotonic()) > 0:
        tries += 1
        sock = socket.socket(socket.AF_INET6 if ":" in options.to else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.bind((options.source, 0))
            sock.settimeout(left_s)
            sock.connect((options.to, options.port))
            return sock, tries, None
        except OSError as problem:
            remark = str(problem)
            sock.close()
        time.sleep(min(AGAIN_AFTER_S, max(0.0, deadline - time.monotonic())))
    return None, tries, remark


def _transfer(sock: socket.socket, size: int, deadline: float) -> tuple[int, bool, str | None]:
    """Send until the receiver closes the connection, the time is up or the connection is lost; returns the bytes that the kernel
    has not taken, whether the receiver has all, and the error."""
    block, unsent = memoryview(bytes(BLOCK_BYTES)), size
    try:
        while unsent:
            _wait_at_most(sock, deadline)
            unsent -= sock.send(block[: min(unsent, BLOCK_BYTES)])
        _wait_at_most(sock, deadline)
        return unsent, sock.recv(1) == b"", None
    except TimeoutError as problem:
        lost = problem.errno is not None  # ETIMEDOUT of the kernel, not the flow's deadline
        return unsent, False, str(problem) if lost else None
    except OSError as problem:
        return unsent, False, str(problem)


def _close(sock: socket.socket) -> int:
    """Close the connection; returns its retransmissions."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TOTAL_RETRANSMISSIONS.size)
    sock.close()
    retransmissions: int = TOTAL_RETRANSMISSIONS.unpack(info)[0]
    return retransmissions


def _wait_at_most(sock: socket.socket, deadline: float) -> None:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    sock.settimeout(left_s)


class Receiver:
    """Reads every connection to the port, and counts by the sender's port: a try that the sender gave up may be one, too."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.size = options.size
        self.counts: dict[int, dict[str, Any]] = {}
        self._buffer = bytearray(BLOCK_BYTES)
        self._selector = selectors.DefaultSelector()
        family = socket.AF_INET6 if ":" in options.source else socket.AF_INET
        listener = socket.create_server((options.source, options.port), family=family, reuse_port=False)
        self._selector.register(listener, selectors.EVENT_READ)
        signal.signal(signal.SIGUSR1, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        for count in self.counts.values():
            count["bytes_in_time"] = count["bytes"]

    def step(self) -> None:
        """Wait for the next connection or data, and take them."""
        for key, _events in self._selector.select():
            sock: socket.socket = key.fileobj  # type: ignore[assignment]
            if key.data is None:
                connection, (_address, port, *_of_ipv6) = sock.accept()
                connection.setblocking(False)
                self.counts[port] = {"bytes": 0, "last_ns": None, "bytes_in_time": 0}
                self._selector.register(connection, selectors.EVENT_READ, self.counts[port])
            elif not self._read(sock, key.data):
                self._selector.unregister(sock)
                sock.close()

    def _read(self, sock: socket.socket, count: dict[str, Any]) -> bool:
        """Read once; returns whether the connection continues."""
        try:
            size = sock.recv_into(self._buffer)
        except BlockingIOError:
            return True
        except OSError:  # reset by the sender
            return False
        if size:
            count["last_ns"] = time.monotonic_ns()
            count["bytes"] += size
        return size > 0 and count["bytes"] < self.size


def receive(options: argparse.Namespace) -> dict[int, dict[str, Any]]:
    """Read until SIGTERM; returns the counts by the sender's port."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    receiver = Receiver(options)
    signal.signal(signal.SIGTERM, stop)
    try:
        while True:
            receiver.step()
    except KeyboardInterrupt:
        return receiver.counts


def main() -> None:
    """Send or receive as the command line says, and write the counts to `--out`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("send", "receive"):
        sub = verbs.add_parser(verb)
        sub.add_argument("--source", required=True, help="own address")
        sub.add_argument("--port", type=int, required=True, help="the receiver's port")
        sub.add_argument("--size", type=int, required=True, help="bytes of payload")
        sub.add_argument("--out", required=True, help="file for the counts")
    sender = verbs.choices["send"]
    sender.add_argument("--to", required=True, help="the receiver's address")
    sender.add_argument("--receiver", type=int, required=True, help="the receiver's process id")
    sender.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    counts = send(options) if options.verb == "send" else receive(options)
    with open(options.out, "w") as out:  # noqa: PTH123 (pathlib would double this program's start-up time)
        json.dump(counts, out)


if __name__ == "__main__":
    main()
