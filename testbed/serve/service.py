"""`manet serve`: a queue, its application and the server, from start to end."""

from pathlib import Path

from testbed.serve.app import Api
from testbed.serve.queue import Queue, Start, start_child
from testbed.web.server import listen, serve


def serve_folder(
    folder: Path, address: str | None, start: Start = start_child, check_machine: bool = True, public: str | None = None
) -> None:
    """Serve the jobs of a folder until SIGINT or SIGTERM; then the run under way is taken down in order. Raises UsageError.
    `public` is the server's address in browsers; `start` and `check_machine` are for tests of the interface without runs."""
    listener = listen(address, public)
    queue = Queue(folder, start)
    api = Api(queue, check_machine)

    def ready() -> None:
        print(f"manet serve: {queue.folder}: {listener.url}", flush=True)
        print(f"manet serve: token {listener.token}", flush=True)
        if (line := listener.who_reaches_it("can start runs")) is not None:
            print(f"manet serve: {line}", flush=True)

    try:
        serve(listener, api.app(listener), ready, queue.end_streams)  # the server waits for open answers when it ends
    finally:
        queue.close()
