"""The client's end of a mesh: the process of the testbed that holds the run (service/outside.py), and requests to the run."""

import contextlib
import errno
import json
import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

from manet_testbed import messages
from manet_testbed.errors import KINDS, MeshError, MissingRequirement, WrongRequest, quoted
from manet_testbed.location import Testbed, find
from manet_testbed.requirements import missing_requirement

ANSWER_DEADLINE_S = 60.0
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"  # of programs that only root needs; a test's PATH may lack it


class Connection:
    """A run, from `Connection(...)` to `close`. Safe from several threads."""

    def __init__(self, request: dict[str, Any]) -> None:
        """Start the run that `request` describes; `wait_until_ready` waits for it. Raises MissingRequirement."""
        if (missing := missing_requirement()) is not None:
            raise MissingRequirement(missing)
        testbed = find()
        assert testbed is not None, "missing_requirement has found it"
        self._lock, self._number = threading.Lock(), 0
        self._end: dict[str, Any] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [testbed.python, "-P", "-m", "manet_testbed.service.outside"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                pass_fds=[theirs.fileno()], start_new_session=True, env=_environment(testbed),
            )  # fmt: skip
            assert self._process.stdin is not None
            line = json.dumps({**request, "owner": os.getpid(), "requests": theirs.fileno()})
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()

    def wait_until_ready(self) -> dict[str, Any]:
        """Wait for the run's first message. Raises MeshError if it ends before."""
        assert self._process.stdout is not None
        messages.is_readable(self._socket.fileno(), self._process.stdout.fileno())
        received = messages.receive(self._socket)
        if received is None:
            raise self._failure("the mesh")
        return received[0]

    def request(self, op: str, arguments: dict[str, Any], descriptors: Sequence[int] = ()) -> tuple[dict[str, Any], list[int]]:
        """Send a request; returns its answer and the descriptors that came with it. Raises MeshError if the run refuses or has
        ended."""
        with self._lock:
            self._number += 1
            try:
                messages.send(self._socket, {"op": op, "id": self._number, "arguments": arguments}, descriptors)
                answer, passed = self._answer_to(self._number)
            except (ValueError, TypeError) as problem:
                raise WrongRequest(f"{_about(op, arguments)}: {problem}") from None
            except OSError as problem:
                if problem.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):  # of this process; the mesh stands
                    raise MeshError(f"{_about(op, arguments)}: {problem.strerror}") from None
                raise self._failure(_about(op, arguments)) from None
        if "error" in answer:
            raise KINDS.get(answer["kind"], MeshError)(answer["error"])
        return answer, passed

    def close(self, *, in_order: bool = True) -> dict[str, Any]:
        """End the run, wait until nothing of it is left, and return its end. `in_order`: the network was not interrupted."""
        if self._end is None:
            try:
                if not in_order or not self._is_stopping():
                    self._let_go()
                self._end = self._end or self._read_end()
            finally:
                self._let_go()
        return self._end

    def _is_stopping(self) -> bool:
        """Whether the run has agreed to end in order."""
        try:
            self.request("stop", {})
        except MeshError:
            return False
        return True

    def _answer_to(self, number: int) -> tuple[dict[str, Any], list[int]]:
        """The answer with this number. Ctrl-C may have left earlier ones unread."""
        while True:
            if not messages.is_readable(self._socket.fileno(), timeout_s=ANSWER_DEADLINE_S):
                raise MeshError(f"the mesh does not answer within {ANSWER_DEADLINE_S:g} s; the machine is overloaded")
            received = messages.receive(self._socket)
            if received is None:
                raise ConnectionResetError
            if received[0]["id"] == number:
                return received
            for descriptor in received[1]:
                os.close(descriptor)

    def _failure(self, about: str) -> MeshError:
        """The reason for which the run has ended by itself, or that `about` came after its end."""
        self._let_go()
        self._end = self._end or self._read_end()
        error = self._end["error"] or f"{about}: the mesh has ended"
        return KINDS.get(self._end["kind"], MeshError)(error)

    def _let_go(self) -> None:
        """Let the run end by itself from now on, even if this process dies."""
        self._socket.close()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _read_end(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        text = self._process.stdout.read()
        self._process.stdout.close()
        self._process.wait()
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace")
        self._errors.close()
        if not text:
            return {"error": f"the process of the testbed ended without a word{quoted(words)}", "kind": "failed"}
        end: dict[str, Any] = json.loads(text)
        return end


def _about(op: str, arguments: dict[str, Any]) -> str:
    """A request as error messages name it: station and command."""
    command = " ".join(arguments.get("argv", [op]))
    return f"{arguments['station']}: {command}" if "station" in arguments else command


def _environment(testbed: Testbed) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
    return {**kept, "PYTHONPATH": str(testbed.home), "PATH": f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}"}
