"""AODV with `internet = "default-route"`: three hops to a wired host without a tunnel, each station with a gateway of its own."""

import json
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from testbed.runs.run import run_scenario
from testbed.tests.running import captured, chain, needs_runs

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]


def test_an_upload_reaches_a_wired_host_over_three_hops_without_a_tunnel(tmp_path: Path) -> None:
    routing = {"protocol": "aodv", "internet": "default-route"}
    wires = [{"station": "sta4", "host": "host1"}]
    flows = [{"from": "sta1", "to": "host1"}]
    run = tmp_path / "run"
    result = run_scenario(chain(hops=3, wires=wires, flows=flows, routing=routing, warmup=1, duration=6), 1, run)
    assert result.status == "complete", result.error
    metrics = analyse_run(run)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    assert metrics["flows"]["flow1"]["acked_bps"] > 200e3  # three hops on the air: 400 kbit/s at the most

    for station in ("sta1", "sta2", "sta3"):
        notes = [json.loads(line) for line in (run / "routing" / f"{station}.jsonl").read_text().splitlines()]
        assert ("gateway", "10.0.0.4", 1) in [(note["event"], note["about"], note["value"]) for note in notes], station
        assert captured(run, station, "ip proto 55") == []
        # data leaves with 1500 bytes: no tunnel header, so no smaller MTU
        assert len(captured(run, station, "tcp and dst host 192.168.1.2 and ip[2:2] = 1500")) > 50
