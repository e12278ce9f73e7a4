"""`manet serve`: a queue, its application and the server, from start to end."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from testbed.serve.app import Api
from testbed.serve.queue import Queue
from testbed.web.server import listen, serve


def serve_folder(folder: Path, address: str | None) -> None:
    """Serve the jobs of a folder until SIGINT or SIGTERM; then the run under way is taken down in order. Raises UsageError."""
    listener = listen(address)
    queue = Queue(folder)
    api = Api(queue)

    def ready() -> None:
        _end_streams_with(queue)
        print(f"manet serve: {queue.folder}: {listener.url}", flush=True)
        print(f"manet serve: token {listener.token}", flush=True)
        if not listener.is_local:
            print("manet serve: other machines can reach this address; who has the token can start runs", flush=True)

    try:
        serve(listener, api.app(listener), ready)
    finally:
        queue.close()


def _end_streams_with(queue: Queue) -> None:
    """The server waits for open answers when it ends: streams of events must end by the same signal."""

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _first(queue.end_streams, signal.getsignal(number)))


def _first(action: Callable[[], None], then: Any) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=action, daemon=True).start()  # a handler must take no lock
        if callable(then):
            then(number, frame)

    return handle
