"""The queue behind the interface: its order, its bound, and its folder."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from testbed.programs import ROOT
from testbed.serve.queue import MAX_QUEUED
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


def test_other_folders_and_broken_records_are_no_runs(tmp_path: Path) -> None:
    for name, text in {"notes": "{}", "3": "{", "4": '{"format": "other"}'}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.json").write_text(text)
    with serving(tmp_path, held=True) as server:
        assert server.get("/api/runs") == {"runs": []}
        assert server.start(SHORT) == "1"
        assert [server.start(SHORT), server.start(SHORT)] == ["2", "5"]


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
