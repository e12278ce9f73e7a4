"""The medium's control socket (formats/sockets.md): one JSON object a line, one answer a line."""

import json
import socket
import threading
from pathlib import Path
from typing import Any

from testbed.errors import RunError
from testbed.host.processes import limit_s

ANSWER_DEADLINE_S = 10.0


class MediumControl:
    """A connection to the medium, for several threads; `ask` raises RunError with the medium's message if it refuses."""

    def __init__(self, path: Path, stations: int = 0) -> None:
        """`stations`: how many the medium has, if it may take longer to answer."""
        self._path, self._turn = path, threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(limit_s(ANSWER_DEADLINE_S, stations))
        try:
            self._socket.connect(str(path))
        except OSError as problem:
            raise RunError(f"{path}: {problem.strerror or problem}; the medium is not running, see log/medium.log") from None
        self._stream = self._socket.makefile("rb")

    def ask(self, op: str, **arguments: object) -> dict[str, Any]:
        """Send one request and return its answer; RunError if the medium refuses it or has gone."""
        try:
            with self._turn:
                self._socket.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
                line = self._stream.readline()
        except OSError as problem:
            raise RunError(f"medium, {op}: {problem.strerror or problem}; see log/medium.log") from None
        if not line:
            raise RunError(f"medium, {op}: it closed the connection; see log/medium.log")
        answer: dict[str, Any] = json.loads(line)
        if not answer.get("ok"):
            raise RunError(f"medium, {op}: {answer.get('error', 'refused')}")
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()
        self._socket.close()
