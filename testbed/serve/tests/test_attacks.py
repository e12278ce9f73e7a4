"""Requests that must not pass: each is refused in one line, and the server and its run go on."""

import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from testbed.serve.tests.serving import DEADLINE_S, LONG, SHORT, Answer, Served, serving
from testbed.tests.running import needs_runs
from testbed.view.tests.serving import UNFINISHED, unfinished_request

CONNECTIONS = 1000
PATHS = [
    "/api/runs/1/files/../../../../etc/passwd",
    "/api/runs/1/files/..%2f..%2f..%2fetc%2fpasswd",
    "/api/runs/1/files/%2e%2e/%2e%2e/job.json",
    "/api/runs/1/files//etc/passwd",
    "/api/runs/1/files/all/../../job.json",
    "/api/runs/1/files/all/seed-1/%00",
    "/api/runs/1/files/link",
    "/api/runs/1/figures/..%2fjob.json",
    "/api/runs/1/figures/%2e%2e",
    "/api/runs/../../etc/passwd",
    "/api/runs/%2e%2e/events",
    "/api/runs/1/cells/..%2f..%2fall/1/air",
    "/api/runs/1/cells/%2e%2e/1/story",
    "/api/runs/1/tables/..%2f..%2fjob",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server without runs of its own; run 1 has ended, with a link in its results."""
    folder = tmp_path_factory.mktemp("held")
    with serving(folder, held=True) as served:
        number = served.start(SHORT)
        results = folder / number / "results"
        (results / "all").mkdir(parents=True)
        (results / "experiment.json").write_text(json.dumps({"cells": [{"name": "all"}]}))
        (results / "link").symlink_to("/etc/passwd")
        served.delete(number)
        served.end_of(number)
        yield served


def refused(answer: Answer, status: int, words: str) -> None:
    assert (answer.status, words in answer.error) == (status, True), answer.body


def raw(server: Served, text: bytes) -> bytes:
    """The answer to these bytes, up to the end of the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while part := connection.recv(1 << 16):
            found += part
    return found


def test_no_token_no_answer(server: Served) -> None:
    for path in ("/api/runs", "/api/runs/1", "/api/runs/1/events", "/api/runs/1/files/all", "/api/nothing"):
        for headers in ({"Authorization": ""}, {"Authorization": "Bearer x"}, {"Authorization": f"Basic {server.token}"}):
            refused(server.send("GET", path, headers=headers), 401, "no valid token")
    refused(server.send("POST", "/api/runs", b"{}", {"Authorization": "", "Content-Type": "application/json"}), 401, "token")
    refused(server.send("DELETE", "/api/runs/1", headers={"Authorization": ""}), 401, "token")


@pytest.mark.slow
def test_ctrl_c_with_a_request_that_nobody_takes_says_one_line(tmp_path: Path):
    with ExitStack() as after, serving(tmp_path, held=True, complaint=UNFINISHED) as served:
        after.enter_context(unfinished_request(f"http://127.0.0.1:{served.port}", served.process, "/api/openapi.json"))


def test_only_the_description_needs_no_token(server: Served) -> None:
    assert b"POST /api/runs" in server.send("GET", "/", headers={"Authorization": ""}).body
    assert server.send("GET", "/api/openapi.json", headers={"Authorization": ""}).json()["openapi"] == "3.1.0"


def test_other_origins_and_hosts_are_refused(server: Served) -> None:
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{server.port}", "http://127.0.0.1:1"):
        refused(server.send("POST", "/api/runs", b"{}", {"Origin": origin}), 403, "is another site")
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example", "10.0.0.1:1"):
        refused(server.send("GET", "/api/runs", headers={"Host": host}), 421, "is not this server")
    assert server.send("GET", "/api/runs", headers={"Origin": f"http://127.0.0.1:{server.port}"}).status == 200


def test_other_methods_are_refused(server: Served) -> None:
    for method in ("PUT", "PATCH", "TRACE", "OPTIONS", "CONNECT"):
        connection = server.connection()
        connection.putrequest(method, "/api/runs")
        connection.putheader("Authorization", f"Bearer {server.token}")
        connection.endheaders()
        assert connection.getresponse().status == 405
        connection.close()
    refused(server.send("POST", "/api/runs/1"), 405, "takes no POST")
    refused(server.send("DELETE", "/api/runs"), 405, "takes no DELETE")


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_out_of_the_results(server: Served, path: str) -> None:
    """Also as a client sends it that does not tidy paths: http.client sends them as they are."""
    answer = server.send("GET", path)
    assert answer.status in (400, 404), answer.body
    assert b"root:" not in answer.body and b"manet-job" not in answer.body


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "the body is no JSON"),
        (b"{", 400, "the body is no JSON"),
        (b"\xff\xfe", 400, "the body is no JSON"),
        (b"[" * 100_000, 400, "the body is no JSON"),
        (b"1" * 5000, 400, "the body is no JSON"),
        (b"[]", 422, "the body is no JSON object"),
        (b'{"scenario": {}, "experiment": "chain5"}', 422, 'needs either "scenario" or "experiment"'),
        (b'{"scenario": {"hops": 1e999}}', 422, 'key "hops": is no finite number'),
        (b'{"scenario": {"hops": NaN}}', 422, 'key "hops": is no finite number'),
        (b'{"scenario": {"hops": null}}', 422, 'key "hops": is null'),
        (b'{"scenario": {"hops": 123456789012345678901234567890}}', 422, "more than 64 bits"),
        (b'{"scenario": {"hops": "\\ud800"}}', 422, "is no Unicode text"),
        (b'{"scenario": {"hops": 2, "base": "/etc/x.toml"}}', 422, 'key "base": unknown key'),
        (b'{"scenario": {"scenario": {"mobility": "/etc/x.csv"}}}', 422, 'key "scenario": unknown key'),
        (b'{"scenario": {"hops": 2, "mobility": "/etc/passwd"}}', 422, "names a file, which a request may not do"),
        (b'{"experiment": "../../etc/passwd"}', 422, 'key "experiment"'),
        (b'{"experiment": "chain6"}', 422, 'did you mean "chain5"?'),
        (b'{"experiment": "chain5", "set": {"mobility": "/etc/x.csv"}}', 422, "names a file, which a request may not do"),
        (b'{"experiment": "chain5", "set": {"hops=1\\nx": 2}}', 422, "is not a name"),
        (b'{"experiment": "chain5", "out": "/etc"}', 422, "unknown key"),
        (b'{"scenario": {"hops": 2}, "name": "../../x"}', 422, "is not a name"),
        (b'{"scenario": {"hops": 2}, "seeds": 1000000}', 422, "at most 10000"),
    ],
)
def test_wrong_bodies_are_refused_in_one_line(server: Served, body: bytes, status: int, words: str) -> None:
    refused(server.send("POST", "/api/runs", body, {"Content-Type": "application/json"}), status, words)


def test_a_body_of_another_kind_is_refused(server: Served) -> None:
    """Such as a form, which a page of another site may send without being asked."""
    body = json.dumps({"scenario": SHORT}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        refused(server.send("POST", "/api/runs", body, {"Content-Type": kind}), 415, "is no JSON")


def test_huge_messages_are_refused(server: Served) -> None:
    headers = {"Content-Type": "application/json"}
    refused(server.send("POST", "/api/runs", b" " * (2 << 20), headers), 413, "is larger than")
    connection = server.connection()
    chunks = iter([b" " * (1 << 16)] * 64)
    with suppress(OSError):  # the server may close before it has read all
        connection.request("POST", "/api/runs", chunks, {**headers, "Authorization": f"Bearer {server.token}"})
        assert connection.getresponse().status == 413
    connection.close()
    for text in (
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n",
        b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01" + b"\x00" * 1000,
    ):
        try:
            found = raw(server, text)
        except OSError:  # closed while the bytes were sent
            continue
        assert found.startswith((b"HTTP/1.1 4", b"")), found[:100]
    assert server.get("/api/runs")["runs"]


def test_a_value_too_long_for_a_command_line_is_refused(server: Served) -> None:
    answer = server.post({"experiment": "chain5", "set": {"tcp": "x" * 200_000}})
    refused(answer, 422, "is longer than 100000 characters")


def test_wrong_words_of_an_address_are_refused(server: Served) -> None:
    for path, words in {
        "/api/runs?limit=0": "limit=0: is no whole number from 1 to 1000",
        "/api/runs?limit=1&limit=2": "limit=: is given twice",
        "/api/runs?before=" + "9" * 30: "is no whole number",
        "/api/runs?limit=%D9%A1": "is no whole number",
        "/api/runs?order=1": "order=: unknown word; use before, limit",
        "/api/runs/1?x=1": "x=: unknown word; leave it out",
        "/api/runs/1/cells/all/0/air": "seed=0: is no whole number",
        "/api/runs/1/cells/all/1/story?t=nan": "t=nan: is no time",
        "/api/runs/1/tables/runs?format=xml": "format=xml: is not known; use json or csv",
        "/api/runs/1/events?after=-1": "after=-1: is no whole number",
    }.items():
        refused(server.send("GET", path), 400, words)


@pytest.mark.root
@needs_runs
def test_a_thousand_connections_do_not_harm_the_run(tmp_path: Path, host: Any) -> None:
    """Idle ones, half a request on each, and a wrong request on each; then the server answers and the run is as ever."""
    with serving(tmp_path) as server:
        number = server.start({**SHORT, "duration": 10})
        assert any(message.get("stage") == "traffic" for _, message in server.events(number))
        with ExitStack() as stack:
            begins = (b"", b"GET /api/runs HTTP/1.1\r\nHost: x", b"GET /api/runs HTTP/1.1\r\nHost: x\r\n\r\n")
            for index in range(CONNECTIONS):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S))
                with suppress(OSError):  # closed by the server
                    connection.sendall(begins[index % 3])
        wait_for_an_answer(server)
        run = server.end_of(number)
        if run["verdicts"]["void"]:
            host.void("the run beside a thousand connections is void")
        assert (run["state"], run["exit_status"], run["error"]) == ("complete", 0, None)


def wait_for_an_answer(server: Served) -> None:
    """While the server notices closed connections, it may answer 503, or close."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        connection = server.connection()
        try:
            connection.request("GET", "/api/runs", headers={"Authorization": f"Bearer {server.token}"})
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.1)
    raise AssertionError("no answer after a thousand connections")


def test_streams_are_bounded_and_end_with_the_server(tmp_path: Path) -> None:
    with serving(tmp_path, held=True) as server:
        number = server.start(LONG)
        streams = [server.events(number) for _ in range(16)]
        for stream in streams:
            assert next(stream)[0] == 1
        answer = server.send("GET", f"/api/runs/{number}/events")
        refused(answer, 429, "16 clients watch already")
        assert answer.headers["retry-after"].isdecimal()
        streams[0].close()
        wait_for_a_stream(server, number)
        server.process.send_signal(signal.SIGINT)
        assert [message["event"] for _, message in streams[1]][:2] == ["started", "stage"]


def wait_for_a_stream(server: Served, number: str) -> None:
    """A closed stream makes room once the server has noticed: at its next event or sign of life."""
    server.delete(server.start(SHORT))
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        connection = server.connection()
        connection.request("GET", f"/api/runs/{number}/events", headers={"Authorization": f"Bearer {server.token}"})
        status = connection.getresponse().status
        connection.close()
        if status == 200:
            return
        time.sleep(0.1)
    raise AssertionError("a closed stream makes no room")
