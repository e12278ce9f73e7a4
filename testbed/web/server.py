"""The server: a socket on loopback, a token, and uvicorn on them until SIGINT or SIGTERM."""

import asyncio
import ipaddress
import logging
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from testbed.errors import UsageError, shortened
from testbed.web.connection import PatientWebSocket, PromptConnection
from testbed.web.guard import Address, PublicUrl

LOOPBACK = "127.0.0.1"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
MAX_CONNECTIONS = 64  # a page has one WebSocket and at most six requests at once
MAX_MESSAGE_BYTES = 1 << 16
END_WITHIN_S = 5
THREADS_WITHIN_S = 1  # of what is computed for clients that are cut off
NICE = 10  # of the answers: a run comes first


@dataclass(frozen=True)
class Listener:
    """A bound socket and the token of its server."""

    socket: socket.socket
    address: Address
    token: str

    @property
    def url(self) -> str:
        """The address without the token, `http://127.0.0.1:8000`; with this machine's name if it listens on all addresses; the
        public address if the user has given one."""
        if self.address.public is not None:
            return self.address.public.origin
        host = socket.gethostname().lower() if self.address.is_any else self.address.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.address.port}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return self.address.host in LOOPBACK_NAMES and self.address.public is None

    def who_reaches_it(self, may: str) -> str | None:
        """A line for a server that others reach, None for one that only this machine reaches. `may`: what the token allows."""
        if self.is_local:
            return None
        forwarded = (
            "" if self.address.public else f", a forwarded port of this machine also as http://localhost:{self.address.port}"
        )
        return f"other machines can reach this address{forwarded}; who has the token {may}"


def listen(text: str | None = None, public: str | None = None) -> Listener:
    """Bind to `ADDRESS:PORT`, `PORT` or, for None, a free port of loopback. `public`: the address in browsers if it is another
    one. Raises UsageError."""
    url = _public(public)
    host, port = _parsed(text or "0")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = _bound(family, host, port)
    except OSError as problem:
        remedy = "give an address of this machine and a free port, or leave --listen out"
        raise UsageError(f"--listen {text or LOOPBACK}: {problem.strerror}; {remedy}") from None
    names = LOOPBACK_NAMES if host in LOOPBACK_NAMES else (host, socket.gethostname().lower())
    return Listener(bound, Address(host, bound.getsockname()[1], frozenset(names), url), secrets.token_urlsafe(24))


def serve(
    listener: Listener, app: ASGIApp, ready: Callable[[], None] = lambda: None, ending: Callable[[], None] = lambda: None,
    may_end: Callable[[], bool] = lambda: True,
) -> None:  # fmt: skip
    """Serve until SIGINT or SIGTERM; `ready` is called when requests are answered, `ending` in a thread at the signal, before the
    answers that are under way have ended. `may_end`, in a thread too, may hold the first SIGINT back; it tells the user why.
    Signals behind the one that ends have no effect. Clients that have not taken their answers within END_WITHIN_S are cut off,
    and counted in one line of standard error."""
    config = uvicorn.Config(
        app, http=PromptConnection, log_level="error", access_log=False, server_header=False, limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=5, timeout_graceful_shutdown=END_WITHIN_S + THREADS_WITHIN_S, ws=PatientWebSocket,
        ws_max_size=MAX_MESSAGE_BYTES, ws_max_queue=8, h11_max_incomplete_event_size=1 << 14, lifespan="on", use_colors=False,
    )  # fmt: skip
    server = _Server(config, ready, ending, may_end)
    try:
        server.run(sockets=[listener.socket])
    except KeyboardInterrupt:  # uvicorn raises the signal again once it has ended
        pass
    finally:
        listener.socket.close()


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)  # an error of a machine without IPv6
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], ending: Callable[[], None], may_end: Callable[[], bool]
    ) -> None:
        super().__init__(config)
        self._ready, self._ending, self._may_end = ready, ending, may_end
        self._asked, self._turn = False, threading.Lock()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ends once: at a further signal uvicorn would drop its answers with a traceback."""
        if self.should_exit:
            return
        asks = sig == signal.SIGINT and not self._asked
        self._asked = True
        threading.Thread(target=self._end, args=(sig, frame, asks), daemon=True).start()  # a handler must take no lock

    def _end(self, sig: int, frame: FrameType | None, asks: bool) -> None:
        if asks and not self._may_end():
            return
        with self._turn:
            if self.should_exit:
                return
            super().handle_exit(sig, frame)
        self._ending()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let answers end, then cut off. uvicorn would cancel them: it takes that for an error of the application, prints a
        traceback, and waits without end to send the status 500 to a client that takes nothing."""
        cutting = asyncio.get_running_loop().call_later(END_WITHIN_S, self._cut_off)
        try:
            await super().shutdown(sockets)
        finally:
            cutting.cancel()

    def _cut_off(self) -> None:
        """Close the connections at once: what waits to send goes on, into nothing, and ends."""
        connections = list(self.server_state.connections)
        count = max(len(connections), len(self.server_state.tasks))
        for connection in connections:
            connection.transport.abort()
        # from now on an error is the end of what is cancelled in a thread
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        print(f"manet: requests unfinished after {END_WITHIN_S} s, which are ended now: {count}", file=sys.stderr, flush=True)


def _public(text: str | None) -> PublicUrl | None:
    try:
        return None if text is None else PublicUrl.parse(text)
    except ValueError:
        remedy = "write http://localhost:8080 or https://name.example, without a path"
        raise UsageError(f"--public-url {shortened(text or '')}: is no such address; {remedy}") from None


def _parsed(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or LOOPBACK
    if host == "localhost":
        host = LOOPBACK
    try:
        ipaddress.ip_address(host)
        number = int(port)
    except ValueError:
        raise UsageError(f"--listen {text}: is no ADDRESS:PORT; write 127.0.0.1:8000, [::1]:8000 or 8000") from None
    if not 0 <= number <= 65535:
        raise UsageError(f"--listen {text}: port {number} is outside 0 to 65535")
    return host, number
