"""Programs of a run that were stopped, traced or frozen: their numbers are not those of the scenario (docs/verdict.md).

A stopped program takes no turn and asks for none, so the time that programs wait for a processor (testbed/runs/waits.py) does not
show it. Two sources show it, and neither costs more than a few system calls each half second, and some more each two seconds:

- The kernel reports the stop and the continuation of a child of this process to waitid(2), however short the stop was. These are
  the medium, captures, daemons, samplers and the programs of flows.
- The programs that those have started (iperf3 below its client) are looked at in /proc/PID/stat, and with them the programs of
  flows and a few other children at a time: a tracer's stop is reported to the tracer alone, a frozen control group to nobody.

A stop of this process itself is seen by SIGCONT. The commands of a scenario's events may stop as they like, and so may iperf3
while its client lets it close. Not seen: a program below another one that is stopped for less than half a second, one in a
session of its own or a control group for less than two, and a tracer that stops a program only for the length of a system call
(strace).
"""

import os
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from testbed.host import cgroup, kernel_files
from testbed.host.processes import SLOWER, Processes
from traffic.programs.iperf_client import CLOSING

TICK_S = 0.5  # programs below a child are looked at
ROUND_S = 2.0  # they are listed again, and some children are looked at, CHILDREN_AT_ONCE of them and those of flows
CHILDREN_AT_ONCE = 6  # reading a stat file takes 10 us
# As a stall of the medium (docs/verdict.md): TCP's shortest RTO is 0.2 s.
VOID_STOPPED_S = 0.5
STOPPED_STATES = ("T", "t")  # proc_pid_stat(5): stopped by a signal, by a tracer
FROZEN_IN = "do_freezer_trap"  # /proc/PID/wchan of a process in a frozen control group of version 2
THIS_PROCESS = "the run's own process"
# They record the run and take no part in it: a stop costs samples, no throughput.
RECORDERS = ("tcpdump-", "captures", "kernel-tcp")
MAX_GAP_S = 5.0 * SLOWER  # between two looks: a frozen control group, a suspended machine
FLOW, EVENT = "flow", "event-"  # the names of the programs of flows, and of commands of events, begin so
MAX_REASONS = 5


@dataclass
class StopSummary:
    """How long each program was seen stopped, seconds; zero: it had gone on before the next look."""

    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, program: str, stopped_s: float) -> None:
        """Add one stop."""
        self.seconds[program] = self.seconds.get(program, 0.0) + stopped_s

    def judgement(self) -> tuple[str, list[str]]:
        """`valid`, `suspect` or `void`, as in the medium's verdict, and the reasons."""
        if not self.seconds:
            return "valid", []
        cause = "was stopped by a signal, a tracer or a frozen control group"
        reasons = [
            f"{program} {cause}{f' for {stopped_s:.1f} s' if stopped_s >= 0.05 else ''}: run it again"
            for program, stopped_s in list(self.seconds.items())[:MAX_REASONS]
        ]
        lost = max((s for program, s in self.seconds.items() if not program.startswith(RECORDERS)), default=0.0)
        return ("void" if lost >= VOID_STOPPED_S else "suspect"), reasons

    def report(self) -> dict[str, float]:
        """`stopped` of verdict.json (formats/air.md)."""
        return {program: round(stopped_s, 3) for program, stopped_s in self.seconds.items()}


def own_turns_s() -> float:
    """For how long the first thread of this process has run or waited for a processor, seconds; 0 from a kernel that does not
    count it (CONFIG_SCHED_INFO)."""
    try:
        ran_ns, waited_ns, _turns = kernel_files.read("/proc/self/schedstat").split()
    except (OSError, ValueError):
        return 0.0
    return (int(ran_ns) + int(waited_ns)) / 1e9


class StoppedPrograms:
    """Looks at the processes of a run's control group, from `watching` on; `tick` may be called more often than TICK_S."""

    def __init__(
        self,
        group: Path | None,
        children: Processes,
        *,
        without: Collection[str] = (),
        only_children: bool = False,
        clock: Callable[[], float] = time.monotonic,
        turns: Callable[[], float] = own_turns_s,
    ) -> None:
        """`without`: names of children that may stop as they like (the shells of stations). `only_children`: other programs may,
        too, unless a child has started them (in a session they are its user's). `clock` and `turns` are in seconds."""
        self.summary, self._only_children = StopSummary(), only_children
        self._group, self._children, self._without, self._clock = group, children, frozenset(without), clock
        self._since: dict[int, tuple[str, float]] = {}  # the stopped ones, by process id
        self._ticks = False
        self._round_s, self._frozen = 0.0, set[int]()
        self._others, self._below = list[int](), list[int]()  # that are no children; of those, the ones below a child
        self._freezer = cgroup.version_1_mounts().get("freezer")
        self._turns, self._turns_s = turns, turns()
        self._at_s = clock()
        self._next_child = 0
        self._continued = False
        _on_continue(self._note_own_stop)

    def begin(self) -> None:
        """The traffic begins, and `tick` is called regularly."""
        self.tick(at_once=True)
        self._ticks, self._round_s = True, self._clock()

    def tick(self, *, at_once: bool = False) -> None:
        """Look, if TICK_S has passed since the last look."""
        now_s = self._clock()
        if now_s - self._at_s < TICK_S and not at_once:
            return
        self._judge_own_gap(now_s - self._at_s)
        self._at_s = now_s
        self._take_reports(now_s)
        if self._ticks:
            self._sample(now_s)

    def end(self) -> StopSummary:
        """The traffic is over: look a last time. Those that are stopped still count until now."""
        self._ticks = False
        self.tick(at_once=True)
        for pid in list(self._since):
            self._goes_on(pid, self._clock())
        _on_continue(signal.SIG_DFL)
        return self.summary

    def _note_own_stop(self, _number: int, _frame: object) -> None:
        self._continued = True

    def _judge_own_gap(self, gap_s: float) -> None:
        """Add a stop of this process; its length is known during the traffic only, when `tick` is called regularly. Time in which
        it worked or waited for a processor is no stop: a host too loaded is that of the medium and of waits.py to report."""
        was_stopped, self._continued = self._continued, False
        before_s, self._turns_s = self._turns_s, self._turns()
        stopped_s = gap_s - (self._turns_s - before_s)
        if was_stopped or (self._ticks and stopped_s > MAX_GAP_S):
            self.summary.add(THIS_PROCESS, max(0.0, stopped_s - TICK_S) if self._ticks else 0.0)

    def _named(self) -> dict[int, str]:
        """The names of the children, by process id."""
        return {child.pid: child.name for child in list(self._children.children)}

    def _take_reports(self, now_s: float) -> None:
        """Take the kernel's reports about children, without those of their ends."""
        for pid, is_stopped in _reports():
            name = self._named().get(pid)
            if name is None or self._may_stop(name):
                continue
            if is_stopped:
                self._since.setdefault(pid, (name, now_s))
            elif pid in self._since:
                self._goes_on(pid, now_s)
            else:
                self.summary.add(name, 0.0)

    def _sample(self, now_s: float) -> None:
        in_round = now_s >= self._round_s
        named = self._named() if in_round or self._since else {}
        if in_round:
            self._round_s = now_s + ROUND_S
            self._others = [pid for pid in cgroup.members(self._group) if pid not in named and pid != os.getpid()]
            self._below = []
        for pid in [*self._others, *self._chosen(named)] if in_round else {*self._below, *self._since}:
            state, session = self._state(pid)
            ours = in_round and session in named
            if ours and pid not in named:
                self._below.append(pid)
            if state not in STOPPED_STATES and not (ours and self._is_frozen(pid, state)):
                if in_round or pid not in self._frozen:
                    self._goes_on(pid, now_s)
            elif pid not in self._since and (name := self._name(pid, session, named or self._named())) is not None:
                self._since[pid] = (name, now_s)
                if state not in STOPPED_STATES:
                    self._frozen.add(pid)
        for pid in self._since.keys() - set(self._others) - named.keys():
            self._goes_on(pid, now_s)  # it has ended

    def _chosen(self, named: dict[int, str]) -> list[int]:
        """The programs of flows, and the next few of the other children but recorders."""
        ours = {pid: name for pid, name in named.items() if not self._may_stop(name)}
        flows = [pid for pid, name in ours.items() if name.startswith(FLOW)]
        others = [pid for pid, name in ours.items() if not name.startswith((FLOW, *RECORDERS))]
        first = self._next_child % max(1, len(others))
        self._next_child = first + CHILDREN_AT_ONCE
        return [*flows, *others[first : first + CHILDREN_AT_ONCE]]

    def _name(self, pid: int, session: int, named: dict[int, str]) -> str | None:
        """The name of a child, or of a program and the child below which it runs: each child has a session of its own. None for
        those that may stop."""
        if pid in named:
            return named[pid]
        owner = named.get(session)
        if self._only_children if owner is None else self._may_stop(owner) or self._text(session, "comm") == CLOSING:
            return None
        program = self._text(pid, "comm")
        return f"{owner} ({program})" if owner else program or None

    def _may_stop(self, child: str) -> bool:
        return child in self._without or child.startswith(EVENT)

    def _is_frozen(self, pid: int, state: str) -> bool:
        """Whether its control group is frozen; version 1 shows a frozen sleep as one that cannot be interrupted."""
        if state == "S":
            return self._text(pid, "wchan") == FROZEN_IN
        if state != "D" or self._freezer is None:
            return False
        group = re.search(r":freezer:/(.*)", self._text(pid, "cgroup"))
        return group is not None and cgroup.is_frozen(self._freezer / group[1])

    def _text(self, pid: int, name: str) -> str:
        """A short file of the process; empty if it has ended."""
        try:
            return kernel_files.read(f"/proc/{pid}/{name}").decode(errors="replace").rstrip("\n")
        except OSError:
            return ""

    def _state(self, pid: int) -> tuple[str, int]:
        """State and session of a process; empty if it has ended."""
        try:
            fields = self._text(pid, "stat").rpartition(")")[2].split(maxsplit=4)
            return fields[0], int(fields[3])
        except (IndexError, ValueError):
            return "", 0

    def _goes_on(self, pid: int, now_s: float) -> None:
        self._frozen.discard(pid)
        if pid in self._since:
            name, since_s = self._since.pop(pid)
            self.summary.add(name, now_s - since_s)


def _on_continue(handler: Callable[[int, object], None] | signal.Handlers) -> None:
    """Handle SIGCONT so; in another thread than the main one, as a script may have, its own stops are not seen."""
    with suppress(ValueError):
        signal.signal(signal.SIGCONT, handler)


def _reports() -> Iterator[tuple[int, bool]]:
    """The kernel's reports on children of this process that were not taken yet: process id, and whether it is stopped now."""
    while True:
        try:
            report = os.waitid(os.P_ALL, 0, os.WSTOPPED | os.WCONTINUED | os.WNOHANG)
        except ChildProcessError:
            return
        if report is None:
            return
        yield report.si_pid, report.si_status != signal.SIGCONT
