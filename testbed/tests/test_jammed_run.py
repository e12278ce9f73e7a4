"""Runs with jammers, antennas, channels and the energy of radios, over the kernel's TCP and over datagrams."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.scenario import Scenario
from testbed.runs.replayed import replay
from testbed.runs.run import run_scenario
from testbed.stages.medium import medium_config
from testbed.stages.site import Site
from testbed.tests.running import needs_runs

STREAM = {"from": "sta1", "to": "sta2", "traffic": "cbr", "rate": 200e3, "bytes": 500}
HOP: dict[str, Any] = {"hops": 1, "spacing": 100, "routing": "static", "arp": "static", "warmup": 0, "duration": 6}
JAMMER = {"name": "jam1", "position": [70, 0], "tx_power_w": 0.2818}


def rows_of(directory: Path, event: str) -> list[dict[str, str]]:
    with (directory / "air.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["event"] == event]


def test_the_medium_is_told_of_antennas_jammers_channels_and_times(tmp_path):
    omni = {"pattern": "omni", "gain_dbi": 3}
    keys = {"radios": [{"station": "sta1", "antenna": omni, "freq_mhz": 2417}], "jammers": [JAMMER], "energy": "ns3"}
    config = medium_config(Site(Scenario.model_validate({**HOP, **keys}), 1, tmp_path, cgroup=tmp_path), {})
    assert (config["stations"][0]["antenna"], config["stations"][0]["freq_mhz"]) == (omni, 2417)
    assert config["jammers"][0]["name"] == "jam1" and config["outputs"]["radio_time"] == "radio-time.csv"
    plain = medium_config(Site(Scenario.model_validate(HOP), 1, tmp_path, cgroup=tmp_path), {})
    assert "jammers" not in plain and "radio_time" not in plain["outputs"] and "adjacent_channels" not in plain


@pytest.mark.root
@needs_runs
def test_a_jammer_that_events_switch_takes_its_share_of_a_stream_and_the_run_has_its_joules(tmp_path):
    events = [{"at": 2, "power": "jam1", "on": True}, {"at": 4, "power": "jam1", "on": False}]
    keys = {"flows": [STREAM], "jammers": [JAMMER | {"active": False}], "events": events, "energy": "wavelan-2m"}
    result = run_scenario(Scenario.model_validate({**HOP, **keys}), 1, tmp_path / "run")
    assert result.status == "complete", result.error
    metrics = analyse_run(result.directory)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    # 2 of 6 s: what waits in the queue of 50 packets arrives afterwards
    lost = metrics["flows"]["flow1"]["loss"]
    assert lost == pytest.approx((100 - 51) / 300, abs=0.05)
    bursts = rows_of(tmp_path / "run", "jam")
    assert {row["station"] for row in bursts} == {"jam1"}
    jammed_s = sum(int(row["airtime_ns"]) for row in bursts) / 1e9
    assert jammed_s == pytest.approx(2, abs=0.2)
    energy = metrics["energy"]
    assert set(energy["stations"]) == {"sta1", "sta2"}
    both = energy["stations"].values()
    assert all(sum(of[key] for key in of if key.endswith("_s")) == pytest.approx(energy["window_s"], rel=1e-6) for of in both)
    assert all(of["sense_s"] == pytest.approx(2, abs=0.3) for of in both), "the jammer is sensed and never received"
    megabytes = 200e3 / 8 * 6 * (1 - lost) * 472 / 500 / 1e6
    assert energy["joules_per_megabyte"] == pytest.approx(energy["energy_joules"] / megabytes, rel=0.05)
    counters = json.loads((tmp_path / "run" / "counters.json").read_text())
    assert counters["jammers"]["jam1"]["airtime_tx_ns"] == sum(int(row["airtime_ns"]) for row in bursts)
    assert replay(tmp_path / "run").line is None, "the same air log again"


@pytest.mark.root
@needs_runs
def test_a_sector_antenna_reaches_the_side_that_it_looks_to_only(tmp_path):
    """250 m of ns-2's radio: a gain of 10 dB makes 300 m a link, 40 dB less none."""

    def run(azimuth_deg: float, name: str):
        antenna = {"pattern": "sector", "gain_dbi": 10, "beamwidth_deg": 60, "front_to_back_db": 40, "azimuth_deg": azimuth_deg}
        keys = {**HOP, "spacing": 300, "duration": 2, "radios": [{"station": "sta1", "antenna": antenna}], "flows": [STREAM]}
        return run_scenario(Scenario.model_validate(keys), 1, tmp_path / name)

    towards = run(0, "towards")
    assert towards.status == "complete", towards.error
    assert analyse_run(towards.directory)["flows"]["flow1"]["delivery"] == pytest.approx(1, abs=0.05)
    assert "there is no path from sta1 to sta2 at the start positions" in str(run(180, "away").error)
