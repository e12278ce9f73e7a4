"""Sizes of packets on the air: the keys `mtu` and `mss` of a scenario, read back from captures, kernels and daemons."""

import json
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.metrics.analyse import analyse_run
from testbed.tests.running import Background, captured, chain, needs_runs

pytestmark = [pytest.mark.root, needs_runs]
FLOWS = [{"from": "sta1", "to": "sta3"}, {"from": "sta1", "to": "sta3", "traffic": "cbr", "rate": 40_000, "bytes": 1200}]


@pytest.mark.parametrize("routing", ["static", "aodv"])
def test_segments_routes_and_interfaces_have_the_configured_sizes(tmp_path: Path, routing: str) -> None:
    scenario = chain(hops=2, routing=routing, mtu=1200, mss=900, flows=FLOWS)
    result = Background(scenario, tmp_path / "run").result()
    assert result.status == "complete", result.error
    run = RunDirectory(result.directory)
    packets = run.capture("sta1")
    segments = packets.filter((packets["protocol"] == "tcp") & (packets["payload_bytes"] > 0))
    assert segments["payload_bytes"].max() == 900
    assert (segments["payload_bytes"] == 900).sum() > 50
    assert packets["ip_bytes"].max() == 1200, "the datagrams of flow2"
    for syn in captured(run.path, "sta1", "tcp[tcpflags] & tcp-syn != 0"):
        assert "mss 900," in syn
    assert run.run["mss"] == 900
    assert run.run["mtu"] == {"sta1": 1200, "sta2": 1200, "sta3": 1200}
    if routing == "aodv":
        assert json.loads((run.path / "routing" / "sta2.config.json").read_text())["node"]["mtu"] == 1200
        assert "10.0.0.3 via 10.0.0.2 dev wlan0" in (run.path / "routes" / "sta1.txt").read_text()
        assert "mtu 1200" in (run.path / "routes" / "sta1.txt").read_text()
    assert [check for check in analyse_run(run.path)["checks"] if not check["ok"]] == []
