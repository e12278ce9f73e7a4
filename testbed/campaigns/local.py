"""The batches of a round on this machine: one worker after another, each of which uses the whole machine.

A worker is a process of its own. It outlives a campaign that is killed: it sees that the campaign's folder is free and ends its
runs in order (testbed/workers), as it does after Ctrl-C.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.campaigns.rounds import DONE, batches_in
from testbed.errors import RunError
from testbed.programs import ROOT
from testbed.signals import interrupts_noted


def workflow(directory: Path, release: Callable[[], None]) -> Callable[[Path], None]:
    """Carries out the batches in a folder. `release` frees the campaign's lock, which tells the worker that the campaign ends."""

    def carry_out(folder: Path) -> None:
        failed = []
        for batch in batches_in(folder):
            done = batch.with_name(batch.stem + DONE)
            if not done.exists():
                with process(command(batch, done, directory), lambda _worker: release()) as worker:
                    status = worker.wait()
                failed += [f"{batch.name}: status {status}"] if status else []
        if failed:
            raise RunError(f"a batch did not end ({', '.join(failed)}); see the lines above, then start the campaign again")

    return carry_out


def command(batch: Path, done: Path, directory: Path) -> list[str]:
    """The command line of the worker of a batch."""
    arguments = ["batch", str(batch.resolve()), "--out", str(done.resolve()), "--driver", str(directory.resolve())]
    return [sys.executable, "-P", "-m", "testbed", *arguments]


@contextmanager
def process(argv: list[str], interrupted: Callable[["subprocess.Popen[bytes]"], object]) -> Iterator["subprocess.Popen[bytes]"]:
    """A process with a session of its own: Ctrl-C is for this program, which calls `interrupted` and waits for its end."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a library may have replaced it
    started: subprocess.Popen[bytes] | None = None
    try:
        with interrupts_noted():
            environment = os.environ | {"PYTHONPATH": path}
            started = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
        yield started
    except KeyboardInterrupt:
        if started is not None:
            interrupted(started)
            started.wait()
        raise
