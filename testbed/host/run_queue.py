"""Time for which a run's programs were ready to run but waited for a processor: /proc/PID/task/TID/schedstat.

The file has three numbers a task (the kernel's Documentation/scheduler/sched-stats.rst): nanoseconds on a processor, nanoseconds
waiting for one, and the number of time slices. They only rise, and the kernel keeps them anyway. A kernel without scheduler
information has no such file, or zeroes in it.
"""

import errno
import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple, Self

from testbed.host import cgroup

# The medium reports its own lateness; captures, TCP samples and the stations' idle shells change nothing on the air.
IGNORED_PROGRAMS = frozenset({b"manet-medium", b"manet-tcp", b"manet-capture", b"tcpdump", b"bash"})
FILE_BYTES = 128  # more than a schedstat or a comm file has
# Tasks whose files stay open. Those of further ones are opened at each `read`, some 40 us each, so that 2,000 stations with a
# routing daemon each fit into 20,000 open files.
MAX_KEPT = 900


class WaitTime(NamedTuple):
    """Time for which one or several tasks waited for a processor (ns), and number of time slices (turns)."""

    ns: int = 0
    turns: int = 0

    def __sub__(self, other: Self) -> "WaitTime":
        return WaitTime(self.ns - other.ns, self.turns - other.turns)

    @classmethod
    def parse(cls, schedstat: bytes) -> Self:
        """Parse the content of a schedstat file. Raises ValueError."""
        _ran_ns, waited_ns, turns = schedstat.split()
        return cls(int(waited_ns), int(turns))


class Task(NamedTuple):
    """One thread: descriptors of its process's `comm` and of its own `schedstat`. They stay valid over execve(2), and fail with
    ESRCH after the thread's end, also if another thread gets its number."""

    comm: int
    schedstat: int

    @classmethod
    def open(cls, thread: Path) -> Self:
        """Open the files of /proc/TID. Raises OSError."""
        process = (thread / "status").read_text().partition("\nTgid:\t")[2].partition("\n")[0]
        comm = os.open(thread.with_name(process) / "comm", os.O_RDONLY)
        try:
            return cls(comm, os.open(thread / "schedstat", os.O_RDONLY))
        except OSError:
            os.close(comm)
            raise

    def program(self) -> bytes:
        """The name of its program."""
        return os.pread(self.comm, FILE_BYTES, 0).rstrip(b"\n")

    def wait(self) -> WaitTime:
        """Its wait since it started."""
        return WaitTime.parse(os.pread(self.schedstat, FILE_BYTES, 0))

    def close(self) -> None:
        """Close both files."""
        os.close(self.comm)
        os.close(self.schedstat)


class RunQueue:
    """The tasks of a control group (None: as of cgroup.members); `read` gives the wait of each since it started. The files of
    MAX_KEPT stay open from one `read` to the next, until `close`: reading an open file of proc(5) takes a tenth of the time of
    opening it."""

    def __init__(self, group: Path | None, *, without: Collection[Path] = ()) -> None:
        """`without`: groups within the group that are left out: the processor time of their tasks is limited, so they wait."""
        self.group, self.without = group, without
        self._tasks: dict[int, Task] = {}
        self._ignored: set[int] = set()

    def read(self) -> dict[int, WaitTime]:
        """The wait by thread id. A task that ends meanwhile is left out. OSError if too many files are open."""
        threads = cgroup.threads(self.group, self.without)
        self._forget(self._tasks.keys() - set(threads))
        self._ignored.intersection_update(threads)
        waits: dict[int, WaitTime] = {}
        for thread in threads:
            if thread in self._ignored:
                continue
            try:
                wait = self._wait(thread)
                if wait is not None:
                    waits[thread] = wait
            except (OSError, ValueError) as problem:
                if isinstance(problem, OSError) and problem.errno in (errno.EMFILE, errno.ENFILE):
                    raise  # a wait that is not measured would count as none
                self._forget({thread})
        return waits

    def close(self) -> None:
        """Close all files."""
        self._forget(set(self._tasks))

    def _wait(self, thread: int) -> WaitTime | None:
        """Its wait; None if its program is ignored. A child that has just been forked has its parent's name, so only ignored
        tasks are remembered."""
        task = self._tasks.get(thread) or Task.open(Path(f"/proc/{thread}"))
        if len(self._tasks) < MAX_KEPT:
            self._tasks[thread] = task
        try:
            if task.program() not in IGNORED_PROGRAMS:
                return task.wait()
        finally:
            if thread not in self._tasks:
                task.close()
        self._forget({thread})
        self._ignored.add(thread)
        return None

    def _forget(self, threads: set[int]) -> None:
        for thread in threads & self._tasks.keys():
            self._tasks.pop(thread).close()
