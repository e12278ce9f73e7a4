"""The events of a job: a file of JSON lines, appended by the queue and followed by streams (server-sent events).

The number of an event is that of its line, so a client that lost its connection resumes after the last number that it saw, also
after a restart of the server.
"""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from record.files import plain_file

ENDED = "ended"  # the last event of a job
HEARTBEAT_S = 15.0  # below the 30 to 60 s after which proxies close a silent connection


class Events:
    """The events of one job. `append` is safe from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def append(self, event: str, **data: Any) -> None:
        """Write an event and wake the streams."""
        with self._lock:
            with open(self.path, "a", opener=_appended) as file:
                file.write(json.dumps({"event": event, **data}) + "\n")
            self._wake()

    def wake(self) -> None:
        """Let the streams look again, as at the end of the server."""
        with self._lock:
            self._wake()

    def _wake(self) -> None:
        for loop, changed in self._waiting:
            loop.call_soon_threadsafe(changed.set)

    async def follow(self, after: int, over: "threading.Event") -> AsyncIterator[tuple[int, dict[str, Any]] | None]:
        """Events with a number above `after`, up to the last or until `over` is set; None as a sign of life."""
        changed = asyncio.Event()
        entry = (asyncio.get_running_loop(), changed)
        with self._lock:
            self._waiting.append(entry)
        try:
            number, offset = 0, 0
            while not over.is_set():
                changed.clear()
                lines, offset = self._read(offset)
                for line in lines:
                    number += 1
                    if (message := _message(line)) is None:
                        continue
                    if number > after:
                        yield number, message
                    if message["event"] == ENDED:
                        return
                if lines:
                    continue
                try:
                    await asyncio.wait_for(changed.wait(), HEARTBEAT_S)
                except TimeoutError:
                    yield None
        finally:
            with self._lock:
                self._waiting.remove(entry)

    def _read(self, offset: int, most: int = 1 << 16) -> tuple[list[str], int]:
        """Whole lines from `offset` on, and the offset after them."""
        try:
            with plain_file(self.path, beneath=self.path.parent.parent) as file:
                file.seek(offset)
                text = file.read(most)
        except OSError:
            return [], offset
        end = text.rfind(b"\n") + 1
        return text[:end].decode(errors="replace").split("\n")[:-1], offset + end


def _appended(path: str, flags: int) -> int:
    """A link is not followed, a pipe without a reader not waited for."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def _message(line: str) -> dict[str, Any] | None:
    """The event of a line; None for a line that a crash or a hand has spoilt."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and isinstance(message.get("event"), str) else None


def as_sse(number: int, message: dict[str, Any]) -> str:
    """One event as text/event-stream (WHATWG HTML, 9.2.5)."""
    return f"id: {number}\nevent: {message['event']}\ndata: {json.dumps(message)}\n\n"
