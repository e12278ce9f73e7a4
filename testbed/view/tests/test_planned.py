"""A planned run says of its events what the run then records."""

from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from testbed.tests.running import Background, chain, needs_runs
from testbed.view.planned import PlannedRun

EVENTS: list[dict[str, object]] = [
    {"at": 0.5, "move": "sta2", "to": [200, 10], "speed": 5},
    {"at": 0.6, "move": "sta3", "to": [400, 10]},
    {"at": 0.7, "link": ["sta1", "sta2"], "error_rate": 0.25},
    {"at": 0.8, "power": "sta3", "on": False},
    {"at": 0.9, "wire": ["sta3", "host1"], "stalled": True},
    {"at": 1.0, "station": "sta2", "daemon": "restart"},
    {"at": 1.1, "station": "sta1", "command": ["sleep", "60"]},
    {"at": 1.2, "station": "sta2", "command": ["sleep", "60"], "name": "nap"},
    {"at": 1.3, "name": "nap", "command": "restart"},
    {"at": 1.4, "name": "nap", "command": "kill"},
]


def _words(events: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    """Sorted: an event of a daemon is recorded when it is done, after others that began later."""
    return sorted((row["event"], row["station"], row["detail"]) for row in events)


def test_the_page_is_told_the_walls_of_a_scenario(tmp_path: Path):
    wall = {"from": [5, 0], "to": [5, 20], "loss_db": 6}
    about = PlannedRun("walled", chain(hops=1, walls=[wall]), 1, tmp_path).about()
    assert about["walls"] == [[5, 0, 5, 20]] and about["range_m"] is None
    assert PlannedRun("open", chain(hops=1), 1, tmp_path).about()["walls"] == []


def test_a_station_has_the_details_of_a_recorded_one(tmp_path: Path):
    events = [{"at": 1, "power": "sta2", "on": False}]
    planned = PlannedRun("off", chain(hops=1, events=events), 1, tmp_path)
    empty = {"name": "sta2", "queue": [], "sending": None, "counts": {"sent": {}, "drops": {}}, "data": None, "rates": []}
    begin_ns = int(planned.about()["traffic_ns"])
    assert planned.station("sta2", begin_ns) == {**empty, "on": True}
    assert planned.station("sta2", begin_ns + 2 * 10**9) == {**empty, "on": False}


@pytest.mark.root
@needs_runs
def test_planned_events_have_the_words_of_the_record(tmp_path: Path):
    wires = [{"station": "sta3", "host": "host1"}]
    scenario = chain(hops=2, duration=3, routing="aodv", wires=wires, events=EVENTS)
    planned = PlannedRun("chain", scenario, 1, tmp_path).about()["events"]
    assert Background(scenario, tmp_path / "run").result().status == "complete"
    recorded = RunDirectory(tmp_path / "run").events
    assert len(recorded) == len(EVENTS)
    assert _words(planned) == _words(recorded)
