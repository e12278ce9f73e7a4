"""The captures in which a flow of a wired host is on the air."""

import json

from analysis.captures.rundir import RunDirectory
from analysis.tests.craft import flow


def test_a_gateway_s_own_flow_to_its_host_is_in_the_capture_of_that_wire(tmp_path, monkeypatch):
    wires = [{"station": "sta1", "host": "host1"}, {"station": "sta1", "host": "host2"}]
    (tmp_path / "scenario.json").write_text(json.dumps({"hops": 1, "wires": wires}))
    run = RunDirectory(tmp_path)
    monkeypatch.setattr(run, "capture", lambda name, _stamp_bytes: name)
    cases = [("sta1", "host2", "sta1"), ("host2", "sta1", "sta1"), ("sta1", "host2", "host2"), ("sta1", "sta2", "sta1")]
    captures = [run.capture_of(flow("flow1", a, b), node) for a, b, node in cases]
    assert captures == ["sta1.eth1", "sta1.eth1", "host2", "sta1"]
