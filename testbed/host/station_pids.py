"""The pid namespace of a run's stations (pid_namespaces(7)).

The programs of all stations see and signal each other, as in Mininet. Everything else of the run is outside: its own process,
medium, captures, samples, and the testbed's own programs of flows. No signal of a station reaches these, not even `kill -9 -1`,
and a station's /proc does not show them. The run itself sees all: it is in the parent namespace, which has numbers of its own.

pid 1 is sleep(1), made by pid 1 of the run, and lasts as long as the run. It ignores SIGCHLD, so that orphans leave no zombies.
"""

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from testbed.errors import RunError
from testbed.host import mounts, namespace
from testbed.host.state import STATE_FOLDER

PROC = STATE_FOLDER / "proc"  # the /proc of the namespace, in the run's own folder
NAME = "stations"  # of pid 1: no user's program is called so, and none is ended by this name
PID_MAX, LAST_PID = Path("/proc/sys/kernel/pid_max"), Path("/proc/sys/kernel/ns_last_pid")
MESSAGE_BYTES = 4096


def make() -> None:
    """Make the namespace, in a process that has one thread and the run's mounts. Raises RunError."""
    # A number that a station's program has printed is none of another process outside: signalled there it is an error. A kernel
    # without CONFIG_CHECKPOINT_RESTORE counts from 1 in both.
    with contextlib.suppress(OSError):
        LAST_PID.write_text(str(int(PID_MAX.read_text()) // 2))
    PROC.mkdir()
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    read, write = os.pipe()
    namespace.unshare(namespace.CLONE_NEWPID)
    if os.fork() == 0:
        _be_first(write)
    namespace.children_in(own)
    os.close(own)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        problem = answer.read(MESSAGE_BYTES)  # empty when the program has started
    if problem:
        raise RunError(problem.decode(errors="replace"))


def _be_first(write: int) -> NoReturn:
    """Be pid 1: mount its /proc, and become sleep(1). Its root is visible to stations, in /proc/1, so it has their mounts."""
    try:
        mounts.mount("proc", PROC, "proc", namespace.MS_NOSUID | namespace.MS_NODEV | namespace.MS_NOEXEC)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        program = STATE_FOLDER / NAME
        program.symlink_to(shutil.which("sleep") or "/bin/sleep")
        namespace.unshare(namespace.CLONE_NEWNS)
        mounts.private()
        _take_folders()
        os.execv(program, ["sleep", "infinity"])
    except (RunError, OSError) as problem:
        os.write(write, str(problem).encode())
    os._exit(1)


@contextlib.contextmanager
def opened() -> Iterator[int]:
    """A descriptor of the namespace, in a process of the run."""
    descriptor = os.open(PROC / "1" / "ns" / "pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def enter(pids: int) -> None:
    """Have the children of the calling thread, which has a mount namespace of its own, in the namespace. Raises RunError."""
    _take_folders()
    namespace.children_in(pids)


def _take_folders() -> None:
    """In this mount namespace: /proc is that of the stations, without the run's below it, and the run's folder read-only. A
    station may use the sockets there, but not remove or replace them, nor fill its memory."""
    mounts.detach(Path("/proc"))
    mounts.move(PROC, Path("/proc"))
    mounts.read_only(STATE_FOLDER)
