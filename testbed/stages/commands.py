"""The commands that events start at stations and hosts (scenarios/events.py), and how each of them ended.

A command is ended together with the processes of its group. Its output is in log/event-<name>.log; run.json has an entry for
each of its starts. At a container it runs inside. A command may end by itself, with any status: that is a result, no failure
of the run.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios.events import Event, worded
from testbed.host.processes import Child, Processes
from testbed.stages.station import StationNet

REMEDY = "see its log"  # of no error: a command may end with any status


@dataclass
class StartedCommand:
    """One start of a command. Times are seconds since the start of the traffic."""

    name: str
    station: str
    argv: list[str]
    child: Child
    started_s: float
    ended_s: float | None = None
    ended_by: str = "itself"  # or "event", or "run": it ran at the end of the traffic
    waiting: threading.Thread | None = None

    def entry(self) -> dict[str, Any]:
        """The entry of run.json. The status is negative if a signal ended the command."""
        times = {"started_s": round(self.started_s, 3), "ended_s": None if self.ended_s is None else round(self.ended_s, 3)}
        end = {"exit_status": self.child.popen.returncode, "ended_by": self.ended_by}
        return {"name": self.name, "station": self.station, "argv": self.argv, **times, **end}


@dataclass
class EventCommands:
    """The commands of one run, in the order of their starts. `begin_s`: the monotonic instant from which their times count."""

    children: Processes
    net: StationNet
    begin_s: float = 0.0
    started: list[StartedCommand] = field(default_factory=list)
    over: bool = False  # none runs or starts any more

    def start(self, name: str, station: str, words: Sequence[str]) -> None:
        """Start a command at a node; the fields of its words are the addresses of nodes. RunError if its program is missing."""
        addresses = {host.name: host.IP() for host in self.net.hosts}
        self._start(name, station, [word.format_map(addresses) for word in words])

    def act(self, event: Event) -> tuple[str, str]:
        """Carry out the action of an event on the command that it names; returns station and detail for events.csv."""
        last = next(command for command in reversed(self.started) if command.name == event.name)
        ran = last.child.running()
        if ran:
            self.children.stop([last.child], first=signal.SIGKILL if event.command == "kill" else signal.SIGTERM)
            last.ended_by = "event"
        if event.command == "restart":
            self._start(last.name, last.station, last.argv)
        elif not ran:
            return last.station, f"{last.name} had ended"
        return last.station, worded(event)[1]

    def ran_at(self, station: str, since_s: float) -> bool:
        """Whether a command runs at the station, or ran there after a monotonic instant."""
        since_s -= self.begin_s
        return any(c.station == station and (c.ended_s is None or c.ended_s >= since_s) for c in list(self.started))

    def end_all(self) -> None:
        """End those that still run."""
        self.over = True
        left = [command for command in self.started if command.child.running()]
        self.children.stop([command.child for command in left])
        for command in left:
            command.ended_by = "run"
        for command in self.started:
            if command.waiting is not None:
                command.waiting.join()
        self.children.release(command.child for command in self.started)

    def entries(self) -> list[dict[str, Any]]:
        """The entries of run.json."""
        return [command.entry() for command in self.started]

    def _start(self, name: str, station: str, argv: list[str]) -> None:
        host = self.net[station]
        child = self.children.start(
            f"event-{name}",
            [*host.words(argv)],
            netns=host.netns,
            pids=host.pids_of_programs,
            program=Path(argv[0]).name,
            remedy=REMEDY,
            may_end=True,
            any_status=True,
            with_children=True,
        )
        command = StartedCommand(name, station, argv, child, time.monotonic() - self.begin_s)
        self.started.append(command)
        descriptor = os.dup(child.pidfd)  # the child's own is closed when another thread stops it
        command.waiting = threading.Thread(target=self._note_end, args=(command, descriptor), name=child.name, daemon=True)
        command.waiting.start()

    def _note_end(self, command: StartedCommand, descriptor: int) -> None:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)  # pidfd_open(2): readable when the process ends
        poller.poll()
        command.ended_s = time.monotonic() - self.begin_s
        os.close(descriptor)
