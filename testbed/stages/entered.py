"""The commands that `manet exec` and `manet shell` start at the nodes of a running network, where the node's own programs are.

The run starts them, as it does those of events: they are in its control group, in the station's namespaces and container, and
they end with its traffic. Their standard streams are the caller's, which come over the socket (testbed/stages/actions.py).
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import UsageError, shortened
from testbed.host import descriptors, namespace
from testbed.stages.station import NamespaceHost, StationNet, is_program, shell_environment

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # the statuses of a shell (POSIX.1-2024, Shell & Utilities, 2.8.2)
END_WITHIN_S = 2.0  # of a command that is asked to end
# As a shell does for a program that is missing in a container, which nsenter would report in its own words. $0: the station. For
# other stations the run looks (`_require_program`), since a command that starts nothing is no event.
FOUND_OR_127 = (
    'command -v -- "$1" >/dev/null || { echo "manet exec: $1: no such program at $0; install it, or write its path" >&2; '
    'exit 127; }; exec "$@"'
)


def _looked_for(host: NamespaceHost, station: str) -> list[str]:
    """The words before a command that first look for its program: in a container with a shell."""
    if host.container is None or not os.path.lexists(f"/proc/{host.container.init.pid}/root/bin/sh"):
        return []
    return ["sh", "-c", FOUND_OR_127, station]


class NoProgram(UsageError):
    """The command's program is missing, or cannot be executed; `exit_status` is a shell's for that."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.exit_status = status


def _require_program(host: NamespaceHost, station: str, program: str) -> None:
    """Raise NoProgram if a station on this machine's files has no such program."""
    if host.container is not None or is_program(program):
        return
    if "/" in program and Path(program).exists():
        raise NoProgram(
            f"{shortened(program)}: cannot be executed at {station}; chmod +x, or name its interpreter", NOT_EXECUTABLE
        )
    raise NoProgram(f"{shortened(program)}: no such program at {station}; install it, or write its path", NOT_FOUND)


@dataclass
class EnteredCommand:
    """One command. Times are seconds since the start of the traffic or of the session; None: it began before."""

    name: str
    station: str
    argv: list[str]
    process: subprocess.Popen[bytes]
    started_s: float | None
    ended_s: float | None = None
    ended_by: str = "itself"  # or "run": it ran at the end of the traffic

    def signal(self, number: int) -> None:
        """Send a signal to the command and the processes of its group, unless it has ended."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def entry(self) -> dict[str, Any]:
        """The entry of run.json. The status is negative if a signal ended the command."""
        times = {"started_s": self.started_s, "ended_s": self.ended_s}
        end = {"exit_status": self.process.returncode, "ended_by": self.ended_by}
        return {"name": self.name, "station": self.station, "argv": self.argv, **times, **end}


class EnteredCommands:
    """The commands of one network, for several threads."""

    def __init__(self, net: StationNet) -> None:
        self._net, self._turn = net, threading.Lock()
        self._started: list[EnteredCommand] = []
        self._last_s: dict[str, float] = {}  # of each station the monotonic instant at which its last command ended
        self._over = False

    def start(
        self, station: str, argv: Sequence[str], streams: Sequence[int], term: str | None, now_s: float | None
    ) -> EnteredCommand:
        """Start a command with these descriptors as its standard streams. `term`: they are a terminal of this kind, which the
        command controls. Raises UsageError; NoProgram, and then nothing has started."""
        if station not in self._net:
            raise UsageError(f'there is no station or host "{station}"; there are {", ".join(self._net)}')
        if not argv:
            raise UsageError("which command? give its words behind --")
        host = self._net[station]
        _require_program(host, station, argv[0])
        environment = {} if term is None else {"TERM": term}
        words = host.words([*_looked_for(host, station), *argv], environment=environment)
        line = words if term is None else ["setsid", "--ctty", *words]
        stdin, stdout, stderr = streams

        def popen() -> subprocess.Popen[bytes]:
            own = {"env": {**shell_environment(), **environment}, "start_new_session": term is None}
            return subprocess.Popen(line, stdin=stdin, stdout=stdout, stderr=stderr, **own)  # type: ignore[call-overload]

        with self._turn:
            if self._over:
                raise UsageError("the traffic is over; commands are for a run under way")
            process = namespace.within(host.netns, popen, pids=host.pids_of_programs)
            descriptors.restore_limit(process.pid)
            command = EnteredCommand(f"exec{len(self._started) + 1}", station, list(argv), process, now_s)
            self._started.append(command)
        return command

    def wait(self, command: EnteredCommand, begin_s: float | None) -> int:
        """Wait for its end; returns its status, negative for a signal. `begin_s`: the instant from which times count, or None."""
        status = command.process.wait()
        self._last_s[command.station] = time.monotonic()
        command.ended_s = None if begin_s is None else round(time.monotonic() - begin_s, 3)
        return status

    def ran_at(self, station: str, since_s: float) -> bool:
        """Whether a command runs at the station, or ran there after a monotonic instant."""
        runs = any(one.station == station and one.process.returncode is None for one in list(self._started))
        return runs or self._last_s.get(station, since_s - 1) >= since_s

    def end_all(self) -> None:
        """End those that still run, as if their terminals were closed; none starts any more."""
        with self._turn:
            self._over = True
        left = [one for one in self._started if one.process.poll() is None]
        for command in left:
            command.ended_by = "run"
            command.signal(signal.SIGHUP)
            command.signal(signal.SIGCONT)
        deadline = time.monotonic() + END_WITHIN_S
        for command in left:
            try:
                command.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                command.signal(signal.SIGKILL)
                command.process.wait()

    def entries(self) -> list[dict[str, Any]]:
        """The entries of run.json."""
        return [command.entry() for command in self._started]
