"""The batches of a campaign on this machine: one worker carries out all of them, and uses the whole machine.

The worker is a process of its own, which stays from one round to the next: its imports, its checks of the machine, the template
of its runs and the processes that measure them serve the whole campaign. It outlives a campaign that is killed: it sees that the
campaign's folder is free and ends its runs in order (testbed/workers), as it does after Ctrl-C. After an error it ends, and the
next batch gets another one.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from testbed.campaigns.measuring import end
from testbed.campaigns.rounds import DONE, Workflow, batches_in
from testbed.errors import RunError
from testbed.programs import python_path
from testbed.signals import interrupts_noted


@contextmanager
def workflow(directory: Path, release: Callable[[], None]) -> Iterator[Workflow]:
    """A worker, until the block ends. `release` frees the campaign's lock, which tells the worker that the campaign ends."""
    worker = _Worker(directory, release)
    try:
        worker.start()
        yield worker.carry_out
    finally:
        worker.end()


class _Worker:
    """The handle on the process, which is started again if it has ended."""

    def __init__(self, directory: Path, release: Callable[[], None]) -> None:
        self._directory, self._release = directory, release
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process: it prepares itself while the campaign plans its first round."""
        with interrupts_noted():
            self._process = started(command(self._directory), pipes=True)

    def carry_out(self, folder: Path) -> None:
        """Carry out the batches of a folder that are not done."""
        failed = []
        for batch in batches_in(folder):
            done = batch.with_name(batch.stem + DONE)
            if not done.exists() and (status := self._one(batch, done)):
                failed.append(f"{batch.name}: status {status}")
        if failed:
            raise RunError(f"a batch did not end ({', '.join(failed)}); see the lines above, then start the campaign again")

    def end(self) -> None:
        """End the process, which has no batch, or its batch in order once the campaign's folder is free."""
        process, self._process = self._process, None
        if process is not None:
            end(process)

    def _one(self, batch: Path, done: Path) -> int:
        """The exit status of a worker that ended; 0 once it has carried out the batch."""
        if self._process is None:
            self.start()
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps([str(batch.resolve()), str(done.resolve())]).encode() + b"\n")
                process.stdin.flush()
            if process.stdout.readline():
                return 0
        except KeyboardInterrupt:
            self._release()
            self.end()
            raise
        status = process.wait()
        self.end()
        return status or 1


def command(directory: Path) -> list[str]:
    """The command line of the worker of the campaign in a folder."""
    return [sys.executable, "-P", "-m", "testbed", "batch", "--driver", str(directory.resolve())]


def started(argv: list[str], pipes: bool = False, log: IO[bytes] | None = None) -> "subprocess.Popen[bytes]":
    """A process with a session of its own: Ctrl-C is for this program. `pipes`: to and from it; `log` gets all that it prints."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a library may have replaced it
    return subprocess.Popen(
        argv, env=os.environ | {"PYTHONPATH": python_path()}, stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
        stdout=subprocess.PIPE if pipes else log, stderr=log, start_new_session=True,
    )  # fmt: skip


@contextmanager
def process(
    argv: list[str], interrupted: Callable[["subprocess.Popen[bytes]"], object], log: IO[bytes]
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process for the length of the block, which prints into `log`; at Ctrl-C this program calls `interrupted` and waits for
    its end."""
    child: subprocess.Popen[bytes] | None = None
    try:
        with interrupts_noted():
            child = started(argv, log=log)
        yield child
    except KeyboardInterrupt:
        if child is not None:
            interrupted(child)
            child.wait()
        raise
