"""One isolated run: a child process in new mount, network and pid namespaces and its own cgroup.

Several runs can so run side by side without sharing a name, and when the first process of the pid namespace ends, the kernel ends
all others (pid_namespaces(7)). The processes:

    manet            `Isolated`: starts the keeper, holds the lifeline, reads what the run reports
      keeper         in the first pid namespace; its death kills the run: a fork of the template (testbed/runs/template.py),
                     or unshare(1) --kill-child for a run with a terminal
        init         testbed/runs/init.py as pid 1: waits for orphans, and last removes the run's cgroup and state file
          stations   pid 1 of the pid namespace of the stations' programs (testbed/host/station_pids.py)
          the run    `testbed.runs.run` or `testbed.runs.prompt`, in the cgroup with all its children

The lifeline is a pipe to which nothing is written: when `manet` closes it, or dies for any reason, the run reads end-of-file
and takes itself down in order; captured data is kept. Init removes the cgroup and the state file, whether `manet` still runs
or not; `manet` removes them too, in case init was killed. The run has its own session, so that Ctrl-C on the terminal
reaches `manet` alone (except for the prompt, which needs the terminal).

A run of an ordinary user has no cgroup: its processes are those of its pid namespace, and its namespaces belong to the user's
user namespace (testbed/host/privileges.py).
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testbed.errors import UsageError
from testbed.host import cgroup, neighbours, privileges
from testbed.host.processes import limit_s
from testbed.host.state import Process, RunState, processes_of
from testbed.programs import ROOT
from testbed.runs.template import TEMPLATE, Keeper
from testbed.signals import interrupts_noted

# From the end of the lifeline to SIGKILL: above processes.STOP_DEADLINE_S, several stages deep. `limit_s` adds to it.
TEARDOWN_DEADLINE_S = 40.0
UNSHARE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "--propagation", "private"]


class Isolated:
    """The parent's handle on one isolated run of `module.inside(arguments)`; a `with` block that leaves nothing running."""

    def __init__(
        self,
        run_id: str,
        directory: Path,
        module: str,
        arguments: Mapping[str, object],
        *,
        terminal: bool = False,
        reach_outside: bool = False,
        requests: int | None = None,
    ) -> None:
        """`requests`: a socket whose requests the run serves, by the descriptor that its arguments name; closed here as soon as
        the run has it."""
        self.run_id, self.directory, self.module, self.arguments, self.terminal = run_id, directory, module, arguments, terminal
        self.reach_outside, self.requests = reach_outside, requests
        self._lifeline: int | None = None

    def __enter__(self) -> Self:
        owner = Process.of(os.getpid())
        assert owner is not None
        self.cgroup = None if privileges.rootless() else cgroup.require_mount() / cgroup.PARENT / self.run_id
        self.state = RunState(self.run_id, str(self.directory), str(self.cgroup or ""), owner)
        self.state.save()  # first, so that `clean` finds whatever comes next
        try:
            if self.cgroup is not None:
                cgroup.create(self.run_id)
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, _type: object, _value: object, _trace: TracebackType | None) -> None:
        self._end()

    def reports(self) -> Iterator[dict[str, Any]]:
        """The messages of the run, until it has ended."""
        with os.fdopen(self._report_fd, "rb", closefd=False) as stream:
            for line in stream:
                yield json.loads(line)

    def let_go(self) -> None:
        """Ask the run to end in order; returns at once. Safe from any thread."""
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            os.close(lifeline)

    def wait(self) -> None:
        """Wait for the end of the run, which is ended by force if it takes too long after `let_go`."""
        limited = self._lifeline is None
        try:
            self._keeper.wait(limit_s(TEARDOWN_DEADLINE_S, len(processes_of(self.state))) if limited else None)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()

    def _start(self) -> None:
        lifeline_read, self._lifeline = os.pipe()
        self._report_fd, report_write = os.pipe()
        inner = ["--lifeline", str(lifeline_read), "--report", str(report_write)]
        inner += ["--state", self.state.path.name]
        if self.cgroup is not None:
            inner += ["--cgroup", str(self.cgroup)]
        passed = [lifeline_read, report_write]
        arguments = dict(self.arguments)
        if self.reach_outside:
            passed.append(os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
            arguments["outside"] = passed[-1]
        if self.requests is not None:
            passed.append(self.requests)
            arguments["requests"] = self.requests
        neighbours.raise_limits()
        counts = arguments["neighbours"] = neighbours.open_counts()
        passed += counts
        inner += ["--module", self.module, "--arguments", json.dumps(arguments)]
        (self.directory / "log").mkdir(parents=True, exist_ok=True)
        try:
            with _interrupts_deferred():
                self._keeper = self._with_terminal(inner, passed) if self.terminal else self._forked(inner, passed)
        finally:
            for descriptor in passed:
                os.close(descriptor)
        self.state.keeper = Process.of(self._keeper.pid)
        self.state.save()

    def _forked(self, inner: list[str], passed: list[int]) -> Keeper:
        with (self.directory / "log" / "run.log").open("ab") as log:
            return TEMPLATE.fork(inner, log.fileno(), passed)

    def _with_terminal(self, inner: list[str], passed: list[int]) -> subprocess.Popen[bytes]:
        # -P: only the project itself may shadow installed modules
        argv = [*UNSHARE, sys.executable, "-P", "-m", "testbed.runs.init", *inner]
        try:
            return subprocess.Popen(argv, pass_fds=passed, env={**os.environ, "PYTHONPATH": str(ROOT)})
        except FileNotFoundError:
            raise UsageError("unshare: not found; apt-get install util-linux") from None

    def _end(self) -> None:
        self.let_go()
        try:
            if hasattr(self, "_keeper"):
                self._end_keeper()
        finally:
            if hasattr(self, "_report_fd"):
                os.close(self._report_fd)
            if self.cgroup is None or cgroup.remove(self.cgroup):
                self.state.remove()

    def _end_keeper(self) -> None:
        """Wait for the run to end in order. A second Ctrl-C is an order to end it by force."""
        try:
            self.wait()
        except KeyboardInterrupt:
            self._keeper.kill()
            self._keeper.wait()
            raise


@contextlib.contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """A process started in this block begins with SIGINT and SIGHUP blocked, until init has set their handlers; this process
    gets its own signals, and SIGTERM, after the block. The keeper keeps them blocked: the end of the terminal must not kill it,
    and the run with it.

    A blocked signal goes to another thread of this process (a library's), and Python still runs the handler in this one. So the
    handler only records the signal until the keeper has started.
    """
    with interrupts_noted():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
