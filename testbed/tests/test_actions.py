"""Actions of a view on a run under way: carried out and recorded by the run, and repeated from the record."""

import csv
import json
import re
import threading
import time
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.maps.past_snapshot import off_at
from analysis.metrics.analyse import analyse_run
from record.added_flows import ADDED_FLOWS
from record.events_file import read_events
from testbed.errors import ManetError, UsageError
from testbed.host.processes import Processes
from testbed.runs.by_hand import with_actions
from testbed.runs.recorded import Recorded
from testbed.runs.under_way import act_on
from testbed.stages.actions import NO_FLOWS
from testbed.stages.added_flows import AddedFlows
from testbed.stages.site import Site
from testbed.stages.station import StationNet
from testbed.tests.running import Background, captured, chain, needs_runs, prompt, wait_until

pytestmark = [pytest.mark.root, needs_runs]

RUN = {
    "hops": 3,
    "window": 4,
    "duration": 9,
    "tcp": "newreno",
    "routing": "aodv",
    "events": [{"at": 0.5, "power": "sta2", "on": True}],
}
ACTIONS = [
    {"op": "power", "station": "sta3", "on": False},
    {"op": "power", "station": "sta3", "on": True},
    {"op": "link", "from": "sta1", "to": "sta2", "error_rate": 1},
    {"op": "link", "from": "sta1", "to": "sta2", "error_rate": 0},
    {"op": "move", "station": "sta3", "position": [400, 20]},
    {"op": "flow", "from": "sta2", "to": "sta4", "tcp": "vegas", "seconds": 3},
    {"op": "flow", "from": "sta4", "to": "sta3", "traffic": "transfer", "size": 20000},
]
REFUSED = {
    "op: use one of": {"op": "stop"},
    'station: there is no station "sta9"': {"op": "power", "station": "sta9", "on": True},
    "on: is missing": {"op": "power", "station": "sta3"},
    "position: ": {"op": "move", "station": "sta3", "position": [-2e7, 0]},
    "error_rate: ": {"op": "link", "from": "sta1", "to": "sta2", "error_rate": 2},
    "to: there is no station": {"op": "flow", "from": "sta1", "to": "nobody"},
    "tcp: this kernel has no": {"op": "flow", "from": "sta1", "to": "sta4", "tcp": "nosuch"},
    "tcp: elfn(newreno) follows the path from the start": {"op": "flow", "from": "sta1", "to": "sta4", "tcp": "elfn"},
    "flow1 is without SACK": {"op": "flow", "from": "sta1", "to": "sta4", "tcp": "sack"},
    "traffic: a view starts": {"op": "flow", "from": "sta1", "to": "sta4", "traffic": "command"},
    "seconds: ": {"op": "flow", "from": "sta1", "to": "sta4", "seconds": 8.99},
    "argv: is no key of a flow": {"op": "flow", "from": "sta1", "to": "sta4", "argv": ["sh"]},
}
TAKE_PORT = """
import socket, time
held = socket.socket()
held.bind(("", 5202))
print("taken", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def acted(tmp_path_factory) -> tuple[Path, list[dict], dict[str, str]]:
    """A run with ACTIONS: its directory, their answers, and the messages of REFUSED."""
    directory = tmp_path_factory.mktemp("acted") / "run"
    running = Background(chain(**RUN), directory, deadline_s=120).at("traffic", 0.15)
    answers = [act_on(directory, action) for action in ACTIONS]
    messages = {}
    for begin, action in REFUSED.items():
        with pytest.raises(ManetError) as refused:
            act_on(directory, action)
        messages[begin] = str(refused.value)
    assert running.result().status == "complete"
    return directory, answers, messages


def test_each_action_is_an_event_with_its_source(acted):
    directory, answers, _ = acted
    rows = [
        (row["event"], row["station"], row["detail"].split(":")[0]) for row in read_events(directory) if row["source"] == "view"
    ]
    assert rows == [
        ("power", "sta3", "off"), ("power", "sta3", "on"), ("link", "sta1 sta2", "error_rate 1"),
        ("link", "sta1 sta2", "error_rate 0"), ("move", "sta3", "to 400 20"), ("flow", "sta2 sta4", "flow2 started"),
        ("flow", "sta4 sta3", "flow3 started"),
    ]  # fmt: skip
    assert [row["station"] for row in read_events(directory) if row["source"] == "scenario"] == ["sta2"]
    assert [answer.get("flow") for answer in answers[-2:]] == ["flow2", "flow3"]
    off = next(row for row in RunDirectory(directory).events if row["detail"] == "off")
    assert "sta3" in off_at(RunDirectory(directory), float(off["t_s"]))


def test_an_added_flow_is_captured_sampled_and_measured(acted):
    directory, _, _ = acted
    run = RunDirectory(directory)
    assert [(flow.name, flow.source, flow.target, flow.traffic) for flow in run.flows[1:]] == [
        ("flow2", "sta2", "sta4", "bulk"), ("flow3", "sta4", "sta3", "transfer"),
    ]  # fmt: skip
    metrics = analyse_run(directory)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    assert metrics["flows"]["flow2"]["acked_bps"] > 0 and metrics["flows"]["flow2"]["window_s"] == pytest.approx([0, 3])
    assert metrics["flows"]["flow3"]["finished"] is True and metrics["flows"]["flow3"]["transferred_bytes"] == 20000
    assert "by hand: 7 actions of a view (events.csv)" in metrics["remarks"]
    assert captured(directory, "sta4", "tcp dst port 5202 and greater 1000")
    with (directory / "tcp.csv").open() as file:
        algorithms = {(row["dport"], row["detail"]) for row in csv.DictReader(file) if row["event"] == "algorithm"}
    assert ("5201", "newreno") in algorithms or ("5201", "default") in algorithms
    settings = json.loads((directory / "tcp-settings.json").read_text())
    assert {one["name"]: list(one.get("ports") or {}) for one in settings["stations"]}["sta2"] == ["5202"]
    assert json.loads((directory / "run.json").read_text())["tcp"]["flow2"].startswith("vegas(")


def test_a_wrong_action_is_refused_in_one_line_and_leaves_no_trace(acted):
    directory, _, messages = acted
    for begin, message in messages.items():
        assert message.startswith(begin) and "\n" not in message, message
    assert len(read_events(directory)) == len(ACTIONS) + 1


def test_the_record_repeats_the_actions_as_events_and_flows(acted, tmp_path):
    directory, _, _ = acted
    by_hand = with_actions(directory, Recorded.read(directory).scenario)
    assert (len(by_hand.repeated), by_hand.left_out) == (len(ACTIONS), [])
    again = tmp_path / "again"
    assert Background(by_hand.scenario, again).result().status == "complete"
    done = [(row["event"], row["station"], row["detail"]) for row in read_events(again)]
    assert done == [(row["event"], row["station"], row["detail"]) for row in read_events(directory) if row["event"] != "flow"]
    assert analyse_run(again)["flows"]["flow3"]["finished"] is True


def test_an_action_before_the_traffic_is_recorded_and_not_repeated(tmp_path):
    directory = tmp_path / "run"
    scenario = chain(traffic_at=8)
    running = Background(scenario, directory)
    accepted(directory, {"op": "power", "station": "sta2", "on": False})
    act_on(directory, {"op": "power", "station": "sta2", "on": True})
    with pytest.raises(ManetError, match="the traffic of the run has not begun"):
        act_on(directory, {"op": "flow", "from": "sta1", "to": "sta2"})
    assert running.result().status == "complete"
    assert [row["at_s"] for row in read_events(directory)] == ["", ""]
    assert len(with_actions(directory, scenario).left_out) == 2
    assert [check for check in analyse_run(directory)["checks"] if not check["ok"]] == []


def test_a_session_takes_actions_but_no_flow(tmp_path):
    directory = tmp_path / "run"
    session = threading.Thread(target=prompt, args=(chain(), directory, "sta1 sleep 4"))
    session.start()
    accepted(directory, {"op": "power", "station": "sta2", "on": False})
    with pytest.raises(ManetError, match=re.escape(NO_FLOWS)):
        act_on(directory, {"op": "flow", "from": "sta1", "to": "sta2"})
    session.join()
    assert sorted((row["event"], row["source"]) for row in read_events(directory)) == [("command", "prompt"), ("power", "view")]


def test_a_flow_that_could_not_start_leaves_nothing_to_the_next_one(tmp_path):
    """Its port is taken at the target, so its receiver is never ready."""
    directory = tmp_path / "run"
    taken = {"at": 0, "command": ["python3", "-c", TAKE_PORT], "station": "sta2", "name": "taken"}
    freed = {"at": 22, "command": "kill", "name": "taken"}
    running = Background(chain(duration=30, tcp="newreno", events=[taken, freed]), directory, deadline_s=120).at("traffic")
    log = directory / "log" / "event-taken.log"
    wait_until(lambda: log.exists() and "taken" in log.read_text(), "the port")
    with pytest.raises(ManetError, match="flow2: its receiver"):
        act_on(directory, {"op": "flow", "from": "sta1", "to": "sta2", "tcp": "vegas"})
    settings = json.loads((directory / "tcp-settings.json").read_text())
    assert [station.get("ports") or {} for station in settings["stations"]] == [{}, {}]
    wait_until(lambda: len(read_events(directory)) == 2, "the end of the command")
    assert act_on(directory, {"op": "flow", "from": "sta1", "to": "sta2"}) == {"ok": True, "flow": "flow2"}
    assert running.result().status == "complete"
    with (directory / "tcp.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["event"] == "algorithm" and row["dport"] == "5202"]
    assert rows and not any("vegas" in row["detail"] for row in rows)


def accepted(directory: Path, action: dict) -> None:
    """Carry out an action as soon as the network is up."""

    def tried() -> bool:
        try:
            act_on(directory, action)
        except ManetError as problem:
            assert "not up yet" in str(problem)
            return False
        return True

    wait_until(tried, "the network is up")


def test_no_flow_is_taken_once_the_traffic_has_ended(tmp_path):
    """Also long before the time that was planned, if the scenario's senders ended early."""
    site = Site(chain(duration=600), 1, tmp_path, tmp_path)
    with Processes(tmp_path / "log") as children:
        settings = children.start("settings", ["sleep", "600"], remedy="")
        added = AddedFlows(site, StationNet(), children, settings, lambda **_fields: None)
        added.begin(time.monotonic())
        with added.kept():
            pass
        with pytest.raises(UsageError, match="the traffic of the run has ended"):
            added.start({"op": "flow", "from": "sta1", "to": "sta2"})
    assert not (tmp_path / ADDED_FLOWS).exists()
