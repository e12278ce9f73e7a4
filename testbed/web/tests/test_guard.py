"""The guard of the pages: what passes, and what is refused in one line."""

import asyncio
import json
import os
import resource
import socket

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Scope

from testbed.errors import UsageError
from testbed.web.guard import POLICY, Address, Guard, Rules
from testbed.web.server import LOOPBACK_NAMES, listen

ADDRESS = Address("127.0.0.1", 8000, frozenset(LOOPBACK_NAMES))
RULES = Rules(ADDRESS, "secret", lambda path: path == "/")


def asked(path: str = "/api", method: str = "GET", query: str = "", body: bytes = b"", **headers: str) -> tuple[int, dict, bytes]:
    """Status, headers and body of the answer to one request."""
    given = {"host": "127.0.0.1:8000", "authorization": "Bearer secret", **headers}
    scope: Scope = {
        "type": "http", "method": method, "path": path, "query_string": query.encode(), "headers":
        [(key.replace("_", "-").encode(), value.encode()) for key, value in given.items()],
    }  # fmt: skip
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    async def application(scope: Scope, receive, send) -> None:
        await receive()
        await PlainTextResponse("passed")(scope, receive, send)

    asyncio.run(Guard(application, RULES)(scope, receive, send))
    found = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent)


def test_a_request_with_the_token_passes_with_a_policy_that_loads_nothing_from_elsewhere():
    status, headers, body = asked()
    assert (status, body, headers["content-security-policy"]) == (200, b"passed", POLICY)
    assert "unsafe-inline" not in POLICY and "default-src 'none'" in POLICY
    assert asked(authorization="", query="token=secret")[0] == 200
    assert asked("/", authorization="")[0] == 200, "the page itself holds no data"


@pytest.mark.parametrize(
    ("status", "given"),
    [
        (401, {"authorization": ""}),
        (401, {"authorization": "Bearer secret2"}),
        (401, {"authorization": "", "query": "token="}),
        (401, {"authorization": "", "query": "&".join(f"a{number}=1" for number in range(60)) + "&token=secret"}),
        (421, {"host": "127.0.0.1:" + "8" * 5000}),
        (403, {"origin": "http://127.0.0.1:" + "8" * 5000}),
        (413, {"content_length": "9" * 5000}),
        (421, {"host": "evil.example:8000"}),
        (421, {"host": "127.0.0.1:8001"}),
        (421, {"host": "127.0.0.1.evil.example:8000"}),
        (403, {"origin": "http://evil.example"}),
        (403, {"origin": "https://127.0.0.1:8000"}),
        (403, {"origin": "null"}),
        (405, {"method": "POST"}),
        (405, {"method": "DELETE"}),
        (413, {"content_length": str(1 << 40)}),
        (413, {"content_length": "-1"}),
        (413, {"body": b"x" * (1 << 20) + b"y"}),
    ],
)
def test_others_are_refused_in_one_line(status, given):
    found, headers, body = asked(**given)
    assert found == status
    line = json.loads(body)["error"]
    assert line and "\n" not in line and "secret" not in line
    assert headers["content-security-policy"] == POLICY


def test_own_origins_and_names_pass():
    for host in ("localhost:8000", "[::1]:8000", "127.0.0.1:8000"):
        assert asked(host=host, origin=f"http://{host}")[0] == 200


def test_a_websocket_is_closed_before_it_opens():
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "websocket", "path": "/api/live", "query_string": b"token=secret",
        "headers": [(b"host", b"127.0.0.1:8000"), (b"origin", b"http://evil.example")],
    }  # fmt: skip

    async def application(*_all: object) -> None:
        raise AssertionError("it passed")

    asyncio.run(Guard(application, RULES)(scope, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]


def test_a_server_listens_on_loopback_unless_it_is_told_otherwise():
    listener = listen()
    try:
        assert listener.is_local and listener.url.startswith("http://127.0.0.1:") and len(listener.token) >= 24
        listener.socket.listen()
        with pytest.raises(UsageError, match="and a free port"):
            listen(str(listener.address.port))
    finally:
        listener.socket.close()
    for wrong in ("x:1", "127.0.0.1", "127.0.0.1:70000", "example.org:80"):
        with pytest.raises(UsageError, match="--listen"):
            listen(wrong)


def test_a_socket_that_cannot_be_made_is_one_line():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        with pytest.raises(UsageError, match=r"^--listen \[::1\]:0: Too many open files; give an address"):
            listen("[::1]:0")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_an_address_that_others_can_open_is_printed(address):
    listener = listen(address)
    listener.socket.close()
    host = listener.url.removeprefix("http://")
    assert host == f"{socket.gethostname().lower()}:{listener.address.port}"
    assert not listener.is_local and listener.address.is_ours(host)
