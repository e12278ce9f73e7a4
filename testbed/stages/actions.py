"""The actions of a view and the commands of `manet exec` on a run under way, by the run's own socket `actions.sock`
(formats/sockets.md).

The run carries them out, not the view: each is a row of events.csv with the source `view` or `exec`, and a flow belongs to the
run, which captures, samples and ends it. Only processes that may enter the run's mount namespace reach the socket.
"""

import json
import os
import signal
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from record.events_file import VIEW
from testbed.errors import ManetError, RunError, UsageError, shortened
from testbed.stages.entered import EnteredCommand
from testbed.stages.event_log import EventLog
from testbed.stages.site import SOCKETS

SOCKET = "actions.sock"
STREAMS = 3  # standard input, output and error
MAX_LINE = 1 << 16
READ_WITHIN_S = 5.0
# of each action the event's keys by its own
EVENTS = {
    "move": {"station": "move", "position": "to"},
    "power": {"station": "power", "on": "on"},
    "link": {"from": "link", "to": "link", "error_rate": "error_rate"},
    "daemon": {"station": "station", "action": "daemon"},
}
StartFlow = Callable[[Mapping[str, Any]], tuple[str, str]]
NO_FLOWS = "this session has no traffic of its own, so no flow of a view; start programs at its prompt or in its script"


class Live(Protocol):
    """The running network (testbed/runs/live_network.py)."""

    log: EventLog

    def do(self, wanted: Mapping[str, Any], source: str, named: Mapping[str, str]) -> tuple[str, str]:
        """Carry out and record an event of these keys."""

    def now_s(self) -> float | None:
        """Seconds since the start of the traffic."""

    def enter(self, station: str, argv: list[str], streams: list[int], term: str | None) -> EnteredCommand:
        """Start and record a command of `manet exec`."""

    def wait_for(self, command: EnteredCommand) -> int:
        """Wait for its end; returns its status, negative for a signal."""


class Actions:
    """The actions on one run. `start_flow`: None in a session."""

    def __init__(self, live: Live, start_flow: StartFlow | None = None) -> None:
        self._live, self._start_flow = live, start_flow

    def do(self, wanted: object) -> dict[str, Any]:
        """Carry out and record an action. Raises UsageError for a wrong one, RunError if the medium or the flow fails."""
        if not isinstance(wanted, dict) or wanted.get("op") not in (*EVENTS, "flow"):
            raise UsageError(f"op: use one of {', '.join((*EVENTS, 'flow'))}")
        if wanted["op"] == "flow":
            return self._flow(wanted)
        names = EVENTS[wanted["op"]]
        self._live.do(_event(wanted, names), VIEW, {name: key for key, name in names.items()})
        return {}

    def _flow(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        if self._start_flow is None:
            raise UsageError(NO_FLOWS)
        at_s = self._live.now_s()
        name, text = self._start_flow(wanted)
        self._live.log.write(at_s, "flow", f"{wanted['from']} {wanted['to']}", f"{name} started: {text}", VIEW)
        return {"flow": name}

    def enter(self, wanted: Mapping[str, Any], streams: list[int]) -> EnteredCommand:
        """Start a command of `manet exec` (testbed/runs/entering.py) with these standard streams. Raises UsageError, RunError."""
        station, argv, term = wanted.get("station"), wanted.get("argv"), wanted.get("term")
        if not isinstance(station, str) or not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
            raise UsageError("exec: give a station and argv, a list of words")
        if len(streams) != STREAMS:
            raise UsageError("exec: send the descriptors of standard input, output and error with the request")
        return self._live.enter(station, argv, streams, term if isinstance(term, str) else None)

    def wait_for(self, command: EnteredCommand) -> int:
        """Wait for its end; returns its status, negative for a signal."""
        return self._live.wait_for(command)


def _event(wanted: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The keys of the action's event, which is not checked yet."""
    unknown = next((key for key in wanted if key not in {"op", *names}), None)
    if unknown is not None:
        raise UsageError(f"{shortened(str(unknown))}: is no key of an action {wanted['op']}, which has {', '.join(names)}")
    missing = next((key for key in names if wanted.get(key) is None), None)
    if missing is not None:
        raise UsageError(f"{missing}: is missing; an action {wanted['op']} has the keys {', '.join(names)}")
    keys = {name: wanted[key] for key, name in names.items()}
    return keys | {"link": [wanted["from"], wanted["to"]]} if "link" in keys else keys


@contextmanager
def actions_served(actions: Actions) -> Iterator[None]:
    """Serve the actions, one at a time, and the commands, side by side, until the block ends."""
    turn = threading.Lock()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            connection: socket.socket = self.request
            connection.settimeout(READ_WITHIN_S)
            with suppress(OSError):  # the view has gone
                _answer(connection, actions, turn)

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True
        block_on_close = False  # a command's connection ends after the command, which ends with the traffic

    path = SOCKETS / SOCKET
    path.unlink(missing_ok=True)
    with Server(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="actions", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            path.unlink(missing_ok=True)


def _answer(connection: socket.socket, actions: Actions, turn: threading.Lock) -> None:
    """Read one request, carry it out and answer it."""
    line, streams = _request(connection)
    command = None
    try:
        wanted = json.loads(line)
        if isinstance(wanted, dict) and wanted.get("op") == "exec":
            command = actions.enter(wanted, streams)
            answer = {"ok": True, "command": command.name}
        else:
            with turn:
                answer = {"ok": True, **actions.do(wanted)}
    except (ManetError, OSError) as problem:
        answer = {"ok": False, "error": str(problem), "status": getattr(problem, "exit_status", RunError.exit_status)}
    except (ValueError, RecursionError):
        answer = {"ok": False, "error": "the request is no line of JSON"}
    finally:
        for descriptor in streams:
            os.close(descriptor)
    with suppress(OSError):
        _send(connection, answer)
    if command is not None:
        threading.Thread(target=_pass_signals, args=(connection, command), name=command.name, daemon=True).start()
        _send(connection, {"exited": actions.wait_for(command)})


def _request(connection: socket.socket) -> tuple[bytes, list[int]]:
    """The first line, and the descriptors that came with it."""
    line = b""
    streams: list[int] = []
    while b"\n" not in line and len(line) < MAX_LINE:
        part, descriptors, _flags, _address = socket.recv_fds(connection, MAX_LINE - len(line), STREAMS)
        line, streams = line + part, [*streams, *descriptors]
        if not part:
            break
    return line.partition(b"\n")[0], streams


def _send(connection: socket.socket, answer: Mapping[str, Any]) -> None:
    connection.sendall(json.dumps(answer).encode() + b"\n")


def _pass_signals(connection: socket.socket, command: EnteredCommand) -> None:
    """Send the command the signals of further lines, `{"signal": N}`; a caller that has gone is a closed terminal."""
    connection.settimeout(None)
    with suppress(OSError, ValueError), connection.makefile("rb") as lines:
        for line in lines:
            command.signal(int(json.loads(line)["signal"]))
    command.signal(signal.SIGHUP)
    command.signal(signal.SIGCONT)  # one that is stopped takes it, too
