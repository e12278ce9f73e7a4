"""The child processes of one run, held by handle: started, watched, and ended by pid, never by name.

A child ends when we stop it or, if it was started with `may_end`, by itself. Any other end is a failure of the run, and
`watch` says which child it was, how it ended, what it printed last, and what to do. What a child prints goes to
`log/<name>.log`.
"""

import itertools
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

from testbed.errors import RunError
from testbed.host import descriptors, namespace

LISTEN = "0A"  # TCP_LISTEN of include/net/tcp_states.h, as proc(5) writes it
POLL_S = 0.005  # between two checks of a condition that no descriptor announces (a line in a log)
# While a text is awaited, all N children are checked at every 20th look; with more than 100 of them at every N/5th, so that the
# checks of a start take time linear in N.
LOOKS_PER_CHECK = 20
TICK_S = 0.5  # between the checks of `watch`
CASCADE_S = 0.2  # in which a process that fails takes others with it
STOP_DEADLINE_S = 10.0  # from the polite signal to SIGKILL
# Time limits hold for up to 100 processes or stations. Each further one adds 0.1 s: its end takes 20 ms, on a loaded host more.
LIMIT_COUNT, EACH_S = 100, 0.1
# Limits of a start are longer in a guest (`MANET_GUEST` is set by it): an emulated machine is 10 to 20 times slower.
SLOWER = 4.0 if "MANET_GUEST" in os.environ else 1.0
# Programs that are started at the same time: each start waits for the kernel and for a turn. In a guest, whose runs are repeated
# byte for byte, their order is fixed.
STARTS_AT_ONCE = 1 if "MANET_GUEST" in os.environ else 8


def limit_s(usual_s: float, count: int) -> float:
    """The time limit (s) for the start or end of `count` processes or stations: `usual_s` for up to LIMIT_COUNT, then longer."""
    return usual_s + EACH_S * max(0, count - LIMIT_COUNT)


def exit_text(status: int) -> str:
    """The end of a process as text, by its `returncode`: `ended with status 1`, `was killed by SIGKILL`."""
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


@dataclass(eq=False)
class Child:
    """One process: `name` is also its log file's."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    pidfd: int
    remedy: str
    may_end: bool = False
    any_status: bool = False
    explain: Callable[[], str | None] = lambda: None  # the program's error message, if it is not in its log
    with_children: bool = False  # whether signals go to its whole process group
    printed_before: int = 0  # bytes that its log had when it started: those of a process of the same name before it
    program: str | None = None  # as messages name it; None: by the command line
    stopped: bool = field(default=False, init=False)  # it ran until `Processes.stop`

    @property
    def pid(self) -> int:
        """The process id."""
        return self.popen.pid

    def running(self) -> bool:
        """Whether the process has not ended yet."""
        return self.popen.poll() is None

    def printed(self) -> str:
        """All that the process has printed so far; empty if it has no log."""
        try:
            with self.log.open("rb") as log:
                log.seek(self.printed_before)
                return log.read().decode(errors="replace")
        except OSError:
            return ""

    def listens(self, transport: str, port: int) -> bool:
        """Whether its network namespace has a socket on this port of TCP or UDP, by the tables of sockets of proc(5)."""
        rows: list[list[str]] = []
        for table in (transport, f"{transport}6"):
            with suppress(OSError):  # without IPv6 there is no second one
                rows += [line.split() for line in Path(f"/proc/{self.pid}/net/{table}").read_text().splitlines()[1:]]
        return any(row[1].endswith(f":{port:04X}") and (transport == "udp" or row[3] == LISTEN) for row in rows)

    def ended_well(self) -> bool:
        """Whether a process that has ended was allowed to end, with this status."""
        return self.may_end and (self.any_status or self.popen.returncode == 0)

    def exit_text(self) -> str:
        """How the process ended: `ended with status 1`, `was killed by SIGKILL`."""
        return exit_text(self.popen.returncode)

    def failure(self) -> RunError:
        """One line for the user. A child that a signal ended had no time to say why: its log's last line is not shown."""
        lines = [line.strip() for line in self.printed().splitlines() if line.strip()]
        words = self.explain() or (lines[-1] if lines and self.popen.returncode >= 0 else "")
        last = f': "{words[:300]}"' if words else ""
        program = self.program or Path(self.popen.args[0]).name  # type: ignore[index, arg-type]  # spawned and adopted ones have lists
        return RunError(f"{self.name}: {program} {self.exit_text()}{last}; {self.remedy}")


class Processes:
    """All children of a run. Leaving the `with` block ends those that are left, youngest first.

    Other threads may start and stop children of their own while one watches (testbed/stages/events.py).
    """

    def __init__(self, log_folder: Path) -> None:
        self.log_folder = log_folder
        self.children: dict[Child, None] = {}  # a dictionary: in their order, and one is found without a look at all
        self.checks: list[Callable[[], None]] = []  # called now and then by watch(); each may raise
        self._descriptors = threading.Lock()  # held while the descriptors of children are closed, or begin to be watched

    def __enter__(self) -> Self:
        self.log_folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop(list(reversed(self.children)))

    def start(
        self,
        name: str,
        argv: Sequence[str | Path | int],
        *,
        netns: str | Path | None = None,
        pids: int | None = None,
        new_pids: bool = False,
        program: str | None = None,
        remedy: str,
        may_end: bool = False,
        any_status: bool = False,
        explain: Callable[[], str | None] = lambda: None,
        stdout: IO[bytes] | None = None,
        many_files: bool = False,
        with_children: bool = False,
    ) -> Child:
        """Start a program, in the network namespace `netns` if given, in a session of its own (no terminal signals).

        `pids`: with `netns`, a descriptor of the pid namespace that it is in; `new_pids`: it is pid 1 of a new one. `program`:
        its name in messages. `may_end`: it may end by itself, with status 0 (`any_status`: with any). `many_files`: it keeps the
        run's limit of open files. `with_children`: it is ended together with the processes that it has started.
        """
        log_path = self.log_folder / f"{name}.log"
        printed_before = log_path.stat().st_size if log_path.exists() else 0

        def spawn() -> subprocess.Popen[bytes]:
            with log_path.open("ab") as log:
                return subprocess.Popen(
                    [str(word) for word in argv],
                    stdin=subprocess.DEVNULL,
                    stdout=stdout or log,
                    stderr=log,
                    start_new_session=True,
                )

        try:
            if netns is None:
                popen = spawn()
            elif new_pids:
                popen = namespace.within_new_pids(netns, spawn)
            else:
                popen = namespace.within(netns, spawn, pids=pids)
        except FileNotFoundError as problem:
            raise RunError(f"{problem.filename}: not found; `manet doctor` says how to get it") from None
        if not many_files:
            descriptors.restore_limit(popen.pid)
        pidfd, rules = os.pidfd_open(popen.pid), (may_end, any_status, explain, with_children)
        child = Child(name, popen, log_path, pidfd, remedy, *rules, printed_before, program)
        self.children[child] = None
        return child

    def adopt(self, name: str, popen: subprocess.Popen[bytes], remedy: str) -> Child:
        """Watch a process that another module started and will end (a station's shell)."""
        child = Child(name, popen, self.log_folder / f"{name}.log", os.pidfd_open(popen.pid), remedy)
        self.children[child] = None
        return child

    def release(self, children: Iterable[Child]) -> None:
        """Stop watching children that another module will end."""
        for child in list(children):
            self._forget(child)

    def stop(self, children: Iterable[Child], *, first: int = signal.SIGTERM, stations: int = 0) -> None:
        """Ask all of them to end, wait, then end by force what is left. Their exit status stays readable. `stations`: how many a
        child serves, if it takes longer to end with more of them."""
        stopping = [child for child in children if child in self.children]
        for child in stopping:
            child.stopped = child.stopped or child.running()
            _signal(child, first)
        deadline = time.monotonic() + limit_s(STOP_DEADLINE_S, len(stopping) + stations)
        for child in stopping:
            try:
                child.popen.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(child, signal.SIGKILL)
                child.popen.wait()
            self._forget(child)

    def require_whole(self, stopped: Iterable[Child]) -> None:
        """RunError if one of these children had ended before it was stopped, with whatever status, or ended badly: its output is
        incomplete. One can end after the last look."""
        broken = [child for child in stopped if not child.stopped or child.popen.returncode != 0]
        if broken:
            raise [*self._failed(), *broken][0].failure()  # the oldest is the cause, as of `check`

    def check(self) -> None:
        """Raise for a child that ended unexpectedly, or for a check that fails.

        When one process ends, others that depend on it may end too, even before its own end is detected (the medium's devices
        vanish first). Children are started in the order of their dependence: the oldest is the cause.
        """
        for check in self.checks:  # first: a full disk is the cause of the failures that follow
            check()
        if self._failed():
            time.sleep(CASCADE_S)
            if failed := self._failed():  # another thread may have stopped it: a flow of a view that it takes back
                raise failed[0].failure()

    def _failed(self) -> list[Child]:
        return [c for c in list(self.children) if not c.stopped and not c.running() and not c.ended_well()]

    def wait_for_text(self, children: Iterable[Child], text: str, *, within_s: float, stations: int = 0) -> None:
        """Wait until each child has printed `text`. The limit is `within_s`, longer for many children (`limit_s`) and in a guest
        (SLOWER); `stations`: as of `stop`. Children start together: while the first is awaited the others become ready."""
        waiting = list(children)
        within_s = limit_s(within_s, len(waiting) + stations) * SLOWER
        deadline, looks = time.monotonic() + within_s, itertools.count()
        for child in waiting:
            while text not in child.printed():
                if next(looks) % max(LOOKS_PER_CHECK, len(self.children) // 5) == 0:
                    self.check()
                if time.monotonic() > deadline:
                    self.check()
                    raise RunError(f'{child.name}: no "{text}" within {within_s:g} s (see {child.log}); {child.remedy}')
                time.sleep(POLL_S)

    def watch(
        self,
        *,
        until: float | None = None,
        ended: Iterable[Child] = (),
        on_tick: Callable[[], None] = lambda: None,
    ) -> bool:
        """Sleep until the monotonic instant `until`, or until all of `ended` have ended (then True).

        Wakes at once when any child ends, and every TICK_S for the checks.
        """
        awaited = list(ended)
        with selectors.DefaultSelector() as selector:
            with self._descriptors:
                for child in list(self.children):
                    if child.running():
                        selector.register(child.pidfd, selectors.EVENT_READ, child)
            while True:
                # before the check, which must see how the last of them ended
                done = bool(awaited) and not any(child.running() for child in awaited)
                self.check()
                on_tick()
                if done:
                    return True
                left = float("inf") if until is None else until - time.monotonic()
                if left <= 0:
                    return False
                for key, _events in selector.select(min(left, TICK_S)):
                    selector.unregister(key.fd)

    def _forget(self, child: Child) -> None:
        with self._descriptors:
            if child in self.children:
                del self.children[child]
                os.close(child.pidfd)


def _signal(child: Child, number: int) -> None:
    """Signal a child that has not been waited for: its pid cannot have gone to another process."""
    if not child.running():
        return
    if child.with_children:  # the leader of its own session is that of its group
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
    else:
        child.popen.send_signal(number)
