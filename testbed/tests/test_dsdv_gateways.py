"""DSDV with gateways in runs: a wired host is reached by the default route, and by the other gateway after a loss."""

import json
import re
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from record.events_file import read_events
from scenarios.definition import load_scenario
from testbed.programs import ROOT
from testbed.runs.run import run_scenario
from testbed.tests.running import captured, chain, needs_runs, prompt

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

QUICK = {"protocol": "dsdv", "settling": 0, "period": 2, "trigger_interval": 0.2}
CUT_S = 8
BACK_S = 6.0  # DSDV's trigger interval and a retransmission of TCP that has backed off; the host's carrier check takes a second


def test_a_wired_host_and_a_station_two_hops_away_reach_each_other(tmp_path: Path) -> None:
    wires = [{"station": "sta3", "host": "host1"}]
    answers = prompt(
        chain(hops=2, wires=wires, routing=QUICK),
        tmp_path / "run",
        "sta1 ping -n -c 3 -i 0.2 -W 2 host1",
        "host1 ping -n -c 3 -i 0.2 -W 2 sta1",
        "routes sta1",
        "routes sta3",
        "exit",
    )
    assert answers.count("3 packets transmitted, 3 received") == 2, answers
    assert re.findall(r"default via (\S+) dev wlan0 proto 98", answers) == ["10.0.0.2"], "sta1 has one, its gateway none"
    assert re.search(r"0\.0\.0\.0/0 +via 10\.0\.0\.2 +2 hops", answers), answers
    assert captured(tmp_path / "run", "sta1", "ip proto 55") == [], "no tunnel"


def test_an_upload_goes_on_over_the_other_gateway_when_the_one_in_use_fails(tmp_path: Path) -> None:
    path = ROOT / "experiments" / "scenarios" / "gateway-handover.toml"
    quick = [f"routing.{key}={value}" for key, value in {**QUICK, "link": "feedback"}.items() if key != "protocol"]
    changed = ["routing=dsdv", *quick, "warmup=2", "duration=17", f"events.0.at={CUT_S}"]
    run = tmp_path / "run"
    result = run_scenario(load_scenario(path, changed), 1, run)
    assert result.status == "complete", result.error

    (cut,) = read_events(run)
    dead, alive = (cut["station"], {"gw1": "gw2", "gw2": "gw1"}[cut["station"]])
    metrics = analyse_run(run)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    by_second = metrics["flows"]["flow1"]["acked_bps_by_second"]
    assert min(by_second[2 : CUT_S - 1]) > 300e3  # two hops on the air: 630 kbit/s at the most
    assert min(by_second[CUT_S + round(BACK_S) :]) > 300e3

    address = {"gw1": "10.0.0.3", "gw2": "10.0.0.4"}
    lines = (run / "routing" / "sta2.jsonl").read_text().splitlines()
    gateways = [(note["about"], note["value"]) for note in map(json.loads, lines) if note["event"] == "gateway"]
    assert gateways[-2:] == [(address[dead], 0), (address[alive], 1)]
    assert len(captured(run, f"{alive}.eth0", "tcp and dst host 192.168.1.2 and ip[2:2] > 1000")) > 100
