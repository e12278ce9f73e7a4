"""A web client, as a program: one session of request-reply cycles. Standard library only.

In each cycle the client requests the first object of a page and, when it has it, the others, over up to `connections` connections
at once: HTTP/1.0 with a connection for each object, HTTP/1.1 with connections that stay open. Then it thinks. A request whose
connection cannot be opened, is lost, or ends before the last byte is issued again AGAIN_AFTER_S later on a new connection, until
the session's time is up. A slow connection is never given up.

The record has a JSON object for each event, written at once: `begin`, `issue` and `request` (begin and end of one attempt),
`cycle` (ended), `think` (ended), `end`. Times are seconds since `begin` by CLOCK_MONOTONIC; `..._unix_s` are CLOCK_REALTIME,
as in captures.
"""

import argparse
import contextlib
import http.client
import io
import json
import signal
import socket
import struct
import sys
import threading
import time
from typing import Any, NoReturn

AGAIN_AFTER_S = 0.5
BLOCK_BYTES = 64 << 10
IP_BIND_ADDRESS_NO_PORT = 24  # <linux/in.h>: the port is chosen with the destination
PAD = "X-Pad: "


class TimeUp(Exception):
    """The session's time has ended."""


class Record:
    """The file of events. A line is written whole and at once: it is there even if the client is killed."""

    def __init__(self, path: str, seconds: float) -> None:
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115, PTH123 (open until the end)
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.deadline = self._began + seconds
        self.write("begin", began_unix_s=time.time(), seconds=seconds)

    def now(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def left(self) -> float:
        """Seconds until the time is up; TimeUp if it is."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeUp
        return left

    def write(self, event: str, **fields: object) -> None:
        """Add an event."""
        rounded = {key: round(value, 6) if isinstance(value, float) else value for key, value in fields.items()}
        line = json.dumps({"event": event, "t_s": round(self.now(), 6), **rounded}) + "\n"
        with self._lock:
            self._file.write(line.encode())


class Input(io.RawIOBase):
    """What a connection receives: counts it, and notes when a reply began and ended. `HTTPResponse` reads from it."""

    def __init__(self, sock: socket.socket, record: Record) -> None:
        self.sock, self.record = sock, record
        self.expect()

    def expect(self) -> None:
        """The next bytes are those of a new reply."""
        self.bytes = 0
        self.first_s: float | None = None
        self.last_s: float | None = None
        self.last_unix_s: float | None = None

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Like a socket's."""
        return io.BufferedReader(self, BLOCK_BYTES)

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive, until the session's time is up."""
        self.sock.settimeout(self.record.left())
        try:
            size = self.sock.recv_into(buffer)
        except TimeoutError as problem:
            if problem.errno is None:  # of settimeout, not the kernel's ETIMEDOUT
                raise TimeUp from None
            raise
        if size:
            self.last_s, self.last_unix_s = self.record.now(), time.time()
            self.first_s = self.last_s if self.first_s is None else self.first_s
            self.bytes += size
        return size

    def close(self) -> None:
        """The socket is closed by its owner: an HTTPResponse closes its file after each reply."""


class Connection:
    """An open connection to the server."""

    def __init__(self, options: argparse.Namespace, record: Record) -> None:
        self.sock = socket.socket(socket.AF_INET6 if ":" in options.to else socket.AF_INET, socket.SOCK_STREAM)
        try:
            self.sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock.bind((options.source, 0))
            self.sock.settimeout(record.left())
            self.sock.connect((options.to, options.port))
        except TimeoutError as problem:
            self.sock.close()
            if problem.errno is None:
                raise TimeUp from None
            raise
        except BaseException:
            self.sock.close()
            raise
        self.port = self.sock.getsockname()[1]
        self.input = Input(self.sock, record)

    def reset(self) -> None:
        """Close it with RST: nothing is sent after the session."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


class Session:
    """The exchanges, one cycle after the other."""

    def __init__(self, options: argparse.Namespace, record: Record) -> None:
        self.options, self.record = options, record
        self.host = f"[{options.to}]" if ":" in options.to else options.to  # RFC 3986, 3.2.2
        with open(options.exchanges) as file:  # noqa: PTH123
            exchanges = json.load(file)
        self.http, self.connections, self.cycles = exchanges["http"], exchanges["connections"], exchanges["cycles"]
        self._idle: list[Connection] = []  # of HTTP/1.1
        self._lock = threading.Lock()

    def run(self) -> bool:
        """Whether the session finished in its time."""
        try:
            for number, cycle in enumerate(self.cycles, start=1):
                began_s = self.record.now()
                self._page(number, cycle["objects"])
                self.record.write("cycle", cycle=number, began_s=began_s)
                if number < len(self.cycles):
                    self._think(number, cycle["think_s"])
        except TimeUp:
            return False
        finally:
            self.close()
        return True

    def close(self) -> None:
        """End the idle connections."""
        with self._lock:
            for connection in self._idle:
                connection.reset()
            self._idle.clear()

    def _think(self, number: int, think_s: float) -> None:
        left_s = self.record.deadline - time.monotonic()
        began_s = self.record.now()
        time.sleep(max(0.0, min(think_s, left_s)))
        self.record.write("think", cycle=number, began_s=began_s)
        self.record.left()

    def _page(self, number: int, objects: list[dict[str, Any]]) -> None:
        """The first object, then the others."""
        self._fetch(number, objects[0])
        waiting = objects[:0:-1]
        failures: list[BaseException] = []
        threads = [
            threading.Thread(target=self._fetch_all, args=(number, waiting, failures), daemon=True)
            for _ in range(min(self.connections, len(waiting)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def _fetch_all(self, number: int, waiting: list[dict[str, Any]], failures: list[BaseException]) -> None:
        try:
            while not failures:
                try:
                    item = waiting.pop()
                except IndexError:  # another thread took the last item
                    return
                self._fetch(number, item)
        except BaseException as problem:
            failures.append(problem)

    def _fetch(self, number: int, item: dict[str, Any]) -> None:
        """Request an object until it is there; TimeUp."""
        tries = 0
        issued_s = self.record.now()
        while True:
            tries += 1
            attempt = {"id": item["id"], "try": tries, "cycle": number, "issued_s": issued_s}
            if self._attempt(item, attempt):
                return
            time.sleep(min(AGAIN_AFTER_S, self.record.left()))

    def _attempt(self, item: dict[str, Any], attempt: dict[str, Any]) -> bool:
        """Request an object once, and record it; whether it arrived whole. TimeUp, recorded too."""
        self.record.write("issue", **attempt)
        attempt |= {"began_s": self.record.now(), "connection": None, "new": False, "sent_s": None, "sent_unix_s": None}
        attempt |= {"request_bytes": item["request_bytes"], "status": None, "body_bytes": 0, "error": "unfinished"}
        connection = None
        try:
            connection = self._connection(attempt)
            self._exchange(connection, item, attempt)
            attempt["error"] = None
        except (OSError, http.client.HTTPException) as problem:
            attempt["error"] = str(problem) or type(problem).__name__
        finally:
            self._note(attempt, connection)
            if connection is not None and attempt["error"] is not None:
                connection.reset()
        if connection is None or attempt["error"] is not None:
            return False
        self._release(connection)
        return True

    def _connection(self, attempt: dict[str, Any]) -> Connection:
        """An idle connection, or a new one."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        attempt["new"] = connection is None
        if connection is None:
            connection = Connection(self.options, self.record)
        attempt["connection"] = connection.port
        return connection

    def _exchange(self, connection: Connection, item: dict[str, Any], attempt: dict[str, Any]) -> None:
        """Send the request and receive the reply."""
        connection.input.expect()
        text = request_text(item, attempt["try"], self.http, f"{self.host}:{self.options.port}")
        attempt["request_bytes"] = len(text)
        connection.sock.settimeout(self.record.left())
        attempt["sent_s"], attempt["sent_unix_s"] = self.record.now(), time.time()
        connection.sock.sendall(text)
        reply = http.client.HTTPResponse(connection.input, method="GET")  # type: ignore[arg-type]
        reply.begin()
        attempt["status"] = reply.status
        while block := reply.read1(BLOCK_BYTES):
            attempt["body_bytes"] += len(block)
        reply.close()
        if reply.status != 200 or attempt["body_bytes"] != item["body_bytes"]:
            expected = f"status 200 and {item['body_bytes']} bytes expected"
            raise OSError(f"status {reply.status}, {attempt['body_bytes']} bytes of body; {expected}")

    def _note(self, attempt: dict[str, Any], connection: Connection | None) -> None:
        """Record the attempt; an idle connection's last reply does not count."""
        seen = connection.input if connection is not None and attempt["sent_s"] is not None else None
        received = {name: getattr(seen, name, None) for name in ("first_s", "last_s", "last_unix_s")}
        self.record.write("request", **attempt, **received, reply_bytes=seen.bytes if seen is not None else 0)

    def _release(self, connection: Connection) -> None:
        if self.http == "1.0":
            connection.sock.close()
            return
        with self._lock:
            self._idle.append(connection)


def request_text(item: dict[str, Any], number: int, version: str, host: str) -> bytes:
    """A request of `request_bytes` bytes; of more, if its line and header need them. It is filled up by a header, or by empty
    arguments (`&`) if there is no room for one."""
    line, end = f"GET /{item['body_bytes']}?id={item['id']}&try={number}", f" HTTP/{version}\r\n"
    end += f"Host: {host}\r\n" if version == "1.1" else ""
    room = item["request_bytes"] - len(line) - len(end) - len("\r\n")
    pad = room - len(PAD) - len("\r\n")
    filled = f"{line}{end}{PAD}{'x' * pad}\r\n" if pad >= 0 else f"{line}{'&' * max(0, room)}{end}"
    return f"{filled}\r\n".encode()


def _stop(_number: int, _frame: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)


def main() -> None:
    """Run the session, and wait for the end of its time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True, help="own address")
    parser.add_argument("--to", required=True, help="the server's address")
    parser.add_argument("--port", type=int, required=True, help="the server's port")
    parser.add_argument("--exchanges", required=True, help="file with the exchanges")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--out", required=True, help="file for the record")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    record = Record(options.out, options.seconds)
    finished = Session(options, record).run()
    record.write("end", finished=finished)
    time.sleep(max(0.0, record.deadline - time.monotonic()))


if __name__ == "__main__":
    main()
