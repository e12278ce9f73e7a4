"""The addresses of a run directory, and the captures in which a flow of a wired host is on the air."""

import json

import pytest

from analysis.rundir import RunDirectory
from record.errors import RunFileError
from record.scenario import Flow

MEDIUM = {
    "format": "manet-medium/1",
    "stations": [{"name": "sta1", "mac": "02:00:00:00:00:01"}, {"name": "far", "mac": "02:00:00:00:01:2C"}],
}
SCENARIO = {"wires": [{"station": "sta1", "host": "host1"}, {"station": "sta1", "host": "host2"}]}


@pytest.fixture
def run(tmp_path):
    (tmp_path / "medium.json").write_text(json.dumps(MEDIUM))
    (tmp_path / "scenario.json").write_text(json.dumps(SCENARIO))
    return RunDirectory(tmp_path)


def flow(source, target):
    return Flow("flow1", source, target, "bulk")


def test_a_station_s_address_follows_from_its_number_and_a_host_s_from_its_wire(run):
    addresses = [run.address(name) for name in ("sta1", "far", "host1", "host2")]
    assert addresses == ["10.0.0.1", "10.0.1.44", "192.168.1.2", "192.168.2.2"]
    with pytest.raises(RunFileError, match='no station "host3"'):
        run.address("host3")


def test_a_host_s_flow_leaves_the_air_at_its_gateway(run):
    ends = [("far", "sta1"), ("far", "host2"), ("host1", "far"), ("sta1", "host1"), ("host1", "host2")]
    assert [run.last_stations(flow(*pair)) for pair in ends] == [["sta1"], ["sta1"], ["far"], [], []]


def test_a_flow_to_a_host_on_two_wires_may_leave_the_air_at_either_gateway(run):
    wires = [*SCENARIO["wires"], {"station": "far", "host": "host1"}]
    (run.path / "scenario.json").write_text(json.dumps({"wires": wires}))
    ends = [("sta2", "host1"), ("host1", "sta2"), ("far", "host1"), ("host1", "sta1")]
    assert [run.last_stations(flow(*pair)) for pair in ends] == [["sta1", "far"], ["sta2"], [], []]


def test_a_gateway_s_own_flow_to_its_host_is_in_the_capture_of_that_wire(run, monkeypatch):
    monkeypatch.setattr(run, "capture", lambda name, _stamp_bytes: name)
    cases = [("sta1", "host2", "sta1"), ("host2", "sta1", "sta1"), ("sta1", "host2", "host2"), ("sta1", "far", "sta1")]
    assert [run.capture_of(flow(a, b), node) for a, b, node in cases] == ["sta1.eth1", "sta1.eth1", "host2", "sta1"]
