"""The scenario gateway-handover: an upload through AODV's half tunnel goes on when the gateway in use dies."""

from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from record.events_file import read_events
from scenarios.definition import load_scenario
from testbed.programs import ROOT
from testbed.runs.run import run_scenario
from testbed.tests.running import captured, needs_runs

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

CUT_S = 8
BACK_S = 4.0  # the host's kernel looks at carriers once a second, AODV and TCP need a second each


def test_an_upload_survives_the_death_of_the_gateway_in_use(tmp_path: Path) -> None:
    path = ROOT / "experiments" / "scenarios" / "gateway-handover.toml"
    scenario = load_scenario(path, ["warmup=2", "duration=15", f"events.0.at={CUT_S}"])
    run = tmp_path / "run"
    result = run_scenario(scenario, 1, run)
    assert result.status == "complete", result.error

    (cut,) = read_events(run)
    dead, alive = (cut["station"], {"gw1": "gw2", "gw2": "gw1"}[cut["station"]])
    metrics = analyse_run(run)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    (remark,) = (text for text in metrics["remarks"] if "went over" in text)
    assert remark.startswith(f"flow1 from sta1 to host1 went over {dead}, from ") and remark.endswith(f" s on over {alive}")
    assert metrics["flows"]["flow1"]["air_bps"] == pytest.approx(metrics["flows"]["flow1"]["delivered_bps"], rel=0.05)
    assert metrics["flows"]["flow1"]["route_changes"] >= 1
    by_second = metrics["flows"]["flow1"]["acked_bps_by_second"]
    assert min(by_second[2 : CUT_S - 1]) > 300e3  # two hops on the air: 630 kbit/s at the most
    assert min(by_second[CUT_S + round(BACK_S) :]) > 300e3

    # RFC 2004: the source puts IP protocol 55 towards the gateway around its own packets, and nothing comes back in it
    address = {"gw1": "10.0.0.3", "gw2": "10.0.0.4"}
    for gateway in (dead, alive):
        assert len(captured(run, "sta1", f"ip proto 55 and src 10.0.0.1 and dst {address[gateway]}")) > 100
    assert captured(run, "sta1", "ip proto 55 and dst 10.0.0.1") == []
    # one connection from beginning to end: the data never went over another pair of ports
    assert len(captured(run, f"{alive}.eth0", "tcp and dst host 192.168.1.2 and ip[2:2] > 1000")) > 100
    host = captured(run, "host1", "tcp[tcpflags] & tcp-syn != 0") + captured(run, "host1.eth1", "tcp[tcpflags] & tcp-syn != 0")
    assert len(host) == 4  # iperf3's control connection and its data, SYN and SYN with ACK
