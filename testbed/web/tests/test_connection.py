"""Connections that say nothing, or never end what they say, are closed."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from testbed.web.connection import PromptConnection
from testbed.web.server import MAX_CONNECTIONS

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
LIMIT_S = 30  # of a test's own waits: far above within_s


class Hasty(PromptConnection):
    within_s = 0.5


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    if request.url.path == "/slow":
        await asyncio.sleep(3 * Hasty.within_s)
    body = await request.body()
    await PlainTextResponse(f"{len(body)} bytes")(scope, receive, send)


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    """A server whose connections have half a second for a request."""
    bound = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application, http=Hasty, lifespan="off", log_level="critical", limit_concurrency=MAX_CONNECTIONS, timeout_keep_alive=60
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: server.run(sockets=[bound]))
    thread.start()
    yield bound.getsockname()
    server.should_exit = True
    thread.join()
    bound.close()


def connected(address: tuple[str, int], said: bytes) -> socket.socket:
    client = socket.create_connection(address, timeout=LIMIT_S)
    client.sendall(said)
    return client


def answer(client: socket.socket) -> bytes:
    """A whole answer of the application."""
    text = b""
    while not text.endswith(b" bytes"):
        part = client.recv(4096)
        assert part, text
        text += part
    return text


def is_closed(client: socket.socket) -> bool:
    """Whether the server ends the connection without an answer."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    "said",
    [b"", b"GE", HEAD, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"],
    ids=["nothing", "a word", "a head", "a body"],
)
def test_a_request_that_does_not_end_ends_the_connection(address, said):
    with connected(address, said) as client:
        assert is_closed(client)


def test_a_second_request_that_does_not_end_ends_the_connection(address):
    with connected(address, HEAD + b"\r\n") as client:
        assert answer(client).startswith(b"HTTP/1.1 200")
        client.sendall(HEAD)
        assert is_closed(client)


def test_silent_connections_do_not_keep_others_out(address):
    silent = [connected(address, b"") for _ in range(MAX_CONNECTIONS)]
    assert all(is_closed(client) for client in silent)
    with connected(address, HEAD + b"\r\n") as client:
        assert answer(client).startswith(b"HTTP/1.1 200")
    for client in silent:
        client.close()


def test_an_answer_may_take_longer_than_a_request(address):
    with connected(address, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n") as client:
        assert answer(client).startswith(b"HTTP/1.1 200")
