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
from testbed.web.guard import POLICY, Address, Guard, PublicUrl, Rules
from testbed.web.server import LOOPBACK_NAMES, listen

ADDRESS = Address("127.0.0.1", 8000, frozenset(LOOPBACK_NAMES))
RULES = Rules(ADDRESS, "secret", lambda path: path == "/")


def asked(
    path: str = "/api", method: str = "GET", query: str = "", body: bytes = b"", rules: Rules = RULES, **headers: str
) -> tuple[int, dict, bytes]:
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

    asyncio.run(Guard(application, rules)(scope, receive, send))
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
        (421, {"host": ""}),
        (421, {"host": "127.0.0.1:x"}),
        (421, {"host": "192.168.1.5:8000"}),
        (421, {"host": "127.0.0.1.evil.example:8000"}),
        (421, {"host": "localhost.evil.example"}),
        (421, {"host": "evil.localhost.example"}),
        (421, {"host": "127.1:8000"}),
        (403, {"origin": "http://127.0.0.1:9000"}),
        (403, {"origin": "http://localhost:8000"}),
        (403, {"host": "localhost:9000", "origin": "http://localhost:8000"}),
        (403, {"host": "localhost:8443", "origin": "https://localhost:8443"}),
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


@pytest.mark.parametrize(
    "host", ["localhost:8000", "[::1]:8000", "127.0.0.1:8000", "localhost:9000", "127.0.0.1", "127.8.9.1:80"]
)
def test_own_origins_and_names_of_loopback_pass_with_the_port_of_whatever_forwards_it(host):
    assert asked(host=host, origin=f"http://{host}")[0] == 200


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1:8000", "192.168.56.10:8000", "[fe80::1]:9000", "lab7:8000"])
def test_a_server_of_all_addresses_is_named_by_any_address_and_by_loopback(host):
    rules = Rules(Address("0.0.0.0", 8000, frozenset({"0.0.0.0", "lab7"})), "secret")
    assert asked(host=host, origin=f"http://{host}", rules=rules)[0] == 200
    assert asked(host=host.replace("lab7", "lab8").replace(":", ".evil.example:", 1), rules=rules)[0] == 421


def test_behind_a_proxy_its_address_passes_and_no_other_name():
    public = PublicUrl.parse("https://mesh.example/")
    rules = Rules(Address("127.0.0.1", 8000, frozenset(LOOPBACK_NAMES), public), "secret")
    for host in ("mesh.example", "mesh.example:443", "localhost:8000"):  # a proxy may write another Host
        assert asked(host=host, origin="https://mesh.example", rules=rules)[0] == 200
    for host, origin in (("mesh.example", "https://mesh.example:8443"), ("mesh.example", "https://evil.example")):
        assert asked(host=host, origin=origin, rules=rules)[0] == 403
    assert asked(host="mesh.example.evil.example", origin="https://mesh.example", rules=rules)[0] == 421
    assert asked(host="mesh.example", authorization="", rules=rules)[0] == 401, "the token is needed as ever"


def test_a_refused_name_is_answered_with_the_remedy():
    line = json.loads(asked(host="vm.lan:8000")[2])["error"]
    assert line.startswith("Host 'vm.lan:8000' is not this server") and "localhost" in line and "--public-url" in line


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("http://localhost:8080", "http://localhost:8080"),
        ("https://Name-8000.example:443/", "https://name-8000.example"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_a_public_address_is_an_origin(text, origin):
    assert PublicUrl.parse(text).origin == origin


@pytest.mark.parametrize(
    "text", ["", "localhost:8080", "ftp://a.example", "http://", "http://a.example/path", "http://a.example?x=1",
             "http://me@a.example", "http://a.example:99999", "http://a.example:x"],
)  # fmt: skip
def test_another_public_address_is_refused_in_one_line(text):
    with pytest.raises(UsageError, match=r"^--public-url .*; write http://localhost:8080 or https://name\.example"):
        listen(public=text)


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
    line = listener.who_reaches_it("sees the run")
    assert line is not None and f"also as http://localhost:{listener.address.port}; who has the token sees the run" in line


def test_a_server_with_a_public_address_prints_it():
    listener = listen(public="https://mesh.example")
    listener.socket.close()
    assert listener.url == "https://mesh.example" and not listener.is_local
    assert listener.who_reaches_it("sees the run") == "other machines can reach this address; who has the token sees the run"
