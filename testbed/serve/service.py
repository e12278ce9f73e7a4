"""`manet serve`: a queue, its application and the server, from start to end."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from testbed.serve.app import Api
from testbed.serve.queue import Queue, Start, start_child
from testbed.web.server import listen, serve


def serve_folder(folder: Path, address: str | None, start: Start = start_child, check_machine: bool = True) -> None:
    """Serve the jobs of a folder until SIGINT or SIGTERM; then the run under way is taken down in order. Raises UsageError.
    `start` and `check_machine` are for tests of the interface without runs."""
    listener = listen(address)
    queue = Queue(folder, start)
    api = Api(queue, check_machine)

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
    """The server waits for open answers when it ends: streams of events must end by the same signal. A second signal has no
    effect: the server would drop its answers with a traceback."""

    begun = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _once(begun, queue.end_streams, signal.getsignal(number)))


def _once(begun: threading.Event, action: Callable[[], None], then: Any) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        if begun.is_set():
            return
        begun.set()
        threading.Thread(target=action, daemon=True).start()  # a handler must take no lock
        if callable(then):
            then(number, frame)

    return handle
