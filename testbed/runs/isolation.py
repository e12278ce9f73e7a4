"""One isolated run: a child process in new mount, network and pid namespaces and its own cgroup.

Several runs can so run side by side without sharing a name, and when the first process of the pid namespace ends, the kernel ends
all others (pid_namespaces(7)). The processes:

    manet            `Isolated`: starts the keeper, holds the lifeline, reads what the run reports
      keeper         in the first pid namespace; its death kills the run: a fork of the template (testbed/runs/template.py),
                     or unshare(1) --kill-child for a run with a terminal
        init         `main` below as pid 1: waits for orphans, and last removes the run's cgroup and state file
          stations   pid 1 of the pid namespace of the stations' programs (testbed/host/station_pids.py)
          the run    `testbed.runs.run` or `testbed.runs.prompt`, in the cgroup with all its children

The lifeline is a pipe to which nothing is written: when `manet` closes it, or dies for any reason, the run reads end-of-file
and takes itself down in order; captured data is kept. Init removes the cgroup and the state file, whether `manet` still runs
or not; `manet` removes them too, in case init was killed. The run has its own session, so that Ctrl-C on the terminal
reaches `manet` alone (except for the prompt, which needs the terminal).
"""

import argparse
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.errors import UsageError
from testbed.host import cgroup, descriptors, namespace, neighbours, station_pids
from testbed.host.state import STATE_FOLDER, Process, RunState
from testbed.programs import ROOT
from testbed.runs.template import TEMPLATE, Keeper
from testbed.signals import interrupts_noted

# The folder of sockets of a run is memory of the host. Sockets take none; lock and state files of routing daemons a page (4 KiB)
# each: 1000 stations with two of them take 8 MiB.
SOCKETS_MEMORY_BYTES = 16 << 20
TEARDOWN_DEADLINE_S = 40.0  # from the end of the lifeline to SIGKILL: above processes.STOP_DEADLINE_S, several stages deep
PASSED = ("outside", "requests")  # arguments that are descriptors; "neighbours" is a list of them
UNSHARE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "--propagation", "private"]


class Isolated:
    """The parent's handle on one isolated run of `module.inside(arguments)`; a `with` block that leaves nothing running."""

    def __init__(
        self,
        run_id: str,
        directory: Path,
        module: str,
        arguments: dict,
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
        group = cgroup.require_mount() / cgroup.PARENT / self.run_id
        self.state = RunState(self.run_id, str(self.directory), str(group), owner)
        self.state.save()  # first, so that `clean` finds whatever comes next
        try:
            self.cgroup = cgroup.create(self.run_id)
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, _type: object, _value: object, _trace: TracebackType | None) -> None:
        self._end()

    def reports(self) -> Iterator[dict]:
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
        try:
            self._keeper.wait(None if self._lifeline is not None else TEARDOWN_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()

    def _start(self) -> None:
        lifeline_read, self._lifeline = os.pipe()
        self._report_fd, report_write = os.pipe()
        inner = ["--lifeline", str(lifeline_read), "--report", str(report_write)]
        inner += ["--cgroup", str(self.cgroup), "--state", self.state.path.name]
        passed = [lifeline_read, report_write]
        arguments = dict(self.arguments)
        if self.reach_outside:
            passed.append(os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
            arguments["outside"] = passed[-1]
        if self.requests is not None:
            passed.append(self.requests)
            arguments["requests"] = self.requests
        neighbours.raise_limits()
        arguments["neighbours"] = neighbours.open_counts()
        passed += arguments["neighbours"]
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
        argv = [*UNSHARE, sys.executable, "-P", "-m", "testbed.runs.isolation", *inner]
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
            if cgroup.remove(Path(self.state.cgroup)):
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
    """A process started in this block begins with SIGINT and SIGHUP blocked, until `main` has set their handlers; this process
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


class Report:
    """The run's end of the pipe to `manet`: one JSON object a line. A closed pipe is no error."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, **message: object) -> None:
        """Send one message."""
        with contextlib.suppress(OSError):
            os.write(self._descriptor, json.dumps(message).encode() + b"\n")


def main(arguments: list[str] | None = None) -> int:
    """pid 1 of the new namespaces. Forks the run before any thread exists, then waits for every orphan.

    It stays out of the run's cgroup, which it removes at the end.
    """
    parser = argparse.ArgumentParser(prog="testbed.runs.isolation", description="started by the testbed itself")
    parser.add_argument("--lifeline", type=int, required=True)
    parser.add_argument("--report", type=int, required=True)
    parser.add_argument("--cgroup", type=Path, required=True)
    parser.add_argument("--state", required=True, help="name of the run's file in the folder of state files")
    parser.add_argument("--module", required=True)
    parser.add_argument("--arguments", type=json.loads, required=True)
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the run decides; when it ends, so does this
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGHUP})  # held by `Isolated` until here
    given = [options.arguments[name] for name in PASSED if options.arguments.get(name) is not None]
    for descriptor in (options.lifeline, options.report, *given, *options.arguments["neighbours"]):
        os.set_inheritable(descriptor, False)  # children must not keep the pipes open
    # opened before the run mounts a folder of its own over it
    states = os.open(STATE_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    # a folder of the same name in every run: short paths for sockets, and no two runs see each other's
    namespace.mount_tmpfs(STATE_FOLDER, SOCKETS_MEMORY_BYTES)
    station_pids.make()
    run = os.fork()
    if run == 0:
        os.close(states)
        return _child_main(options)
    os.close(options.report)
    code = _reap_until(run)
    _kill_remaining()
    if cgroup.remove(options.cgroup):
        with contextlib.suppress(OSError):  # `manet` was faster
            os.unlink(options.state, dir_fd=states)
    return 128 - code if code < 0 else code


def _reap_until(run: int) -> int:
    """Wait for the run and return its exit code (negative: a signal); reap orphans that end before it."""
    while True:
        pid, status = os.wait()
        if pid == run:
            return os.waitstatus_to_exitcode(status)


def _kill_remaining() -> None:
    """Kill what the run has left in this pid namespace. The kernel would do so with pid 1, but the cgroup must be empty
    before."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _child_main(options: argparse.Namespace) -> int:
    cgroup.enter(options.cgroup)
    descriptors.raise_limit()
    neighbours.count_with(options.arguments["neighbours"])
    # SIGINT stays ignored until the module handles it: `manet` has it too, and lets go
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    threading.Thread(target=_follow_lifeline, args=(options.lifeline,), name="lifeline", daemon=True).start()
    return importlib.import_module(options.module).inside(options.arguments, Report(options.report))


def _follow_lifeline(descriptor: int) -> None:
    """End of file means that `manet` closed the pipe or died. Sends SIGTERM until it is handled (imports may still be under
    way)."""
    os.read(descriptor, 1)
    while True:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
