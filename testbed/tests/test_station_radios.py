"""Keys of single stations' radios: power and antenna, the interface's name, receptions with their powers; and their change at the
prompt."""

import csv
import re
import shutil
import subprocess

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.scenario import Scenario
from testbed.host.protocols import missing_requirement
from testbed.runs.run import run_scenario
from testbed.stages.medium import medium_config
from testbed.stages.site import Site
from testbed.tests.running import captured, chain, needs_runs, nothing_left, prompt, run_json

MANAGED = {"stations": "hwsim", "hwsim": {"mode": "managed"}, "flows": []}
NAMED = {"interface": "station-wlan0", "monitor": True}


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({"radios": [{"station": "sta9", "tx_power_w": 1}]}, 'there is no station "sta9"'),
        ({"radios": [{"station": "sta1"}]}, "changes nothing; add tx_power_w"),
        ({"radios": [{"station": "sta1", "tx_power_w": 0}]}, "greater than or equal to 0.0000000000001"),
        ({"radios": [{"station": "sta1", "tx_power_w": 1}] * 2}, '"sta1" has an entry already'),
        ({"radios": [{"station": "sta1", "name": "sta1-wlan1"}]}, 'is for stations = "hwsim" and hwsim.mode = "managed"'),
        ({**MANAGED, "radios": [{"station": "sta1", "name": "sta1/wlan1"}]}, "is no name of an interface"),
        ({**MANAGED, "radios": [{"station": "sta1", "name": "sta2"}]}, '"sta2" has an entry already'),
        ({**MANAGED, "radios": [{"station": "sta1", "freq_mhz": 1000}]}, "2000"),
        (
            {"radios": [{"station": "sta1", "tx_power_w": 1}], "propagation": {"model": "disc", "range_m": 9, "sense_m": 9}},
            '"disc" has ranges of its own',
        ),
        ({"interface": "eth0"}, "station-wlan0"),
        ({"interface": "station-wlan0", "stations": "hwsim", "net": "mininet-wifi"}, "stations of Mininet-WiFi get wlan0"),
    ],
)
def test_a_wrong_radio_of_a_station_is_refused(keys, error):
    with pytest.raises(ValueError, match=re.escape(error)):
        chain(**keys)


def test_a_name_that_an_interface_cannot_have_is_refused():
    places = [{"name": "abcdefghij", "at": [0, 0]}, {"at": [9, 0]}]
    with pytest.raises(ValueError, match="at most 9 characters"):
        Scenario.model_validate({"topology": "positions", "positions": places, "interface": "station-wlan0"})


def test_further_radios_follow_all_stations(tmp_path):
    radios = [
        {"station": "sta1", "freq_mhz": 2437},
        {"station": "sta2", "name": "sta2-wlan1", "freq_mhz": 2462},
        {"station": "sta1", "name": "sta1-wlan1", "tx_power_w": 0.5},
    ]
    scenario = Scenario.model_validate({"topology": "chain", "hops": 1, "radios": radios, **MANAGED})
    entries = medium_config(Site(scenario, 1, tmp_path, cgroup=tmp_path), {})["stations"]
    assert [(entry["name"], entry.get("node"), entry["mac"][-2:]) for entry in entries] == [
        ("sta1", None, "01"), ("sta2", None, "02"), ("sta2-wlan1", "sta2", "03"), ("sta1-wlan1", "sta1", "04"),
    ]  # fmt: skip
    assert [entry.get("freq_mhz") for entry in entries] == [2437, None, 2462, None]
    assert entries[2]["position"] == entries[1]["position"] and entries[3]["tx_power_w"] == 0.5


@pytest.mark.root
@needs_runs
@pytest.mark.parametrize("routing", ["static", "aodv", "none", "dsdv", "babeld", "bird-babel"])
def test_radios_named_after_their_stations_work_with_every_kind_of_route(tmp_path, routing):
    """250 m of ns-2's radio: over two hops of 200 m, except that without routing only neighbours meet."""
    if missing := missing_requirement(routing):
        pytest.skip("; ".join(missing))
    hops = 1 if routing == "none" else 2
    result = run_scenario(chain(hops=hops, routing=routing, unres_qlen=5, **NAMED), 1, tmp_path / "run")
    assert result.status == "complete", result.error
    settings = run_json(tmp_path / "run")["sysctls"]["sta1"]
    assert settings["net.ipv4.neigh.wlan0.unres_qlen"] == "5", "read from sta1-wlan0"
    assert captured(tmp_path / "run", "sta1", "tcp")
    metrics = analyse_run(result.directory)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    assert metrics["flows"]["flow1"]["acked_bps"] > 100e3
    assert nothing_left(tmp_path / "run")


@pytest.mark.root
@needs_runs
def test_receptions_have_the_power_at_each_station_that_decoded_them(tmp_path):
    """Two-ray ground beyond the crossover: the power falls with the fourth power of the distance (12.04 dB for twice of it), and
    a gain of 6 dB at sta3 adds to what it hears."""
    keys = {"hops": 2, "spacing": 120, "routing": "none", "radios": [{"station": "sta3", "antenna_gain_db": 6}], **NAMED}
    scenario = Scenario.model_validate({**keys, "flows": []})
    answers = prompt(scenario, tmp_path / "run", "sta1 ping -n -c 1 -W 1 sta2", "exit")
    assert " 1 received" in answers
    with (tmp_path / "run" / "air.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["event"] == "tx"]
    heard = [dict(pair.split("=") for pair in row["heard_dbm"].split()) for row in rows if row["station"] == "sta1"]
    both = [powers for powers in heard if set(powers) == {"sta2", "sta3"}]
    assert both and all(float(p["sta2"]) - float(p["sta3"]) == pytest.approx(12.04 - 6, abs=0.15) for p in both)
    assert all("sta1" not in powers for powers in heard)
    if shutil.which("tshark"):
        argv = ["tshark", "-n", "-r", str(tmp_path / "run" / "monitor.pcapng"), "-T", "fields"]
        argv += ["-e", "frame.interface_name", "-e", "radiotap.dbm_antsignal"]
        lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
        assert len(lines) == sum(len(row["heard_dbm"].split()) for row in rows)
        assert {line.split("\t")[0] for line in lines} == {"sta1", "sta2", "sta3"}


@pytest.mark.root
@needs_runs
def test_the_power_of_a_station_changes_at_the_prompt_and_its_movement_stops_and_starts(tmp_path):
    lines = [
        "links",
        "radio sta1 txpower=30.5",
        "links",
        "radio",
        "stop",
        "start",
        "position sta1",
        "setPosition sta1 50,0",
        "distance sta1 sta2",
    ]
    scenario = Scenario.model_validate({"hops": 1, "spacing": 300, "flows": [], "routing": "none"})
    answers = prompt(scenario, tmp_path / "run", *lines, "exit")
    assert re.findall(r"^sta1 -> (.*)$", answers, re.MULTILINE) == ["(none)", "sta2"], answers
    assert re.findall(r"^sta2 -> (.*)$", answers, re.MULTILINE) == ["(none)", "(none)"], "one way"
    assert "sta1: 30.50 dBm, gain 0 dB, height 1.5 m" in answers and "sta1: 0.00, 0.00, 0.00" in answers
    assert "The distance between sta1 and sta2 is 250.00 meters" in answers
    assert "all stations stand still; no movement is left" in answers
    assert (tmp_path / "run" / "radios.csv").read_text().count("\n") == 2
