"""Access to a run that another process has started: its record in /run/manet (testbed/host/state.py), its file system through
/proc/<pid>/root of any of its processes, its nodes' namespaces through their shells."""

import json
import socket
from pathlib import Path
from typing import Any

from testbed.errors import RunError, UsageError
from testbed.host.state import RunState, processes_of, recorded_runs
from testbed.stages.actions import SOCKET as ACTIONS
from testbed.stages.control import MediumControl
from testbed.stages.site import SOCKETS

ACTION_WITHIN_S = 60.0  # a flow waits for its receiver and for manet-tcp
SHELL = b"mininet:"  # the last word of a node's shell's command line (stages/station.py)


def runs_under_way() -> list[RunState]:
    """The records of all runs whose owner lives."""
    return [state for state in recorded_runs() if state.owner_alive()]


def under_way(directory: Path | None) -> RunState | None:
    """The record of the run in `directory` (None if it has ended), or of the only run under way. Raises UsageError."""
    runs = runs_under_way()
    if directory is not None:
        return next((state for state in runs if Path(state.directory) == directory.resolve()), None)
    if len(runs) == 1:
        return runs[0]
    which = ", ".join(state.directory for state in runs)
    if runs:
        raise UsageError(f"{len(runs)} runs are under way; name one first: {which}")
    raise UsageError("no run is under way; name the directory of one that has ended, results/NAME/CELL/seed-N")


def ended(directory: Path) -> Path:
    """Return `directory` if its run has ended. Raises UsageError while it is under way: its captures are incomplete."""
    if under_way(directory) is not None:
        raise UsageError(f"{directory}: the run is under way; wait for its end (manet map and manet routes look into it now)")
    return directory


def sockets_of(state: RunState, needed: str) -> Path | None:
    """The folder of a run's sockets if `needed`, a name in it, exists; else None (not yet, or no longer)."""
    for process in processes_of(state):
        sockets = process / "root" / SOCKETS.relative_to("/")
        try:
            if (sockets / needed).exists():
                return sockets
        except OSError:  # it has just ended
            continue
    return None


def medium_of(directory: Path) -> MediumControl | None:
    """A connection to the medium of the run in `directory`; None once the run has ended. Raises RunError."""
    state = under_way(directory)
    sockets = sockets_of(state, "medium.sock") if state is not None else None
    return None if sockets is None else MediumControl(sockets / "medium.sock")


def actions_of(directory: Path) -> Path | None:
    """The socket for actions on the run in `directory`; None once the run has ended, and until its network is up."""
    state = under_way(directory)
    sockets = sockets_of(state, ACTIONS) if state is not None else None
    return None if sockets is None else sockets / ACTIONS


def act_on(directory: Path, wanted: object) -> dict[str, Any]:
    """Have the run in `directory` carry out an action (testbed/stages/actions.py). Raises UsageError once the run has ended,
    RunError with the run's message if it refuses."""
    path = actions_of(directory)
    if path is None:
        raise UsageError("the run has ended, or its network is not up yet; actions are for a run under way")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ACTION_WITHIN_S)
        try:
            connection.connect(str(path))
            connection.sendall(json.dumps(wanted).encode() + b"\n")
            answer = json.loads(connection.makefile("rb").readline() or b"{}")
        except (OSError, ValueError) as problem:
            raise RunError(f"the run did not answer ({problem}); did it just end?") from None
    if not answer.get("ok"):
        raise RunError(answer.get("error") or "the run did not answer; did it just end?")
    return answer


def namespaces_of(state: RunState) -> dict[str, Path]:
    """The network namespace of each node, by its name; empty if none has a shell."""
    namespaces: dict[str, Path] = {}
    for process in processes_of(state):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        name = next((word.removeprefix(SHELL).decode() for word in words if word.startswith(SHELL)), None)
        if name is not None:
            namespaces.setdefault(name, process / "ns" / "net")
    return namespaces
