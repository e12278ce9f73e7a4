"""A command on a station: as subprocess.Popen, except that it runs in the station's namespaces.

Its standard streams are this process's own files and pipes, handed to the run with the request; its pidfd comes back. So nothing
is copied on the way, and the end is seen without a request. At most MAX_OUTPUT_BYTES of its output are kept in memory.
"""

import contextlib
import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, Self

from manet_testbed.errors import MeshError, MeshTimeout, WrongRequest, quoted
from manet_testbed.messages import MAX_WAIT_MS, is_readable

PIPE, STDOUT, DEVNULL = subprocess.PIPE, subprocess.STDOUT, subprocess.DEVNULL
MAX_OUTPUT_BYTES = 16 << 20  # of a command, which are held in memory as bytes and as text
MAX_LINES_BYTES = 1 << 16  # of the lines before the one that wait_for_line waits for
PIECE_BYTES = 1 << 20  # of one read; a pipe holds less
Stream = int | IO[bytes] | IO[str] | None
Ended = Callable[[], int]


class Process:
    """A started command. `stdin`, `stdout` and `stderr` are text streams if they are pipes, else None."""

    def __init__(self, station: str, argv: Sequence[str], pidfd: int, ended: Ended, streams: "Streams") -> None:
        self.station, self.args = station, list(argv)
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = streams.own
        self._pidfd, self._ended = pidfd, ended
        self._lock = threading.Lock()

    @property
    def command(self) -> str:
        """Station and command, as error messages name it."""
        return f"{self.station}: {' '.join(self.args)}"

    def poll(self) -> int | None:
        """The status if the command has ended (negative: a signal), else None."""
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the status. Raises MeshTimeout; the command then still runs."""
        status = self._status(timeout)
        if status is None:
            raise MeshTimeout(f"{self.command}: still runs after {timeout:g} s")
        return status

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """Write `input`, read both outputs to their ends and wait; returns (stdout, stderr). Raises MeshTimeout, and MeshError
        for more output than MAX_OUTPUT_BYTES, at which the command is killed."""
        outputs = ["", ""]

        def read(place: int, stream: IO[str]) -> None:
            outputs[place] = stream.read(MAX_OUTPUT_BYTES + 1)
            if len(outputs[place]) > MAX_OUTPUT_BYTES:
                self.kill()
                stream.close()

        def write(stream: IO[str], text: str) -> None:
            with contextlib.suppress(BrokenPipeError), stream:
                stream.write(text)

        pipes = [(place, stream) for place, stream in enumerate((self.stdout, self.stderr)) if stream is not None]
        threads = [threading.Thread(target=read, args=pipe, daemon=True) for pipe in pipes]
        if self.stdin is not None:
            threads.append(threading.Thread(target=write, args=(self.stdin, input or ""), daemon=True))
        for thread in threads:
            thread.start()
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                raise MeshTimeout(f"{self.command}: still runs after {timeout:g} s")
        self.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        if max(map(len, outputs)) > MAX_OUTPUT_BYTES:
            raise self._too_much()
        return outputs[0], outputs[1]

    def read_until_end(self, outputs: tuple[bytearray, bytearray], timeout: float | None) -> bool:
        """Add all that the command prints to pipes until it ends to `outputs`; False after `timeout` seconds. Raises MeshError
        for more than MAX_OUTPUT_BYTES. Later output of programs that it leaves behind is not read."""
        pipes = {pipe.fileno(): (pipe, found) for pipe, found in zip((self.stdout, self.stderr), outputs, strict=True) if pipe}
        poll, deadline = select.poll(), math.inf if timeout is None else time.monotonic() + timeout
        for descriptor in (self._pidfd, *pipes):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = dict(poll.poll(min(1000 * max(0.0, deadline - time.monotonic()), MAX_WAIT_MS)))
            for descriptor in ready.keys() & pipes.keys():
                pipe, found = pipes[descriptor]
                piece = os.read(descriptor, PIECE_BYTES)
                found += piece
                if not piece:
                    poll.unregister(descriptor)
                    pipes.pop(descriptor)[0].close()
            if sum(map(len, outputs)) > MAX_OUTPUT_BYTES:
                raise self._too_much()
            if self._pidfd in ready:  # what it printed was in the pipes already, and one piece holds it
                for pipe, _ in pipes.values():
                    threading.Thread(target=_read_on, args=(pipe,), daemon=True).start()
                return True
            if time.monotonic() >= deadline:
                return False

    def close_pipes(self) -> None:
        """Close this process's ends: a program that still prints is ended by SIGPIPE."""
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def send_signal(self, number: int) -> None:
        """Send a signal; no effect after the end."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def wait_for_line(self, text: str, timeout: float) -> str:
        """Read lines of stdout until one contains `text`, and return it. Raises MeshTimeout, also at the end of the output."""
        assert self.stdout is not None, "wait_for_line needs stdout=PIPE"
        seen, deadline = "", time.monotonic() + timeout
        while True:
            left_s = deadline - time.monotonic()
            ready = left_s > 0 and is_readable(self.stdout.fileno(), timeout_s=left_s)
            byte = os.read(self.stdout.fileno(), 1).decode(errors="replace") if ready else ""
            if not byte:
                how = "ended" if ready else f"has not printed it within {timeout:g} s"
                raise MeshTimeout(f'{self.command}: no "{text}": it {how}{quoted(seen)}')
            seen = (seen + byte)[-MAX_LINES_BYTES:]
            if byte == "\n" and text in (line := seen[:-1].rpartition("\n")[2]):
                return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, _value: object, _trace: TracebackType | None) -> None:
        """End the command if it still runs, and close its pipes."""
        self.terminate()
        try:
            self.wait(5)
        except MeshTimeout:
            self.kill()
            self.wait()
        self.close_pipes()

    def __repr__(self) -> str:
        return f"<{self.command}>"

    def __del__(self) -> None:
        if getattr(self, "_pidfd", -1) >= 0:
            os.close(self._pidfd)

    def _too_much(self) -> MeshError:
        limit = f"{MAX_OUTPUT_BYTES >> 20} MiB"
        return MeshError(f"{self.command}: printed more than {limit}; let it print less, or into a file: popen(..., stdout=file)")

    def _status(self, timeout_s: float | None) -> int | None:
        if self.returncode is None and self._pidfd >= 0:
            if not is_readable(self._pidfd, timeout_s=timeout_s):
                return None
            with self._lock:
                if self.returncode is None:
                    self.returncode = self._ended()
                    os.close(self._pidfd)
                    self._pidfd = -1
        return self.returncode


class Streams:
    """The three standard streams of a command: `given` are the descriptors that it gets, `own` this process's ends of pipes."""

    def __init__(self, stdin: Stream, stdout: Stream, stderr: Stream) -> None:
        self.given: list[int] = []
        self.own: list[IO[str] | None] = []
        self._temporary: list[int] = []
        for number, stream in enumerate((stdin, stdout, stderr)):
            self._add(number, stream)

    def _add(self, number: int, stream: Stream) -> None:
        pipe: IO[str] | None = None
        if stream == PIPE:
            read, write = os.pipe()
            given, own = (read, write) if number == 0 else (write, read)
            pipe = os.fdopen(own, "w" if number == 0 else "r", encoding="utf-8", errors="replace")
            self._temporary.append(given)
        elif stream == STDOUT and number == 2:
            given = self.given[1]
        elif stream in (None, DEVNULL):
            given = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            self._temporary.append(given)
        else:
            try:
                given = stream if isinstance(stream, int) else stream.fileno()
                os.fstat(given)
            except (OSError, OverflowError, AttributeError, ValueError):  # the last: it is closed
                self.close()
                name = ("stdin", "stdout", "stderr")[number]
                raise WrongRequest(f"{name}={stream!r}: give an open file, PIPE or DEVNULL; stderr also STDOUT") from None
        self.given.append(given)
        self.own.append(pipe)

    def handed_over(self) -> None:
        """Close what only the command needs."""
        for descriptor in self._temporary:
            os.close(descriptor)
        self._temporary.clear()

    def close(self) -> None:
        """Close all of them: the command has not started."""
        self.handed_over()
        for stream in self.own:
            if stream is not None:
                stream.close()


def _read_on(pipe: IO[str]) -> None:
    """Read to the end of a pipe, and forget it: those who print into it are not ended, and do not wait."""
    with pipe:
        while os.read(pipe.fileno(), PIECE_BYTES):
            pass
