"""A view for tests: `manet view` as a process of its own, and questions to it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from testbed.programs import ROOT

REPEATED = 100  # the kernel keeps some MB of answers that nobody reads


@dataclass(frozen=True)
class Served:
    """A running `manet view`. `url`: the page's address with its token."""

    url: str
    process: subprocess.Popen

    @property
    def base(self) -> str:
        return self.url.partition("/?")[0]

    @property
    def token(self) -> str:
        return self.url.partition("token=")[2]

    def answer(self, path: str, **headers: str) -> tuple[int, bytes]:
        """Status and body."""
        request = urllib.request.Request(self.base + path, headers={"Authorization": f"Bearer {self.token}", **headers})
        try:
            with urllib.request.urlopen(request, timeout=30) as found:
                return found.status, found.read()
        except urllib.error.HTTPError as problem:
            return problem.code, problem.read()

    def ask(self, path: str):
        status, body = self.answer(path)
        assert status == 200, body
        return json.loads(body)


UNFINISHED = r"manet: requests unfinished after 5 s, which are ended now: 1\n"


@contextmanager
def unfinished_request(url: str, process: subprocess.Popen, path: str = "/static/vendor/uPlot.esm.js") -> Iterator[None]:
    """A request whose answer the client does not take: the same address often enough on one connection to fill all buffers. `url`
    is that of the server, with its token if the address needs it; an answer has 100 kB or more."""
    server = urlsplit(url)
    head = f"Host: {server.netloc}\r\nAuthorization: Bearer {server.query.removeprefix('token=')}"
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((server.hostname, server.port))
        client.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n\r\n".encode() * REPEATED)
        client.recv(1)
        before, waiting = -1, 0
        while waiting == 0 or waiting != before:  # until the server, which sleeps, has filled all buffers
            time.sleep(0.3)
            if _sleeps(process.pid):
                before, waiting = waiting, _waiting_bytes(server.port, client.getsockname()[1])
        yield


def _sleeps(pid: int) -> bool:
    """Whether all threads of a process wait for something, and not for a processor."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "S" for stat in stats)


def _waiting_bytes(of: int | None, to: int) -> int:
    """Bytes that the connection from a port of loopback to another has not delivered."""
    ends = (f"0100007F:{of:04X}", f"0100007F:{to:04X}")
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return next(int(row[4].partition(":")[0], 16) for row in rows if (row[1], row[2]) == ends)


@contextmanager
def view(directory: Path | None, *options: str, complaint: str = "") -> Iterator[Served]:
    """`manet view [DIRECTORY] OPTIONS`, ended by Ctrl-C; what it then has said is the regular expression `complaint`."""
    argv = [sys.executable, "-P", "-m", "testbed", "view", *([str(directory)] if directory else []), *options]
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "?token=" in line, process.stderr.read() if process.stderr else line
        yield Served(line.rsplit(": ", 1)[1].strip(), process)
    finally:
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=60)
    assert process.returncode == 0 and re.fullmatch(complaint, complaints), complaints
