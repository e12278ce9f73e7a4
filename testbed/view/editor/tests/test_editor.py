"""The editor as a process: a scenario is drawn over HTTP and taken by the check of `manet run`; attacks are refused beside it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from scenarios.definition import load_scenario
from testbed.programs import ROOT
from testbed.view.app import PAGE

FLOW = '    { from = "sta1", to = "sta3" },'
PLACED = [[0, 0], [200, 0], [400, 0]]


@dataclass
class Edited:
    """A running `manet view --new` or `--edit`. `version`: of the document, as the last answer had it."""

    url: str
    process: subprocess.Popen[str]
    version: int = 1

    @property
    def base(self) -> str:
        return self.url.partition("/edit?")[0]

    @property
    def token(self) -> str:
        return self.url.partition("token=")[2]

    def send(self, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Authorization": f"Bearer {self.token}", **headers})
        try:
            with urllib.request.urlopen(request, timeout=60) as found:
                return found.status, json.loads(found.read())
        except urllib.error.HTTPError as problem:
            return problem.code, json.loads(problem.read())

    def ask(self, path: str) -> Any:
        status, answer = self.send(f"/api/edit/{path}")
        assert status == 200, answer
        return answer

    def change(self, **operation: object) -> Any:
        status, answer = self.send("/api/edit/change", {"operation": operation, "version": self.version})
        assert status == 200, answer
        self.version = answer["version"]
        return answer

    def save(self, name: str | None = None, *, overwrite: bool = False) -> tuple[int, Any]:
        status, answer = self.send("/api/edit/save", {"name": name, "version": self.version, "overwrite": overwrite})
        self.version = answer.get("version", self.version)
        return status, answer


def started(folder: Path, *words: str) -> Edited:
    """`manet view WORDS` in a folder."""
    argv = [sys.executable, "-P", "-m", "testbed", "view", *words]
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "/edit?token=" in line, process.stderr.read() if process.stderr else line
    return Edited(line.rsplit(": ", 1)[1].strip(), process)


@contextmanager
def editor(folder: Path, *words: str, complaint: str = "") -> Iterator[Edited]:
    """`manet view WORDS` in a folder, ended by Ctrl-C; what it then says of unsaved work begins with `complaint`."""
    running = started(folder, *words)
    try:
        yield running
    finally:
        running.process.send_signal(signal.SIGINT)
        _, said = running.process.communicate(timeout=30)
    assert running.process.returncode == 0
    assert (said.startswith(complaint) and said.count("\n") == 1) if complaint else said == "", said


@pytest.fixture
def edited(tmp_path: Path) -> Iterator[Edited]:
    with editor(tmp_path, "--new", "walk.toml") as running:
        yield running
        running.send("/api/edit/save", {"name": None, "version": running.ask("state")["version"], "overwrite": True})


def test_three_clicks_and_a_flow_are_a_scenario_that_manet_run_takes(edited, tmp_path):
    edited.change(op="add_stations", at=PLACED)
    edited.change(op="append", path=["flows"], value={"from": "sta1", "to": "sta3"})
    state = edited.change(op="text", text=edited.ask("state")["text"] + "# typed in\n", joins=False)
    found = edited.ask("check")
    assert found["version"] == state["version"] and found["problem"] is None
    picture = found["picture"]
    assert [[one["x"], one["y"]] for one in picture["stations"]] == PLACED
    assert picture["links"] == [["sta1", "sta2"], ["sta2", "sta3"]] and picture["flows"][0]["hops"] == 2
    assert picture["range_m"] == pytest.approx(250, abs=1)
    edited.change(op="move_stations", places={"sta3": [1000, 0]})
    found, lines = edited.ask("check"), edited.ask("state")["text"].splitlines()
    assert found["problem"] == {
        "text": "there is no path from sta1 to sta3 at the start positions; place the stations within range of each other, 250 m "
        '(key "positions"), or remove the flow', "path": ["flows", 0], "line": lines.index(FLOW) + 1,
    } and found["picture"]["flows"][0]["hops"] is None  # fmt: skip
    edited.change(op="undo")
    assert edited.save()[0] == 200
    scenario = load_scenario(tmp_path / "walk.toml")
    assert [placed[1:3] for placed in scenario.positions()] == [(0, 0), (200, 0), (400, 0)]
    assert (tmp_path / "walk.toml").read_text().endswith("# typed in\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["walk.toml"]


def test_the_check_names_key_and_line(edited):
    edited.change(op="text", text='topology = "positions"\npositions = [[0, 0], [9, 0]]\nqueue = 0\n', joins=False)
    problem = edited.ask("check")["problem"]
    assert problem == {"text": "0 is out of range; give at least 1", "path": ["queue"], "line": 3}
    edited.change(op="text", text="hops = 2\nhops = 3\n", joins=False)
    found = edited.ask("check")
    assert (found["problem"]["line"], found["picture"]) == (2, None)
    edited.change(op="text", text="hops = 2\nradio_overrides = { slot_us = 0 }\n", joins=False)
    found = edited.ask("check")
    assert found["problem"]["path"][0] == "radio_overrides" and len(found["picture"]["stations"]) == 3
    edited.change(op="text", text="hops = 2\n", joins=False)


def test_an_experiment_and_a_file_with_a_base_are_edited_in_their_scenario(tmp_path):
    (tmp_path / "base.toml").write_text("hops = 2\nspacing = 150\n")
    (tmp_path / "x.toml").write_text('base = "base.toml"\n# own\nhops = 3\n')
    with editor(tmp_path, "--edit", "x.toml") as running:
        picture = running.ask("check")["picture"]
        assert [one["x"] for one in picture["stations"]] == [0, 150, 300, 450]
        assert running.change(op="set", path=["hops"], value=1)["text"] == 'base = "base.toml"\n# own\nhops = 1\n'
        assert running.save()[0] == 200
    (tmp_path / "e.toml").write_text('question = "?"\n[scenario]\nhops = 2 # h\n[axes]\nhops = [1, 2]\n')
    with editor(tmp_path, "--edit", "e.toml") as running:
        assert running.ask("check")["problem"] is None
        assert "hops = 4 # h" in running.change(op="set", path=["hops"], value=4)["text"]
        assert running.save()[0] == 200


def test_two_tabs_never_overwrite_each_other(edited):
    mine = edited.change(op="text", text="hops = 2\n", joins=False)
    status, answer = edited.send("/api/edit/change", {"operation": {"op": "set", "path": ["hops"], "value": 9}, "version": 1})
    assert status == 409 and "another tab" in answer["error"] and answer["state"]["text"] == mine["text"]
    assert edited.ask(f"state?after={mine['version']}") == {"version": mine["version"]}


def test_ctrl_c_with_unsaved_work_names_the_draft_and_the_next_editor_asks(tmp_path):
    with editor(tmp_path, "--new", "walk.toml", complaint="manet view: walk.toml is not saved; its draft is ") as running:
        text = running.change(op="add_stations", at=PLACED)["text"]
    with editor(tmp_path, "--new", "walk.toml") as running:
        assert running.ask("state")["draft"] == text
        status, answer = running.send("/api/edit/draft", {"take": True})
        assert status == 200 and answer["text"] == text
        running.version = answer["version"]
        assert running.save()[0] == 200


def test_a_killed_server_loses_nothing(tmp_path):
    running = started(tmp_path, "--new", "walk.toml")
    text = running.change(op="add_stations", at=PLACED)["text"]
    running.process.kill()
    running.process.communicate(timeout=30)
    assert (tmp_path / ".walk.toml.draft").read_text() == text


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--new", "x.toml"), "x.toml: exists"), (("--edit",), "--edit: name the file"),
        (("--edit", "no.toml"), "no.toml: there is no"),
        (("--new", "a b.toml"), "is not a file name"), (("--new", "no/x.toml"), "there is no folder"),
        (("--new", "x.txt"), "is not a file"),
        (("--edit", "x.toml", "--set", "hops=2"), "--set: is for a run"), (("--new", "--edit", "x.toml"), "not allowed with"),
    ],
)  # fmt: skip
def test_a_wrong_command_is_refused_in_one_line(tmp_path, words, line):
    (tmp_path / "x.toml").write_text("hops = 2\n")
    argv = [sys.executable, "-P", "-m", "testbed", "view", *words]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 2 and line in done.stderr and "Traceback" not in done.stderr


# --- attacks --------------------------------------------------------------------------------------------------------------------

READ = (
    "/api/edit/state", "/api/edit/check", "/api/edit/form", "/api/edit/files", "/api/edit/runs", "/api/edit/background",
    "/api/edit/plot?run=x&flow=1", "/api/edit/figure/x.png", "/api/run", "/metrics",
)  # fmt: skip
WRITE = ("change", "draft", "save", "start", "stop")


def test_without_the_token_or_from_another_site_nothing_is_answered(edited):
    for path in READ:
        assert edited.send(path, Authorization="Bearer x")[0] == 401
        assert edited.send(path, Origin="http://evil.example")[0] == 403
        assert edited.send(path, Host="evil.example")[0] == 421
    for name in WRITE:
        body = {"operation": {"op": "text", "text": "x = 1", "joins": False}, "version": 1}
        assert edited.send(f"/api/edit/{name}", body, Authorization="Bearer x")[0] == 401
        assert edited.send(f"/api/edit/{name}", body, Origin="http://evil.example")[0] == 403
    assert edited.ask("state")["version"] == 1


@pytest.mark.parametrize("name", ["../x.toml", "/tmp/x.toml", "<b>.toml", "out/x.toml", "link.toml", ".x.toml", 3, "x.py"])
def test_saving_outside_of_the_folder_is_refused(edited, tmp_path, name):
    (tmp_path / "out").symlink_to(tmp_path.parent)
    (tmp_path / "link.toml").symlink_to(tmp_path.parent / "x.toml")
    edited.change(op="text", text="hops = 2\n", joins=False)
    status, answer = edited.send("/api/edit/save", {"name": name, "version": edited.version, "overwrite": True})
    assert status == 400 and "\n" not in answer["error"] and not (tmp_path.parent / "x.toml").exists()


@pytest.mark.parametrize(
    "text",
    [
        'base = "../secret.toml"\n', 'base = "/etc/passwd"\n', 'hops = 2\nmobility = "/etc/shadow"\n',
        'hops = 2\nflows = [{ from = "sta1", to = "sta2", traffic = "vbr", interval = 1, sizes = "/etc/passwd" }]\n',
        'hops = 2\npropagation = { model = "trace", file = "../secret.toml" }\n', 'hops = 2\nrouting = "../secret.toml"\n',
    ],
)  # fmt: skip
def test_a_check_reads_no_file_outside_of_the_folder(edited, tmp_path, text):
    (tmp_path.parent / "secret.toml").write_text("swordfish = [\n")
    edited.change(op="text", text=text, joins=False)
    found = edited.ask("check")
    assert "outside of" in found["problem"]["text"] and "swordfish" not in json.dumps(found) and "root:" not in json.dumps(found)


def test_names_that_are_markup_are_text(edited):
    evil = "<img src=x onerror=alert(1)>"
    edited.change(op="text", text=f"hops = 2\ntcp = {json.dumps(evil)}\n", joins=False)
    with urllib.request.urlopen(f"{edited.base}/edit", timeout=30) as page:
        policy = page.headers["content-security-policy"]
        assert "script-src 'self'" in policy and "unsafe" not in policy and evil.encode() not in page.read()
    assert edited.ask("check")["problem"]["path"] == ["tcp"]


def test_no_module_of_the_page_makes_markup_of_text():
    own = [path for path in PAGE.rglob("*.js") if "vendor" not in path.parts]
    wrong = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc", "setHTML")
    assert len(own) > 20 and [(path.name, word) for path in own for word in wrong if word in path.read_text()] == []


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{", b"3", b'"x"', b"[" * 100_000, {"operation": {}}, {"version": 1},
        {"operation": {"op": "undo"}, "version": 1, "x": 2},
    ],
)  # fmt: skip
def test_a_wrong_body_is_refused_in_one_line(edited, body):
    status, answer = edited.send("/api/edit/change", body)
    assert status == 400 and "\n" not in answer["error"]


def test_a_body_of_ten_megabytes_and_a_strange_address_are_refused(edited):
    with pytest.raises((urllib.error.URLError, ConnectionError, http.client.HTTPException, AssertionError)):
        status, _ = edited.send("/api/edit/change", b"x" * (10 << 20))
        assert status != 413
        raise AssertionError
    for path in (
        "/api/edit/figure/..%2f..%2fetc%2fpasswd",
        "/api/edit/nothing",
        "/edit/../etc/passwd",
        "/static/editor/../../app.py",
    ):
        assert edited.send(path)[0] == 404
    assert edited.ask("state")["version"] == 1


def test_without_control_no_run_starts(edited):
    edited.change(op="text", text="hops = 1\n", joins=False)
    assert edited.save()[0] == 200
    status, answer = edited.send("/api/edit/start", {"seeds": 1})
    assert status == 400 and "--control" in answer["error"] and not edited.ask("runs")["control"]
    assert edited.send("/api/control", {"op": "start"})[0] == 403
    assert edited.send("/api/run")[1]["kind"] == "planned", "the view of the server shows the saved scenario"


def test_the_background_is_a_picture_of_the_folder_alone(edited, tmp_path):
    (tmp_path / "plan.png").write_bytes((PAGE.parents[2] / "docs/pictures/view-live.png").read_bytes()[:1000])
    (tmp_path / "evil.png").symlink_to("/etc/passwd")
    assert edited.ask("files")["pictures"] == ["plan.png"]
    edited.change(op="background", file="plan.png", width=100, x=0, y=0)
    request = urllib.request.Request(f"{edited.base}/api/edit/background", headers={"Authorization": f"Bearer {edited.token}"})
    with urllib.request.urlopen(request, timeout=30) as found:
        assert found.headers["content-type"] == "image/png" and len(found.read()) == 1000
    for name in ("evil.png", "../x.png", "/etc/passwd", "walk.toml"):
        status, _ = edited.send("/api/edit/change", {
            "operation": {"op": "background", "file": name, "width": 1, "x": 0, "y": 0}, "version": edited.version,
        })  # fmt: skip
        edited.version += status == 200
        assert edited.send("/api/edit/background")[0] == 404


@pytest.mark.parametrize("text", ['mobility = "../secret.csv"\n', 'base = "moving.toml"\n', 'routing = "../secret.csv"\n'])
def test_the_view_of_an_editor_without_control_opens_no_file_outside(tmp_path, text):
    space = tmp_path / "space"
    space.mkdir()
    (tmp_path / "secret.csv").write_text("swordfish = [\n")
    (space / "moving.toml").write_text('hops = 1\nmobility = "../secret.csv"\n')
    (space / "x.toml").write_text(text if "base" in text else f"hops = 1\n{text}")
    with editor(space, "--edit", "x.toml") as running:
        for path in ("/api/run", "/api/movement", "/api/campaign", "/api/routes?t=0"):
            status, answer = running.send(path)
            assert status == 400 and "outside of" in answer["error"] and "swordfish" not in answer["error"]


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r"


def test_escape_sequences_reach_no_terminal_and_no_message(edited, tmp_path):
    written = json.dumps(ESCAPES)  # in TOML the same escapes
    for text in (f"hops = 2\ntcp = {written}\n", f"hops = 2\n{written} = 1\n", f"hops = 2\ntcp = '{ESCAPES}'\n"):
        edited.change(op="text", text=text, joins=False)
        problem = edited.ask("check")["problem"]
        assert problem is None or problem["text"].isprintable(), text
    for path in (f"/api/edit/figure/{quote(ESCAPES)}", f"/static/{quote(ESCAPES)}", f"/api/edit/plot?run={quote(ESCAPES)}"):
        status, answer = edited.send(path)
        assert status == 404 and answer["error"].isprintable()
    for name in (f"{ESCAPES}.toml", f"a{ESCAPES}/b.toml"):
        status, answer = edited.send("/api/edit/save", {"name": name, "version": edited.version, "overwrite": True})
        assert status == 400 and answer["error"].isprintable()
    for operation in (
        {"op": ESCAPES}, {"op": "set", "path": ["hops"], "value": 1, ESCAPES: 2}, {"op": "remove", "path": ["hops", ESCAPES]},
        {"op": "remove_stations", "stations": [ESCAPES]}, {"op": "rename_station", "station": ESCAPES, "name": ESCAPES},
        {"op": "move_stations", "places": {ESCAPES: [0, 0]}}, {"op": "background", "file": ESCAPES, "width": 1, "x": 0, "y": 0},
    ):  # fmt: skip
        status, answer = edited.send("/api/edit/change", {"operation": operation, "version": edited.version})
        assert status == 400 and answer["error"].isprintable(), operation
    assert edited.send("/api/edit/state", Host=f"x{quote(ESCAPES)}")[0] == 421
    assert sorted(path.name for path in tmp_path.iterdir()) == [".walk.toml.draft"]


def test_ten_thousand_changes_at_once_are_one_change_and_another_tab_is_answered(edited):
    """As of a tab gone wild: each names the same version, so that one is carried out."""
    host, port = edited.base.removeprefix("http://").split(":")
    body = json.dumps({"operation": {"op": "add_stations", "at": [[0, 0]]}, "version": 1}).encode()
    count, clients, first = 10_000, 20, edited.ask("state")["version"]
    answers: Counter[int] = Counter()
    longest = 0.0

    def wild(token: str) -> list[int]:
        request = (
            f"POST /api/edit/change HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body
        found = []
        with socket.create_connection((host, int(port)), timeout=300) as connection, connection.makefile("rb") as incoming:
            for _ in range(0, count // clients, 50):
                connection.sendall(request * 50)
                for _ in range(50):
                    found.append(int(incoming.readline().split()[1]))
                    length = 0
                    while (line := incoming.readline()) != b"\r\n":
                        name, _, value = line.partition(b":")
                        length = int(value) if name.lower() == b"content-length" else length
                    incoming.read(length)
        return found

    before = resident(edited)
    with ThreadPoolExecutor(clients) as pool:
        futures = [pool.submit(wild, edited.token if client % 2 else "x" * 32) for client in range(clients)]
        while not all(future.done() for future in futures):
            begin = time.monotonic()
            assert edited.ask(f"state?after={first + 1}")["version"] in (first, first + 1)
            longest = max(longest, time.monotonic() - begin)
        for future in futures:
            answers.update(future.result())
    assert answers == {401: count // 2, 409: count // 2 - 1, 200: 1}
    assert len(edited.ask("check")["picture"]["stations"]) == 1
    assert resident(edited) - before < 64 << 20, "bytes"
    print(f"longest answer to another tab {longest:.3f} s")


def resident(edited: Edited) -> int:
    """Bytes of memory of the server."""
    pages = int(Path(f"/proc/{edited.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
