"""The queue behind the interface: its order, its bound, and its folder."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.errors import RunError
from testbed.programs import ROOT
from testbed.serve.job import Job
from testbed.serve.queue import MAX_QUEUED, Child, Queue
from testbed.serve.request import plan_of
from testbed.serve.tests.held import NO_PROGRESS
from testbed.serve.tests.serving import SHORT, serving


def test_runs_wait_in_order_and_a_full_queue_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path, held=True) as server:
        first = server.start(SHORT)
        server.wait_for(first, lambda run: run["state"] == "running")
        waiting = [server.start(SHORT) for _ in range(MAX_QUEUED)]
        places = [next(server.events(number))[1]["place"] for number in (first, *waiting)]
        assert places == list(range(MAX_QUEUED + 1))
        refused = server.post({"scenario": SHORT})
        assert (refused.status, refused.error.split(";")[0]) == (429, f"{MAX_QUEUED} runs wait already")
        assert refused.headers["retry-after"].isdecimal()
        assert server.delete(waiting[0]).json()["state"] == "stopped"
        assert server.start(SHORT) == str(MAX_QUEUED + 2)
        server.delete(first)
        server.wait_for(waiting[1], lambda run: run["state"] == "running")
        assert server.get(f"/api/runs/{waiting[2]}")["state"] == "queued"


def test_a_run_that_is_starting_has_the_first_place(tmp_path: Path) -> None:
    """Its process is there some milliseconds after it left the queue."""
    starting, go = threading.Event(), threading.Event()

    def start(_job: Job, _on_line: Callable[[str], None]) -> Child:
        starting.set()
        go.wait()
        raise RunError("the start fails")

    queue = Queue(tmp_path, start)
    try:
        plan = plan_of({"scenario": SHORT}, check_machine=False)
        queue.submit(plan)
        starting.wait()
        second = queue.submit(plan)
        assert json.loads((second.folder / "events.jsonl").read_text().splitlines()[0])["place"] == 1
    finally:
        go.set()
        queue.close()


def test_progress_and_words_of_the_run_become_events(tmp_path: Path) -> None:
    with serving(tmp_path, held=True) as server:
        number = server.start(SHORT)
        events = server.events(number)
        kinds = [next(events)[1] for _ in range(4)]
        assert [message["event"] for message in kinds] == ["queued", "started", "stage", "note"]
        assert kinds[3]["text"] == "a word of the run"
        assert [next(events)[1] for _ in NO_PROGRESS] == [{"event": "note", "text": line} for line in NO_PROGRESS]
        (stage,) = server.get(f"/api/runs/{number}")["progress"]
        assert (stage["stage"], stage["left_s"]) == ("traffic", 9.5)


def test_the_scenario_s_file_and_the_record_are_in_the_run_s_folder(tmp_path: Path) -> None:
    with serving(tmp_path, held=True) as server:
        server.start({**SHORT, "flows": [{"from": "sta1", "to": "sta3"}]}, name="mine", seeds=3, profile="modern")
    record = json.loads((tmp_path / "1" / "job.json").read_text())
    assert (record["format"], record["target"], record["runs"]) == ("manet-job/1", "mine.toml", 3)
    assert record["options"] == ["--set", "profile=modern", "--seeds", "3"]
    assert 'flows = [{from = "sta1", to = "sta3"}]' in (tmp_path / "1" / "mine.toml").read_text()


def test_a_folder_has_one_server(tmp_path: Path) -> None:
    with serving(tmp_path, held=True):
        argv = [sys.executable, "-P", "-m", "testbed", "serve", str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        second = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == f"manet serve: {tmp_path}: another `manet serve` uses it; give another folder, or end that one\n"


def test_other_folders_are_no_runs(tmp_path: Path) -> None:
    (tmp_path / "3").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "job.json").write_text("{}")
    with serving(tmp_path, held=True) as server:
        assert server.get("/api/runs") == {"runs": []}
        assert server.start(SHORT) == "1"
        assert [server.start(SHORT), server.start(SHORT)] == ["2", "4"]


RECORD = {"format": "manet-job/1", "name": "n", "request": {}, "runs": 1, "target": "chain5", "options": [], "state": "complete"}
BROKEN: dict[str, tuple[object, str]] = {
    "no JSON": ("{", "is no record of a run"),
    "no object": ("[]", 'is no "manet-job/1"'),
    "another format": (RECORD | {"format": "manet-job/2"}, 'is no "manet-job/1"'),
    "an unknown key": (RECORD | {"colour": 1}, r'"colour": '),
    "a missing key": ({key: value for key, value in RECORD.items() if key != "name"}, r'"name": '),
    "a value of another type": (RECORD | {"runs": "1"}, r'"runs": '),
    "an unknown state": (RECORD | {"state": "done"}, r'"state": '),
    "options that are none": (RECORD | {"options": 5}, r'"options": '),
    "deep lists": ("[" * 100_000, "is no record of a run"),
    "bytes": (b"\xff\xfe", "is no record of a run"),
}


@pytest.mark.parametrize(("content", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_record_is_left_out_with_a_line_and_the_others_are_runs(tmp_path: Path, content: object, words: str) -> None:
    """An unknown or a missing key kept the server from starting."""
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
    (tmp_path / "1" / "job.json").write_text(json.dumps(RECORD))
    data = content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode()
    (tmp_path / "2" / "job.json").write_bytes(data)
    line = rf"manet serve: {tmp_path}/2/job\.json: {words}.*; left out: correct the file, or move the folder away\n"
    with serving(tmp_path, held=True, complaint=line) as server:
        assert [job["id"] for job in server.get("/api/runs")["runs"]] == ["1"]
        assert server.start(SHORT) == "3"
    assert (tmp_path / "2" / "job.json").read_bytes() == data


@pytest.mark.parametrize("name", ["job.json", "events.jsonl", "."])
def test_links_and_pipes_in_a_run_s_folder_are_neither_followed_nor_waited_for(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "served" / "1").mkdir(parents=True)
    elsewhere.mkdir()
    for folder in (elsewhere, tmp_path / "served" / "1"):
        (folder / "job.json").write_text(json.dumps(RECORD | {"state": "running"}))
    (elsewhere / "events.jsonl").write_text('{"event": "secret"}\n')
    (tmp_path / "served" / "2").mkdir()
    if name == ".":
        (tmp_path / "served" / "2").rmdir()
        (tmp_path / "served" / "2").symlink_to(elsewhere)
    else:
        (tmp_path / "served" / "2" / name).symlink_to(elsewhere / name)
        (tmp_path / "served" / "1" / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / "served" / "1" / name)
    with serving(tmp_path / "served", held=True, complaint="(manet serve: .*\n)*") as server:
        found = [job["id"] for job in server.get("/api/runs")["runs"]]
        assert found == ([] if name == "job.json" else ["1"])
        for number in found:
            assert b"secret" not in server.send("GET", f"/api/runs/{number}", None).body
    assert (elsewhere / "events.jsonl").read_text() == '{"event": "secret"}\n'


def test_a_job_whose_start_cannot_be_recorded_fails_and_the_next_one_runs(tmp_path: Path) -> None:
    gone = f"{tmp_path}/2/job.json: No such file or directory"
    with serving(tmp_path, held=True, complaint=f"manet serve: run 2: {gone}\n") as server:
        first, second, third = (server.start(SHORT) for _ in range(3))
        shutil.rmtree(tmp_path / second)
        server.delete(first)
        server.wait_for(third, lambda run: run["state"] == "running")
        failed = server.get(f"/api/runs/{second}")
    assert (failed["state"], failed["error"]) == ("failed", gone)


def test_a_run_that_cannot_be_recorded_is_refused_in_one_line(tmp_path: Path) -> None:
    with serving(tmp_path / "served", held=True) as server:
        (tmp_path / "served").rmdir()
        refused = server.post({"scenario": SHORT})
        assert (refused.status, refused.error) == (
            507, f"the run cannot be recorded: {tmp_path}/served/1: No such file or directory",
        )  # fmt: skip
        (tmp_path / "served").mkdir()
        assert server.start(SHORT) == "1"
