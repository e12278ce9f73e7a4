"""The record of a run: its addresses, the gateways of a wired host's flow, and scenarios of other versions."""

import json

import pytest

from record.errors import RunFileError
from record.run import RunRecord
from record.scenario import RunScenario
from scenarios.scenario import Scenario

WIRES = [{"station": "sta1", "host": "host1"}, {"station": "sta1", "host": "host2"}]


@pytest.fixture
def run(tmp_path):
    """A run of 300 stations with two wires; its flows are `ends` of the test."""

    def of(ends=(), **keys):
        flows = [{"from": source, "to": target} for source, target in ends]
        content = {"hops": 299, "wires": WIRES, "flows": flows, **keys}
        (tmp_path / "scenario.json").write_text(json.dumps(content))
        return RunRecord(tmp_path)

    return of


def test_a_station_s_address_follows_from_its_number_and_a_host_s_from_its_wire(run):
    addresses = [run().address(name) for name in ("sta1", "sta300", "host1", "host2")]
    assert addresses == ["10.0.0.1", "10.0.1.44", "192.168.1.2", "192.168.2.2"]  # 300 = 1 * 256 + 44
    with pytest.raises(RunFileError, match='no station "host3"'):
        run().address("host3")


def test_a_further_radio_has_the_number_after_the_last_station(run):
    record = run(radios=[{"station": "sta2", "name": "wlan1"}])
    assert (record.address("wlan1"), record.mac("wlan1")) == ("10.0.1.45", "02:00:00:00:01:2d")
    assert [end.file for end in record.captured][-5:] == ["wlan1", "sta1.eth0", "host1", "sta1.eth1", "host2"]


def test_a_host_s_flow_leaves_the_air_at_its_gateway(run):
    ends = [("sta300", "sta1"), ("sta300", "host2"), ("host1", "sta300"), ("sta1", "host1"), ("host1", "host2")]
    record = run(ends)
    assert [record.last_stations(flow) for flow in record.flows] == [["sta1"], ["sta1"], ["sta300"], [], []]


def test_a_flow_to_a_host_on_two_wires_may_leave_the_air_at_either_gateway(run):
    ends = [("sta2", "host1"), ("host1", "sta2"), ("sta300", "host1"), ("host1", "sta1")]
    record = run(ends, wires=[*WIRES, {"station": "sta300", "host": "host1"}])
    assert [record.last_stations(flow) for flow in record.flows] == [["sta1", "sta300"], ["sta2"], [], []]


def test_a_flow_without_an_end_is_an_error_of_the_file(tmp_path):
    (tmp_path / "scenario.json").write_text(json.dumps({"hops": 1, "flows": [{"from": "sta1"}]}))
    with pytest.raises(RunFileError, match=r'scenario\.json: a flow: "to": Field required; was the file changed\?'):
        RunRecord(tmp_path).flows  # noqa: B018


def test_a_scenario_of_this_version_is_read_as_it_was_written():
    scenario = Scenario.model_validate({"hops": 3, "routing": "aodv", "tcp": "vegas(alpha=1)"})
    record = RunScenario.of(json.loads(scenario.to_json()))
    flow = record.flows[0]
    assert record.model_dump(exclude={"flows"}) == scenario.model_dump(exclude={"flows"})
    assert flow.model_dump(exclude={"name"}) == scenario.flows[0].model_dump()
    assert (flow.name, flow.protocol, record.protocol, record.tcp_text(flow)) == ("flow1", "tcp", "aodv", "vegas(alpha=1)")


def test_a_scenario_of_another_version_opens_with_its_own_words(tmp_path):
    """A removed key, removed options of a protocol and of a flow, a TCP that is no longer known, no `ip`, a null."""
    flow = {"from": "sta1", "to": "sta3", "traffic": "cbr", "start": None, "removed": 1}
    content = {"hops": 2, "duration": 4, "removed": 1, "routing": {"protocol": "aodv", "removed": 1}, "tcp": "gone(a=1)"}
    (tmp_path / "scenario.json").write_text(json.dumps({**content, "flows": [flow]}))
    run = RunRecord(tmp_path)
    record, (read,) = run.scenario, run.flows
    assert (record.protocol, record.tcp_text(read), record.ip_of(read), read.start) == ("aodv", "gone(a=1)", 4, 0.0)
    assert run.window_s(read) == (5.0, 9.0)  # the default of `warmup`, and the duration after it
