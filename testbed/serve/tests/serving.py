"""A server for tests: `manet serve` as a process of its own, and requests to it. Every answer is checked against the interface's
own description (OpenAPI)."""

import functools
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

from testbed.programs import ROOT
from testbed.serve.app import Api

DEADLINE_S = 120.0
SHORT = {"topology": "chain", "hops": 2, "warmup": 0, "duration": 3}
LONG = {**SHORT, "duration": 600}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return self.json()["error"]


@dataclass(frozen=True)
class Served:
    """A running server."""

    port: int
    token: str
    process: subprocess.Popen

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)

    def send(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        """A request with the token, unless `headers` say otherwise."""
        connection = self.connection()
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {self.token}", **(headers or {})})
            found = connection.getresponse()
            answer = Answer(found.status, {key.lower(): value for key, value in found.getheaders()}, found.read())
        finally:
            connection.close()
        check(method, path, answer)
        return answer

    def get(self, path: str) -> Any:
        answer = self.send("GET", path)
        assert answer.status == 200, answer.body
        return answer.json()

    def post(self, body: object) -> Answer:
        return self.send("POST", "/api/runs", json.dumps(body).encode(), {"Content-Type": "application/json"})

    def start(self, scenario: dict[str, Any], **more: Any) -> str:
        answer = self.post({"scenario": scenario, **more})
        assert answer.status == 201, answer.body
        return answer.json()["id"]

    def delete(self, number: str) -> Answer:
        return self.send("DELETE", f"/api/runs/{number}")

    def events(self, number: str, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
        """The events of a run as they arrive, with their numbers."""
        connection = self.connection()
        headers = {"Authorization": f"Bearer {self.token}", "Last-Event-ID": str(after)}
        connection.request("GET", f"/api/runs/{number}/events", headers=headers)
        found = connection.getresponse()
        assert (found.status, found.getheader("content-type")) == (200, "text/event-stream; charset=utf-8")
        try:
            identifier = 0
            for line in found:
                key, _, value = line.decode().rstrip("\n").partition(": ")
                if key == "id":
                    identifier = int(value)
                if key == "data":
                    yield identifier, json.loads(value)
        finally:
            connection.close()

    def wait_for(self, number: str, state: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_S
        while not state(run := self.get(f"/api/runs/{number}")):
            assert time.monotonic() < deadline, run
            time.sleep(0.05)
        return run

    def end_of(self, number: str) -> dict[str, Any]:
        return self.wait_for(number, lambda run: run["state"] not in ("queued", "running"))


@contextmanager
def serving(folder: Path, *options: str, held: bool = False, status: int = 0, complaint: str = "") -> Iterator[Served]:
    """A server on `folder`, ended by Ctrl-C without a word of complaint; `held`: one whose runs never start (held.py). `status`:
    that of its end, if the test ends it otherwise; `complaint`: what it then has said, as a regular expression."""
    module = ["testbed.serve.tests.held"] if held else ["testbed", "serve"]
    argv, environment = [sys.executable, "-P", "-m", *module, str(folder), *options], {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
    try:
        yield _ready(process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == status and re.fullmatch(complaint, said), said


def _ready(process: subprocess.Popen) -> Served:
    assert process.stdout is not None and process.stderr is not None
    first, second = process.stdout.readline(), process.stdout.readline()
    address = re.search(r"http://127\.0\.0\.1:(\d+)$", first.strip())
    assert address, process.stderr.read()
    return Served(int(address[1]), second.split()[-1], process)


# --- the description of the interface -----------------------------------------------------------------------------------


class NoQueue:
    """The description needs no queue."""


@functools.cache
def document() -> dict[str, Any]:
    return Api(NoQueue()).fastapi().state.description  # type: ignore[arg-type]


def operation_of(method: str, path: str) -> dict[str, Any] | None:
    """The operation of the document to which a request belongs; None without one."""
    bare = path.partition("?")[0]
    for template, item in sorted(document()["paths"].items(), key=lambda entry: entry[0].count("{")):
        pattern = re.sub(r"\{name\}$", ".+", template)
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), bare) and method.lower() in item:
            return item[method.lower()]
    return None


def check(method: str, path: str, answer: Answer) -> None:
    """Assert that the document describes this answer: status, kind and content."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if answer.status >= 400:
        assert kind == "application/json" and list(answer.json()) == ["error"]
        assert "\n" not in answer.error and answer.error
    operation = operation_of(method, path)
    if operation is None:
        return
    assert str(answer.status) in operation["responses"], (method, path, answer.status, answer.body)
    described = operation["responses"][str(answer.status)]
    if "application/octet-stream" in described["content"]:
        return
    assert kind in described["content"], (path, kind)
    if kind == "application/json":
        schema = {**described["content"][kind]["schema"], "components": document()["components"]}
        jsonschema.Draft202012Validator(schema).validate(answer.json())
