"""Runs over HTTP: started, watched, stopped, and their results read."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.programs import ROOT
from testbed.serve.tests.serving import LONG, SHORT, Served, serving
from testbed.tests.running import needs_runs, state_of, wait_until

pytestmark = [pytest.mark.root, needs_runs]
CELL = "/api/runs/1/cells/all/1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serve")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    """A server with one run that has ended."""
    with serving(folder) as served:
        assert served.start(SHORT, name="two-hops") == "1"
        assert served.end_of("1")["state"] == "complete"
        yield served


def run_directory(folder: Path, number: str) -> Path:
    return folder / number / "results" / "all" / "seed-1"


# --- results ------------------------------------------------------------------------------------------------------------


def test_a_run_answers_as_the_command_does(server: Served, folder: Path) -> None:
    run = server.get("/api/runs/1")
    assert (run["name"], run["runs"]) == ("two-hops", 1)
    assert (run["exit_status"], run["error"]) == (0, None) or run["verdicts"]["void"] == 1
    assert run["request"] == {"scenario": SHORT, "name": "two-hops"}
    answer = run["answer"]
    assert (answer["format"], answer["experiment"], answer["missing"]) == ("manet-answer/1", "two-hops", [])
    assert answer["directory"] == str(folder / "1" / "results")
    assert run["verdicts"] == answer["verdicts"] and sum(run["verdicts"].values()) == 1
    assert [entry["id"] for entry in server.get("/api/runs?limit=1&before=2")["runs"]] == ["1"]


def test_tables_are_the_files_of_the_results(server: Served, folder: Path) -> None:
    results = folder / "1" / "results"
    for name, file in (("runs", "table.csv"), ("summary", "summary.csv")):
        assert server.send("GET", f"/api/runs/1/tables/{name}?format=csv").body == (results / file).read_bytes()
    (row,) = server.get("/api/runs/1/tables/runs")["rows"]
    assert (row["seed"], row["status"], row["run_dir"]) == (1, "complete", "all/seed-1")
    metrics = json.loads((run_directory(folder, "1") / "metrics.json").read_text())
    summary = {entry["metric"]: entry["mean"] for entry in server.get("/api/runs/1/tables/summary")["rows"]}
    assert row["acked_kbps"] == summary["acked_kbps"] > 0
    assert metrics["flows"]["flow1"]["acked_bps"] / 1000 == pytest.approx(row["acked_kbps"], abs=0.001)


def test_the_air_log_is_read_in_windows(server: Served, folder: Path) -> None:
    lines = (run_directory(folder, "1") / "air.csv").read_text().splitlines()
    written = [line.split(",") for line in lines if line[0].isdigit()]
    whole = server.get(CELL + "/air?limit=10000")
    assert whole["total"] == len(written)
    assert [row["t_ns"] for row in whole["rows"]] == [int(fields[0]) for fields in written][: len(whole["rows"])]
    begin, end = whole["rows"][10]["t_ns"], whole["rows"][20]["t_ns"]
    window = server.get(f"{CELL}/air?from={begin}&to={end}&limit=3")
    inside = [row for row in whole["rows"] if begin <= row["t_ns"] < end]
    assert (window["total"], window["rows"]) == (len(inside), inside[:3])


def test_the_story_of_a_segment_is_that_of_the_command(server: Served, folder: Path) -> None:
    story = server.get(CELL + "/story?segment=3")
    argv = [sys.executable, "-P", "-m", "testbed", "story", str(run_directory(folder, "1")), "--segment", "3"]
    printed = subprocess.run(argv, cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/usr/sbin:/bin"}, text=True,
                             capture_output=True, check=True).stdout  # fmt: skip
    assert {entry["segment"] for entry in story["transmissions"]} == {3}
    assert story["title"] in printed
    for line in story["lines"][1:]:
        assert " ".join(line.split()[:4]) in " ".join(printed.split()), line


def test_files_are_those_of_the_list(server: Served, folder: Path) -> None:
    files = server.get("/api/runs/1/files")["files"]
    capture = next(file for file in files if file["path"] == "all/seed-1/captures/sta1.pcap")
    found = server.send("GET", "/api/runs/1/files/all/seed-1/captures/sta1.pcap")
    assert (found.status, len(found.body)) == (200, capture["bytes"])
    assert found.body == (run_directory(folder, "1") / "captures" / "sta1.pcap").read_bytes()
    assert server.send("GET", "/api/runs/1/files/all/seed-1/captures/sta9.pcap").status == 404


def test_missing_parts_of_the_results_are_named(server: Served) -> None:
    for path, words in {
        "/api/runs/99": "run 99: there is no such run",
        "/api/runs/1/figures/fig.png": "figure fig.png: run 1 has none",
        "/api/runs/1/tables/other": "table other: there are runs, summary",
        "/api/runs/1/cells/other/1/air": "cell other: run 1 has none",
        "/api/runs/1/cells/all/2/air": "cell all, seed 2: run 1 has no such run",
        "/api/nothing": "/api/nothing: no such address",
    }.items():
        answer = server.send("GET", path)
        assert (answer.status, answer.error.startswith(words)) == (404, True), answer.body
    assert server.send("GET", CELL + "/story?flow=flow9").status == 422


def test_a_sweep_has_a_figure_and_cells(server: Served) -> None:
    """A shipped experiment with overrides: two values of an axis, one variant, one seed."""
    keys = {"hops": [1, 2], "duration": 2, "warmup": 0.5}
    answer = server.post({"experiment": "hv-fig1", "quick": True, "seeds": 1, "set": keys, "variant": ["hv"]})
    assert answer.status == 201, answer.body
    run = server.end_of(answer.json()["id"])
    assert (run["state"], sum(run["verdicts"].values())) == ("complete", run["runs"]), run
    rows = server.get(f"/api/runs/{run['id']}/tables/runs")["rows"]
    assert [row["hops"] for row in rows] == [1, 2] and run["runs"] == 2
    figures = server.get(f"/api/runs/{run['id']}/figures")["figures"]
    picture = next(name for name in figures if name.endswith(".png"))
    found = server.send("GET", f"/api/runs/{run['id']}/figures/{picture}")
    assert (found.headers["content-type"], found.body[:4]) == ("image/png", b"\x89PNG")


def test_a_run_that_cannot_begin_says_why(server: Served) -> None:
    """The machine's checks come before the answer: no path between stations so far apart."""
    answer = server.post({"scenario": {**SHORT, "spacing": 5000}})
    assert answer.status == 422
    assert "path" in answer.error


# --- events -------------------------------------------------------------------------------------------------------------


def test_events_tell_the_run_from_queue_to_end_and_resume(server: Served) -> None:
    events = list(server.events("1"))
    kinds = [message["event"] for _, message in events]
    assert [number for number, _ in events] == list(range(1, len(events) + 1))
    assert kinds[:3] == ["queued", "started", "expect"] and kinds[-1] == "ended"
    stages = [message["stage"] for _, message in events if message["event"] == "stage"]
    assert list(dict.fromkeys(stages)) == [
        "starts", "stations", "medium", "routing", "kernel-tcp", "captures", "settling", "traffic", "stop",
    ]  # fmt: skip
    verdict = next(message["outcome"] for _, message in events if message["event"] == "run")
    assert events[-1][1]["verdicts"][verdict] == 1
    assert list(server.events("1", after=5)) == events[5:]


@pytest.mark.parametrize(("language", "command"), [("python", [sys.executable, "-I"]), ("sh", ["bash", "-e"])])
def test_the_examples_of_the_documentation_run(server: Served, tmp_path: Path, language: str, command: list[str]) -> None:
    """As they are printed; only address, token and numbers of runs are replaced by those of this server."""
    if shutil.which("curl") is None and language == "sh":
        pytest.skip("curl: not installed; apt-get install curl")
    text = (ROOT / "docs" / "serve.md").read_text().partition(f"```{language}\n")[2].partition("```")[0]
    first = max(int(run["id"]) for run in server.get("/api/runs")["runs"]) + 1
    for old, new in {
        "3vJ0cVd9yHqC2mXkT7wLr5sUeNfGbA1z": server.token, "127.0.0.1:8000": f"127.0.0.1:{server.port}",
        "$A/2": f"$A/{first + 1}", "$A/1": f"$A/{first}",
    }.items():  # fmt: skip
        text = text.replace(old, new)
    (tmp_path / "example").write_text(text)
    argv = [*command, "example", f"http://127.0.0.1:{server.port}", server.token]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-1000:]
    assert "ended" in done.stdout and "acked_kbps" in done.stdout and '"error"' not in done.stdout.replace('"error": null', "")
    if language == "sh":
        assert (tmp_path / "sta1.pcap").read_bytes()[:4] == b"\xd4\xc3\xb2\xa1" or (tmp_path / "sta1.pcap").stat().st_size > 1000
        server.end_of(str(first + 1))


# --- stop, queue, restart -----------------------------------------------------------------------------------------------


def test_a_stopped_run_is_taken_down_and_its_results_are_kept(server: Served, folder: Path) -> None:
    number, waiting = server.start(LONG), server.start(SHORT)
    events = server.events(number)
    assert any(message.get("stage") == "traffic" for _, message in events)
    assert server.get(f"/api/runs/{waiting}")["state"] == "queued"
    assert server.get(f"/api/runs/{number}")["progress"][0]["stage"] == "traffic"
    assert server.send("GET", f"/api/runs/{number}/files").status == 409
    assert server.delete(waiting).json()["state"] == "stopped"
    assert server.delete(number).status == 200
    run = server.end_of(number)
    assert (run["state"], run["exit_status"]) == ("stopped", 130)
    assert state_of(run_directory(folder, number)) is None
    assert [message["state"] for _, message in events if message["event"] == "ended"] == ["stopped"]
    assert "all/seed-1/air.csv" in [file["path"] for file in server.get(f"/api/runs/{number}/files")["files"]]
    again = server.delete(number)
    assert (again.status, again.error) == (409, f"run {number}: is stopped already; its results are kept")


def test_a_run_ends_with_its_server_and_is_marked_after_the_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        done = server.start(SHORT)
        server.end_of(done)
        number, waiting = server.start(LONG), server.start(SHORT)
        assert any(message.get("stage") == "traffic" for _, message in server.events(number))
    assert state_of(run_directory(tmp_path, number)) is None
    with serving(tmp_path) as server:
        states = {run["id"]: run["state"] for run in server.get("/api/runs")["runs"]}
        assert states == {done: "complete", number: "interrupted", waiting: "interrupted"}
        assert list(server.events(number))[-1][1]["state"] == "interrupted"


def test_a_killed_server_leaves_no_run(tmp_path: Path) -> None:
    with serving(tmp_path, status=-signal.SIGKILL) as server:
        number = server.start(LONG)
        assert any(message.get("stage") == "traffic" for _, message in server.events(number))
        assert state_of(run_directory(tmp_path, number)) is not None
        server.process.kill()
        server.process.wait()
    wait_until(lambda: state_of(run_directory(tmp_path, number)) is None, "the end of the run")
    with serving(tmp_path) as server:
        assert server.get(f"/api/runs/{number}")["state"] == "interrupted"
        assert server.start(SHORT) == str(int(number) + 1)
