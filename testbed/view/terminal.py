"""A terminal at a station of the run under way (`WS /api/terminal`, formats/view.md), only with --control.

Each line that the page sends is a command of its own, `sh -c LINE`, which enters the run as `manet exec` does
(testbed/runs/entering.py): with a terminal, whose output goes to the page and which gets the page's keys, and as an event
that the run records with its words. A shell that keeps its folder and variables is a command too: `bash`.

The page draws the output; nothing here acts on it. Keys, lines and output are limited in rate, so that neither a page nor a
command can load the machine through the view.
"""

import asyncio
import json
import os
import pty
import select
import socket
import termios
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from record.errors import RecordError
from testbed.errors import ManetError, RunError, UsageError
from testbed.runs import entering
from testbed.web.outgoing import GONE, Outgoing
from testbed.web.throttle import Throttle

TERM = "xterm-256color"
MAX_LINE = 4096  # characters of a command line, as a terminal takes them (termios(3))
MAX_KEYS_BYTES = 4096
MAX_SIDE = 1000  # columns or lines of a terminal
MAX_MESSAGES_PER_S, BURST = 2000.0, 20_000  # what a page has sent before it goes is read at once
BYTES_AT_ONCE, MAX_BYTES_PER_S = 1 << 16, 1_000_000
MAX_TERMINALS = 16  # of a view, far below its connections
WRONG = 'send {"line": "ip route", "columns": 80, "lines": 24}, {"columns": 80, "lines": 24}, or keys as bytes'


@dataclass
class Command:
    """A command that runs: the connection that keeps it, the run's answers, and this end of its terminal."""

    connection: socket.socket
    answers: Iterator[dict[str, Any]]
    master: int

    def resize(self, columns: int, lines: int) -> None:
        """Set the size of the terminal."""
        termios.tcsetwinsize(self.master, (lines, columns))

    def type(self, keys: bytes) -> None:
        """Pass keys to the command; those that it does not read are lost, as its terminal's buffer is full."""
        with suppress(OSError):
            os.write(self.master, keys[:MAX_KEYS_BYTES])

    def output(self) -> bytes | None:
        """What the command has written; None once no process has the terminal open."""
        try:
            return os.read(self.master, BYTES_AT_ONCE) or None
        except BlockingIOError:
            return b""
        except OSError:  # EIO
            return None

    def close(self) -> None:
        """Leave the command: one that still runs is hung up by the run."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)  # `answers` holds the descriptor, too
        self.connection.close()
        os.close(self.master)


def start(directory: Path, station: str, line: str, size: tuple[int, int]) -> Command:
    """Start a command line at a station of the run in `directory`. Raises UsageError, RunError with the run's message."""
    with ExitStack() as opened:
        connection = entering.connected(directory)
        opened.callback(connection.close)
        master, slave = pty.openpty()
        opened.callback(os.close, master)
        try:
            os.set_blocking(master, False)
            termios.tcsetwinsize(master, (size[1], size[0]))
            request = {"op": "exec", "station": station, "argv": ["sh", "-c", line], "term": TERM}
            answers = entering.ask(connection, request, [slave] * len(entering.STREAMS))
        finally:
            os.close(slave)
        opened.pop_all()
    return Command(connection, answers, master)


class Terminal:
    """The terminal of one page at one station."""

    def __init__(self, directory: Path, station: str, page: WebSocket) -> None:
        self._directory, self._station, self._page = directory, station, page
        self._command: Command | None = None
        self._running: asyncio.Task[None] | None = None
        self._out = Outgoing(page)

    async def serve(self) -> None:
        """Take lines and keys until the page goes; a command that then runs is hung up."""
        throttle = Throttle(MAX_MESSAGES_PER_S, BURST)
        try:
            while (message := await self._page.receive())["type"] != "websocket.disconnect":
                await throttle.turn()
                await self._take(message)
        except GONE:
            pass
        finally:
            if self._running is not None:
                self._running.cancel()
                await asyncio.gather(self._running, return_exceptions=True)

    async def _take(self, message: Any) -> None:
        keys, text = message.get("bytes"), message.get("text")
        if keys is not None:
            if self._command is not None:
                self._command.type(keys)
            return
        try:
            line, size = _wanted(text)
            if line is not None:
                if self._running is not None and not self._running.done():
                    raise UsageError("a command runs already; end it first, or open another terminal")
                self._running = asyncio.create_task(self._run(line, size))
            elif self._command is not None:
                self._command.resize(*size)
        except UsageError as problem:
            await self._say({"error": str(problem)})

    async def _run(self, line: str, size: tuple[int, int]) -> None:
        """Start a line and copy its output to the page until it ends."""
        try:
            self._command = await self._started(line, size)
            try:
                await self._say({"started": True})
                await self._copy(self._command)
                await self._say({"exited": await run_in_threadpool(entering.status, self._command.answers)})
            finally:
                command, self._command = self._command, None
                command.close()
        except (ManetError, RecordError) as problem:
            with suppress(RuntimeError):
                await self._say({"error": str(problem)})
        except GONE:
            pass

    async def _started(self, line: str, size: tuple[int, int]) -> Command:
        """Start a line; if the page goes meanwhile, the command is left as soon as it has started."""
        starting = asyncio.ensure_future(run_in_threadpool(start, self._directory, self._station, line, size))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_leave)
            raise

    async def _copy(self, command: Command) -> None:
        """Copy output until the run has reported the end, then the rest of it."""
        watched = [command.master, command.connection.fileno()]
        while True:
            await _readable(*watched)
            output = command.output() if command.master in watched else b""
            if output is None:
                watched.remove(command.master)
            elif output:
                await self._send(output)
                continue
            if select.select([command.connection], [], [], 0)[0]:
                break
        while command.master in watched and (output := command.output()):
            await self._send(output)

    async def _send(self, output: bytes) -> None:
        await self._out.data(output)
        await asyncio.sleep(len(output) / MAX_BYTES_PER_S)

    async def _say(self, what: dict[str, Any]) -> None:
        await self._out.text(json.dumps(what))


def _wanted(text: str | None) -> tuple[str | None, tuple[int, int]]:
    """The command line of a message (None: it only has a size), and the terminal's columns and lines. Raises UsageError."""
    try:
        message = json.loads(text or "")
    except (ValueError, RecursionError):
        raise UsageError(WRONG) from None
    if not isinstance(message, dict) or message.keys() - {"line", "columns", "lines"}:
        raise UsageError(WRONG)
    size = message.get("columns"), message.get("lines")
    columns, lines = (side if type(side) is int and 1 <= side <= MAX_SIDE else None for side in size)
    if columns is None or lines is None:
        raise UsageError(f"columns, lines: give whole numbers from 1 to {MAX_SIDE}")
    line = message.get("line")
    if line is not None and (not isinstance(line, str) or not line.strip() or "\0" in line or len(line) > MAX_LINE):
        raise UsageError(f"line: give a command line of at most {MAX_LINE} characters")
    return line, (columns, lines)


def _leave(started: "asyncio.Future[Command]") -> None:
    if started.exception() is None:
        started.result().close()


async def _readable(*descriptors: int) -> None:
    """Wait until one of them can be read."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    for descriptor in descriptors:
        loop.add_reader(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)


def require_room(open_terminals: int) -> None:
    """Raises RunError if the view has MAX_TERMINALS open."""
    if open_terminals >= MAX_TERMINALS:
        raise RunError(f"{MAX_TERMINALS} terminals are open; close one")
