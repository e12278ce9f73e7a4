"""The caller's side of `manet exec` and `manet shell`: a command that the run starts at one of its nodes, with this terminal.

The run starts it (testbed/stages/entered.py). From a terminal it gets a terminal of its own, whose other end is copied to and
from this one, as ssh(1) does: Ctrl-C, job control and the size of the window are the command's. Otherwise it has this process's
standard streams themselves.
"""

import json
import os
import pty
import select
import shutil
import signal
import socket
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from testbed.errors import RunError, UsageError, shortened
from testbed.runs.under_way import ACTION_WITHIN_S, namespaces_of, runs_under_way, sockets_of, under_way
from testbed.stages.actions import SOCKET

STREAMS = (0, 1, 2)
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
BYTES_AT_ONCE = 1 << 16
NOT_UP = "the run has ended, or its network is not up yet; commands are for a run under way"
NONE_UNDER_WAY = "no run is under way, and commands are for one that is; start one, as in `manet cli chain5`"
ENDED = "the run ended before the command"


def call_in(directory: Path | None, station: str, argv: Sequence[str]) -> int:
    """Run a command at a station or host of the run in `directory` (None: the only one under way); returns its status, negative
    for a signal. Raises UsageError, RunError with the run's message if it refuses."""
    if directory is None and len(runs := runs_under_way()) > 1:
        which = ", ".join(state.directory for state in runs)
        raise UsageError(
            f'{len(runs)} runs are under way, and "{shortened(station)}" is the folder of none; name one first: {which}'
        )
    try:
        return _call_in(directory, station, argv)
    except RunError:
        if directory is None:
            require_node(station)
        raise


def require_node(word: str) -> None:
    """Raise UsageError if a word, which may have been meant as a run, is no station or host of the only run under way."""
    state = under_way(None)
    names = [] if state is None else [*namespaces_of(state)]
    if state is not None and names and word not in names:
        which = f"the run under way, {state.directory}, which has {', '.join(names)}"
        raise UsageError(f'"{shortened(word)}" is neither the folder of a run nor a station or host of {which}')


def not_a_run(word: str) -> UsageError:
    """The error for a word in the place of a run that is none."""
    runs = ", ".join(state.directory for state in runs_under_way())
    return UsageError(f'"{shortened(word)}": is no folder of a run; {f"under way: {runs}" if runs else NONE_UNDER_WAY}')


def _call_in(directory: Path | None, station: str, argv: Sequence[str]) -> int:
    on_terminal = all(os.isatty(stream) for stream in STREAMS[:2])
    with connected(directory) as connection, ExitStack() as stack:
        request: dict[str, Any] = {"op": "exec", "station": station, "argv": list(argv)}
        held_back = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until they can go to the command
        stack.callback(signal.pthread_sigmask, signal.SIG_SETMASK, held_back)
        if not on_terminal:
            answers = ask(connection, request, STREAMS)
            stack.enter_context(_signals_passed(connection))
            signal.pthread_sigmask(signal.SIG_SETMASK, held_back)
            return status(answers)
        master, slave = pty.openpty()
        stack.callback(os.close, master)
        _copy_size(master)
        try:
            answers = ask(connection, request | {"term": os.environ.get("TERM", "dumb")}, [slave] * len(STREAMS))
        finally:
            os.close(slave)
        stack.enter_context(_signals_passed(connection, master))
        signal.pthread_sigmask(signal.SIG_SETMASK, held_back)
        stack.enter_context(_raw_terminal())
        _copy_until_end(connection, master)
        return status(answers)


def connected(directory: Path | None) -> socket.socket:
    """A connection to the run in `directory` (None: the only one under way), for one command. Raises UsageError, RunError."""
    if directory is not None and not directory.exists():
        raise not_a_run(str(directory))
    if directory is None and not runs_under_way():
        raise UsageError(NONE_UNDER_WAY)
    state = under_way(directory)
    sockets = None if state is None else sockets_of(state, SOCKET)
    if sockets is None:
        raise UsageError(NOT_UP)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(sockets / SOCKET))
    except OSError as problem:
        connection.close()
        raise RunError(f"the run did not answer ({problem.strerror}); did it just end?") from None
    return connection


def ask(connection: socket.socket, request: dict[str, Any], streams: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Send a request of the action `exec` (formats/sockets.md); the answers behind the first one, by which the run has accepted
    it. Raises RunError."""
    connection.settimeout(ACTION_WITHIN_S)
    socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], list(streams))
    lines = connection.makefile("rb", buffering=0)
    answers = (json.loads(line) for line in iter(lines.readline, b""))
    try:
        answer: dict[str, Any] = next(answers, {})
    except OSError as problem:
        raise RunError(f"the run did not answer ({problem}); did it just end?") from None
    connection.settimeout(None)
    if not answer.get("ok"):
        refused = RunError(answer.get("error") or ENDED)
        refused.exit_status = answer.get("status", RunError.exit_status)
        raise refused
    return answers


def status(answers: Iterator[dict[str, Any]]) -> int:
    """The command's status, once it has ended. Raises RunError if the run ended before it."""
    try:
        last = next(answers, None)
    except (OSError, ValueError):
        last = None
    if last is None:
        raise RunError(ENDED)
    return int(last["exited"])


@contextmanager
def _signals_passed(connection: socket.socket, master: int | None = None) -> Iterator[None]:
    """Signals to this process go to the command. `master`: changes of the window's size go to this terminal."""

    def pass_on(number: int, _frame: object) -> None:
        with suppress(OSError):
            connection.sendall(json.dumps({"signal": number}).encode() + b"\n")

    def resize(_number: int, _frame: object) -> None:
        if master is not None:
            _copy_size(master)

    handlers = dict.fromkeys(PASSED_ON, pass_on) | ({signal.SIGWINCH: resize} if master is not None else {})
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _copy_size(master: int) -> None:
    columns, lines = shutil.get_terminal_size()
    termios.tcsetwinsize(master, (lines, columns))


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Every key goes to the command's terminal, which echoes and edits."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSAFLUSH, before)


def _copy_until_end(connection: socket.socket, master: int) -> None:
    """Copy keys and output between the two terminals until the run has something to say, then the rest of the output."""
    sources = [connection.fileno(), master, 0]
    while True:
        ready = select.select(sources, [], [])[0]
        if 0 in ready:
            keys = os.read(0, BYTES_AT_ONCE)
            if not keys:
                sources.remove(0)
            _write_all(master, keys)
        if master in ready and not _copy_output(master):
            sources.remove(master)
        if connection.fileno() in ready:
            break
    while select.select([master], [], [], 0)[0] and _copy_output(master):
        pass


def _copy_output(master: int) -> bool:
    """Copy some output; False once no process has the terminal open (EIO)."""
    try:
        output = os.read(master, BYTES_AT_ONCE)
    except OSError:
        return False
    _write_all(1, output)
    return bool(output)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def end_as(status: int) -> int:
    """The exit status of this process for the command's; if a signal ended the command, it ends this process too."""
    if status >= 0:
        return status
    sys.stdout.flush()
    with suppress(OSError):  # SIGKILL has no handler
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status
