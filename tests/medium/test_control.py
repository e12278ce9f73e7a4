"""The control socket: malformed requests, a second medium on the same sockets, and a lack of descriptors."""

import json
import os
import resource
import socket
import time
from pathlib import Path

import pytest

from routing.host.tests.harness import DEADLINE_S, wait_for
from tests.medium.medium import configuration, needs_medium

pytestmark = needs_medium


def test_malformed_control_lines_are_answered_and_a_huge_one_closes_the_connection(hosts, start, tmp_path):
    daemon = start(configuration(hosts(1)))
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(DEADLINE_S)
        s.connect(str(tmp_path / "medium.sock"))
        stream = s.makefile("rb")
        for line in [b"", b"{", b"\xff\xfe", b"[]", b'{"op":"nonsense"}', b'{"op":"move","station":"sta9","position":[0,0,0]}']:
            s.sendall(line + b"\n")
            answer = json.loads(stream.readline())
            assert answer["ok"] is False and "\n" not in answer["error"], line
        # two requests in one packet, and one in two
        s.sendall(b'{"op":"positions"}\n{"op":"sta')
        assert json.loads(stream.readline())["positions"] == {"sta1": [0.0, 0.0, 0.0]}
        s.sendall(b'tus"}\n')
        assert json.loads(stream.readline())["ok"]
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(DEADLINE_S)
        s.connect(str(tmp_path / "medium.sock"))
        closed = False
        try:
            s.sendall(b"x" * 200_000)
            closed = s.recv(1) == b""
        except (BrokenPipeError, ConnectionResetError):
            closed = True
        assert closed
    assert daemon.ask("status")["ok"]


def test_a_second_medium_on_the_same_sockets_is_refused(hosts, start, tmp_path):
    first, second = hosts(1), hosts(1)
    daemon = start(configuration(first))
    other = start(configuration(second), ready=False)
    code, errors = other.stop()
    assert code == 1
    assert errors.count("\n") == 1 and "another medium listens on" in errors
    assert daemon.ask("status")["ok"]


def cpu_s(pid: int) -> float:
    """Processor time of a process (proc_pid_stat(5): fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("way", ["control", "feedback"])
def test_without_a_free_descriptor_clients_wait_and_the_daemon_sleeps(hosts, start, tmp_path, way):
    """accept(2) fails with EMFILE and leaves the client in the backlog: poll would report the listener again at once."""
    daemon = start(configuration(hosts(1)))
    assert daemon.ask("status")["accepts_failed"] == 0
    kind = socket.SOCK_STREAM if way == "control" else socket.SOCK_SEQPACKET
    path = tmp_path / ("medium.sock" if way == "control" else "feedback/sta1.sock")
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX, kind) as waiting:
        first.connect(str(tmp_path / "medium.sock"))
        first.sendall(b'{"op":"status"}\n')
        answers = first.makefile()
        assert json.loads(answers.readline())["ok"]
        used = len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
        _soft, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (used, hard))
        waiting.connect(str(path))
        before_s = cpu_s(daemon.process.pid)
        time.sleep(2)
        assert cpu_s(daemon.process.pid) - before_s < 0.5
        first.sendall(b'{"op":"status"}\n')
        assert 1 <= json.loads(answers.readline())["accepts_failed"] < 100
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (used + 1, hard))
        if way == "control":
            waiting.settimeout(DEADLINE_S)
            waiting.sendall(b'{"op":"status"}\n')
            assert json.loads(waiting.makefile().readline())["ok"]
        else:
            wait_for("a client", lambda: len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir())) == used + 1)
    code, errors = daemon.stop()
    assert code == 0 and errors.count("\n") == 1 and "open files" in errors
