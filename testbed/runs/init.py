"""pid 1 of an isolated run (testbed/runs/isolation.py): forks the run, waits for orphans, and removes the run's cgroup and state
file at its end."""

import argparse
import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from testbed.host import cgroup, descriptors, namespace, neighbours, station_pids
from testbed.host.state import STATE_FOLDER

# The folder of sockets of a run is memory of the host. Sockets take none; lock and state files of routing daemons a page (4 KiB)
# each: 2000 stations with two of them take 16 MiB.
SOCKETS_MEMORY_BYTES = 32 << 20
PASSED = ("outside", "requests")  # arguments that are descriptors; "neighbours" is a list of them


class ReportPipe:
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
    parser = argparse.ArgumentParser(prog="testbed.runs.init", description="started by the testbed itself")
    parser.add_argument("--lifeline", type=int, required=True)
    parser.add_argument("--report", type=int, required=True)
    parser.add_argument("--cgroup", type=Path, help="of the run; without it the run has none")
    parser.add_argument("--state", required=True, help="name of the run's file in the folder of state files")
    parser.add_argument("--module", required=True)
    parser.add_argument("--arguments", type=json.loads, required=True)
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the run decides; when it ends, so does this
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGHUP})  # held by `Isolated` until here
    passed = [options.arguments[name] for name in PASSED if options.arguments.get(name) is not None]
    for descriptor in (options.lifeline, options.report, *passed, *options.arguments["neighbours"]):
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
    if options.cgroup is None or cgroup.remove(options.cgroup):
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
    if options.cgroup is not None:
        cgroup.enter(options.cgroup)
    descriptors.raise_limit()
    neighbours.count_with(options.arguments["neighbours"])
    # SIGINT stays ignored until the module handles it: `manet` has it too, and lets go
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    threading.Thread(target=_follow_lifeline, args=(options.lifeline,), name="lifeline", daemon=True).start()
    status: int = importlib.import_module(options.module).inside(options.arguments, ReportPipe(options.report))
    return status


def _follow_lifeline(descriptor: int) -> None:
    """End of file means that `manet` closed the pipe or died. Sends SIGTERM until it is handled (imports may still be under
    way)."""
    os.read(descriptor, 1)
    while True:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
