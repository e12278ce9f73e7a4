"""A scenario or an experiment before its start: the page is told what the run then does, and starts and stops it."""

import http.client
import json
import os
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from mobility import files
from testbed.tests.running import needs_runs, wait_until
from testbed.view.tests.serving import Served, view

pytestmark = [pytest.mark.root, needs_runs]

SCENARIO = """
topology = "chain"
hops = 2
area = [600, 300]
traffic_at = 6
duration = 4
warmup = 0
tcp = "vegas"
routing = "aodv"
mobility = { model = "random-waypoint", speed = 5 }
events = [
  { at = 1, power = "sta3", on = false },
  { at = 2, power = "sta3", on = true },
]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "walk.toml"
    path.write_text(SCENARIO)
    return path


def act(served: Served, wanted: object, run: str = "") -> tuple[int, dict]:
    """Status and answer of an action."""
    data = wanted if isinstance(wanted, bytes) else json.dumps(wanted).encode()
    request = urllib.request.Request(f"{served.base}/api/control{run}", data, {"Authorization": f"Bearer {served.token}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as found:
            return found.status, json.loads(found.read())
    except urllib.error.HTTPError as problem:
        return problem.code, json.loads(problem.read())


def test_a_scenario_is_started_as_planned_and_then_shown_as_recorded(scenario, tmp_path):
    out = tmp_path / "results"
    with view(scenario, "--control", "--out", str(out)) as served:
        about, movement = served.ask("/api/run?run=all/seed-2"), served.ask("/api/movement?run=all/seed-2")
        assert (about["kind"], about["seed"], about["startable"], about["starting"]) == ("planned", 2, True, False)
        assert [flow["tcp"] for flow in about["flows"]] == ["vegas"] and about["range_m"] > 200
        assert movement["power"] == [[7 * 10**9, "sta3", False], [8 * 10**9, "sta3", True]]
        assert served.answer("/api/frames?from=0&to=1000&run=all/seed-2")[0] == 200
        assert act(served, {"op": "start"}, "?run=all/seed-2") == (
            200, {"started": "all/seed-2", "directory": str(out / "all" / "seed-2")},
        )  # fmt: skip
        status, refused = act(served, {"op": "start"})
        assert (status, refused["error"][:25]) == (400, "all/seed-2 is under way; ")
        wait_until(lambda: served.ask("/api/run?run=all/seed-2")["kind"] == "live", "the run is under way")
        assert served.ask("/api/run")["kind"] == "planned", "the other seed is another run"
        wait_until(lambda: _kind(served) == "recorded", "the record is shown", 120)
        wait_until(lambda: not served.ask("/api/run?run=all/seed-2")["starting"], "manet run has ended")
        assert (out / "table.csv").exists()
        recorded = served.ask("/api/run?run=all/seed-2")
        status, refused = act(served, {"op": "start"}, "?run=all/seed-2")
        assert status == 400 and "holds a run already" in refused["error"]
    run = RunDirectory(out / "all" / "seed-2")
    assert run.run["seed"] == 2 and run.run["status"] == "complete"
    walked = files.read(run.path / "trace.csv")
    for name, rows in movement["stations"].items():
        for t_ns, x, y, *_ in rows:
            assert walked.position(name, t_ns / 1e9)[:2] == pytest.approx((x, y), abs=0.01)
    for key in ("range_m", "sense_m", "radio", "routing", "stations", "wires", "area"):
        assert recorded[key] == about[key]
    assert [(row["event"], row["station"], row["detail"]) for row in recorded["events"]] == [
        (row["event"], row["station"], row["detail"]) for row in about["events"]
    ]
    with view(scenario, "--control", "--out", str(out)) as served:
        status, refused = act(served, {"op": "start"})
        assert status == 400 and refused["error"].startswith(f"{out}: holds results already; see them with `manet view {out}`")


def _kind(served: Served) -> str:
    status, body = served.answer("/api/run?run=all/seed-2")
    return json.loads(body)["kind"] if status == 200 else ""


def test_a_started_run_is_stopped_in_order(scenario, tmp_path):
    out = tmp_path / "results"
    with view(scenario, "--control", "--out", str(out), "--set", "duration=300") as served:
        assert act(served, {"op": "stop"})[0] == 400
        assert act(served, {"op": "start"})[0] == 200
        wait_until(lambda: served.ask("/api/run")["kind"] == "live", "the run is under way")
        assert act(served, {"op": "power", "station": "sta2", "on": False}) == (200, {"ok": True})
        assert act(served, {"op": "stop"})[0] == 200
        wait_until(lambda: (out / "all" / "seed-1" / "manifest.json").exists(), "the run has ended")
    assert json.loads((out / "all" / "seed-1" / "run.json").read_text())["status"] == "interrupted"


def test_a_started_run_does_not_give_way_as_the_server_does(scenario, tmp_path):
    with view(scenario, "--control", "--out", str(tmp_path / "results"), "--set", "duration=300") as served:
        assert served.ask("/api/run")["kind"] == "planned", "threads that answer have begun"
        assert act(served, {"op": "start"})[0] == 200
        own = served.process.pid
        tasks = Path(f"/proc/{own}/task").glob("*/children")
        (child,) = {int(pid) for path in tasks for pid in path.read_text().split()}
        here = os.getpriority(os.PRIO_PROCESS, 0)
        assert (os.getpriority(os.PRIO_PROCESS, child), os.getpriority(os.PRIO_PROCESS, own)) == (here, here + 10)


def test_the_end_of_the_view_ends_the_run_that_it_started(scenario, tmp_path):
    out = tmp_path / "results"
    with view(scenario, "--control", "--out", str(out), "--set", "duration=300") as served:
        assert act(served, {"op": "start"})[0] == 200
        wait_until(lambda: served.ask("/api/run")["kind"] == "live", "the run is under way")
    assert json.loads((out / "all" / "seed-1" / "run.json").read_text())["status"] == "interrupted"


def test_a_start_that_fails_says_why(scenario, tmp_path):
    scenario.write_text(SCENARIO.replace('"vegas"', '"nosuch"'))
    with view(scenario, "--control", "--out", str(tmp_path / "results")) as served:
        assert act(served, {"op": "start"})[0] == 200
        wait_until(lambda: not served.ask("/api/run")["starting"], "the start has failed")
        about = served.ask("/api/run")
    assert about["kind"] == "planned" and 'this kernel has no "nosuch"' in about["failure"]


@pytest.mark.parametrize("out", ["walk.toml", "walk.toml/results", "/proc/results"])
def test_a_start_without_a_folder_for_its_results_is_one_line(scenario, out):
    folder = scenario.parent / out
    with view(scenario, "--control", "--out", str(folder)) as served:
        status, refused = act(served, {"op": "start"})
        assert status == 400 and refused["error"].startswith(f"{folder}: ") and refused["error"].endswith("with --out")
        assert not served.ask("/api/run")["starting"]


@pytest.mark.parametrize(("options", "may"), [((), "sees the run"), (("--control",), "controls runs, as root here")])
def test_who_can_reach_it_is_told_what_the_token_allows(scenario, options, may):
    with view(scenario, *options, "--listen", "0.0.0.0:0") as served:
        line = served.process.stdout.readline()
    forwarded = "a forwarded port of this machine also as http://localhost:"
    assert line.startswith(f"manet view: other machines can reach this address, {forwarded}")
    assert line.endswith(f"; who has the token {may}\n")


def test_an_experiment_lists_its_cells_and_is_read_only(tmp_path):
    with view(Path("hv-fig1"), "--quick") as served:
        assert served.ask("/api/run")["kind"] == "campaign"
        paths = [run["path"] for run in served.ask("/api/campaign")["runs"]]
        assert len(paths) > 1 and all(path.endswith("/seed-1") for path in paths)
        about = served.ask(f"/api/run?run={paths[1]}")
        assert (about["kind"], about["startable"], about["control"]) == ("planned", False, False)
        assert act(served, {"op": "start"}, f"?run={paths[1]}")[0] == 405
        for wrong in ("nowhere/seed-1", f"{paths[1]}00000", "../seed-1", paths[1][:-1] + "0"):
            assert served.answer(f"/api/run?run={wrong}")[0] == 400


@pytest.mark.parametrize("body", [b"[" * (1 << 16), b"[" * (1 << 20), b"{", b"", b"[]", b"\xff"])
def test_a_body_that_is_no_action_is_refused_in_one_line(scenario, tmp_path, body):
    with view(scenario, "--control", "--out", str(tmp_path / "results")) as served:
        status, answer = act(served, body)
        assert status in (400, 413) and answer["error"] and "\n" not in answer["error"], answer
        assert served.ask("/api/run")["kind"] == "planned"


def test_a_body_without_a_length_is_counted_as_it_comes(scenario, tmp_path):
    with view(scenario, "--control", "--out", str(tmp_path / "results")) as served:
        connection = http.client.HTTPConnection(served.base.removeprefix("http://"), timeout=30)
        parts = (b"[" * (1 << 16) for _ in range(17))
        with suppress(ConnectionError):  # it answers, and may close before the last part
            connection.request("POST", "/api/control", parts, {"Authorization": f"Bearer {served.token}"}, encode_chunked=True)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())) == (413, {"error": "the body is larger than 1048576 bytes"})
        connection.close()


def test_ctrl_c_does_not_wait_for_half_a_request(scenario, tmp_path):
    with view(scenario, "--control", "--out", str(tmp_path / "results")) as served:
        client = http.client.HTTPConnection(served.base.removeprefix("http://"), timeout=30)
        client.putrequest("POST", "/api/control")
        client.putheader("Authorization", f"Bearer {served.token}")
        client.putheader("Content-Length", "5")
        client.endheaders(b"{")
        assert served.ask("/api/run")["kind"] == "planned"
    client.close()
