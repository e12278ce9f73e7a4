"""`manet run` as a child process, for programs that stay: the HTTP interface and the view.

The child has its own session, so Ctrl-C in the parent's terminal does not reach it. The end of the parent, for any reason, ends
the run in order: the kernel sends SIGTERM to the child when the thread that started it ends (PR_SET_PDEATHSIG, prctl(2)), and
that thread ends only with the child or with the whole parent. `manet` handles SIGTERM as Ctrl-C: it takes the run down, keeps
what was captured, and returns 130. SIGINT is no replacement: shells start background jobs with SIGINT ignored, and children
inherit that.
"""

import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.errors import UsageError
from testbed.programs import ROOT

INTERRUPTED = 130  # the status of `manet` after an ordered stop; -SIGTERM if it was stopped before it could handle signals
SETPRIV = "setpriv"
POLL_S = 0.1  # between two looks at the log
MAX_LINE_BYTES = 1 << 16  # a longer line arrives in parts
LAST_BYTES = 1 << 14  # of the log, in which `last_lines` looks


class RunChild:
    """A started `manet run WORDS`. `on_line` gets each line of standard error, in a thread, before `wait` returns. An
    error that it raises is printed with its traceback, and the run goes on."""

    def __init__(self, words: Sequence[str | Path], folder: Path, on_line: Callable[[str], None] = lambda _line: None) -> None:
        """`folder` is created and gets what the child prints, in the files `stdout` and `stderr`. Raises UsageError if setpriv(1)
        is missing, or a file cannot be written."""
        folder.mkdir(parents=True, exist_ok=True)
        self.output, self.log = folder / "stdout", folder / "stderr"
        self._on_line = on_line
        self._started = threading.Event()
        self._problem: OSError | None = None
        self._popen: subprocess.Popen[bytes] | None = None
        # -P: only the project itself may shadow installed modules
        argv = [SETPRIV, "--pdeathsig", "TERM", sys.executable, "-P", "-m", "testbed", "run", *map(str, words)]
        self._thread = threading.Thread(target=self._live, args=(argv,), name="run", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._problem is not None:
            raise _refusal(self._problem)

    @property
    def pid(self) -> int:
        """The process id of `manet run`."""
        assert self._popen is not None
        return self._popen.pid

    def poll(self) -> int | None:
        """The exit status once the child has ended and its lines were read, else None. Negative: a signal."""
        return None if self._thread.is_alive() or self._popen is None else self._popen.returncode

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Like `poll`, after the child's end or `timeout_s` seconds."""
        self._thread.join(timeout_s)
        return self.poll()

    def stop(self) -> None:
        """Ask the run to end in order; returns at once. Further calls have no effect."""
        if self._popen is not None:
            self._popen.terminate()

    def last_lines(self, count: int = 5) -> list[str]:
        """The last lines of standard error that hold text; progress (`{...}`) is left out."""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LAST_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        return [line.strip() for line in lines if line.strip() and not line.startswith("{")][-count:]

    def _live(self, argv: list[str]) -> None:
        """Start the child, hand its lines on, and wait for its end: one thread, for PR_SET_PDEATHSIG (see the head)."""
        try:
            with self.output.open("wb") as output, self.log.open("wb") as log:
                self._popen = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=output, stderr=log, start_new_session=True,
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                )  # fmt: skip
        except OSError as problem:
            self._problem = problem
            return
        finally:
            self._started.set()
        with self.log.open("rb") as log:
            rest = b""
            while True:
                ended = self._ended()
                while new := log.read(MAX_LINE_BYTES):
                    *lines, rest = (rest + new).split(b"\n")
                    self._hand_on(lines)
                    if len(rest) > MAX_LINE_BYTES:
                        self._hand_on([rest])
                        rest = b""
                if ended:
                    break
            self._hand_on([rest] if rest else [])

    def _ended(self) -> bool:
        assert self._popen is not None
        try:
            self._popen.wait(POLL_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _hand_on(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            try:
                self._on_line(line.decode(errors="replace"))
            except Exception:  # the end of this thread would end the run, and nobody would wait for its end
                traceback.print_exc()


def _refusal(problem: OSError) -> UsageError:
    """The error of a child that could not be started."""
    if isinstance(problem, FileNotFoundError) and problem.filename == SETPRIV:
        return UsageError(f"{SETPRIV}: {problem.strerror}; apt-get install util-linux")
    return UsageError(f"{problem.filename}: {problem.strerror}" if problem.filename else f"manet run: {problem.strerror}")
