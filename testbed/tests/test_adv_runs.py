"""ADV in a run: TCP over three hops, a relay that leaves, and the end of the connection."""

import json
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.scenario import Scenario
from testbed.programs import BUILT
from testbed.runs.routes import known_routes
from testbed.runs.run import run_scenario
from testbed.tests.running import needs_runs

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

# the range is 250 m
ROW = [[0, 0], [200, 0], [400, 0], [600, 0]]
DIAMOND = [[0, 150], [200, 290], [200, 10], [400, 150]]
ENDS = {"from": "sta1", "to": "sta4"}


def notes_of(run: Path, station: str) -> list[dict]:
    return [json.loads(line) for line in (run / "routing" / f"{station}.jsonl").read_text().splitlines()]


def run_adv(directory: Path, **keys: object) -> dict:
    scenario = {"topology": "positions", "warmup": 0, "routing": "adv-30-30", **keys}
    result = run_scenario(Scenario.model_validate(scenario), 1, directory, programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(directory)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    return metrics


def test_three_hops_carry_tcp_and_only_its_ends_are_receivers(tmp_path: Path) -> None:
    metrics = run_adv(tmp_path / "run", positions=ROW, flows=[ENDS], duration=5)
    # static routes: 397 kbit/s; contention that looks like broken links costs some
    assert metrics["flows"]["flow1"]["acked_bps"] > 100e3
    stations = known_routes(tmp_path / "run").stations
    assert {name: status["details"]["receiver"] for name, status in stations.items()} == {
        "sta1": True, "sta2": False, "sta3": False, "sta4": True,
    }  # fmt: skip
    assert stations["sta1"]["details"]["connections"] == ["10.0.0.4"]
    for status in stations.values():
        receivers = {route["destination"] for route in status["routes"] if route["state"] == "receiver"}
        assert receivers <= {"10.0.0.1", "10.0.0.4"}
    events = [note["event"] for note in notes_of(tmp_path / "run", "sta1")]
    assert events[0] == "started" and {"discovery", "route"} <= set(events)


def test_a_flow_continues_over_the_other_relay_when_one_leaves(tmp_path: Path) -> None:
    datagrams = {**ENDS, "traffic": "cbr", "rate": 40960, "bytes": 512}
    cut = {"at": 2, "cut": "next-hop", **ENDS}
    metrics = run_adv(tmp_path / "run", positions=DIAMOND, flows=[datagrams], events=[cut], duration=6)
    # 10 datagrams a second; those under way to the relay come back and wait for the other route
    assert metrics["flows"]["flow1"]["loss"] < 0.1
    notes = notes_of(tmp_path / "run", "sta1")
    (broken,) = {note["about"] for note in notes if note["event"] == "link-broken"}
    used = [note["via"] for note in notes if note["event"] == "route" and note["about"] == "10.0.0.4"]
    assert used[0] == broken and used[-1] != broken
