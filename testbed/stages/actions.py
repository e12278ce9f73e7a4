"""The actions of a view on a run under way, by the run's own socket `actions.sock` (formats/sockets.md).

The run carries them out, not the view: each is a row of events.csv with the source `view`, and a flow belongs to the run, which
captures, samples and ends it. Only processes that may enter the run's mount namespace reach the socket.
"""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from record.events_file import VIEW
from testbed.errors import ManetError, UsageError, shortened
from testbed.stages.event_log import EventLog
from testbed.stages.site import SOCKETS

SOCKET = "actions.sock"
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
    """Serve the actions, one at a time, until the block ends."""

    class Handler(socketserver.StreamRequestHandler):
        timeout = READ_WITHIN_S

        def handle(self) -> None:
            try:
                answer = {"ok": True, **actions.do(json.loads(self.rfile.readline(MAX_LINE)))}
            except (ManetError, OSError) as problem:
                answer = {"ok": False, "error": str(problem)}
            except (ValueError, RecursionError):
                answer = {"ok": False, "error": "the request is no line of JSON"}
            self.wfile.write(json.dumps(answer).encode() + b"\n")

        def finish(self) -> None:
            with suppress(OSError):  # the view has gone
                super().finish()

    path = SOCKETS / SOCKET
    path.unlink(missing_ok=True)
    with socketserver.UnixStreamServer(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="actions", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            path.unlink(missing_ok=True)
