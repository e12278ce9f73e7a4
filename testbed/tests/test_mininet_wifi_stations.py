"""Stations of Mininet-WiFi under our medium, where it is installed: MANET_MININET_WIFI=PYTHON names the Python that has it.

Its radios are mac80211_hwsim's: ./manet vm --kernel 6.12 --cpus 1 shell -- .venv/bin/python -P -m pytest <this file>
"""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from testbed.errors import RunError, UsageError
from testbed.host import mininet_wifi
from testbed.host.clean import clean
from testbed.host.mininet_wifi import require_net
from testbed.host.requirements import HWSIM
from testbed.programs import BUILT
from testbed.runs.run import RunResult, run_scenario
from testbed.stages.mininet_wifi import builder_config, exclusive
from testbed.stages.site import Site
from testbed.tests.running import (
    Background,
    Traces,
    chain,
    driven,
    needs_runs,
    nothing_left,
    process_of,
    skip_unless,
    until_stage,
    wait_until,
)
from testbed.tests.test_hwsim import measured, needs_hwsim, radios

GONE_WITHIN_S = 30.0
BUILD_S = 600.0  # of an emulated machine beside others
OURS_KBPS = 630  # two hops of TAPs, 625 of hwsim radios of our making (docs/hwsim.md); with wmediumd 889


needs_mininet_wifi = skip_unless(require_net, "mininet-wifi")
THEIRS = {"net": "mininet-wifi", "stations": "hwsim"}


def run(directory: Path, **keys: object) -> RunResult:
    return run_scenario(chain(**THEIRS, **keys), 1, directory, programs=BUILT)


def expect_nothing_left(directory: Path, traces: Traces) -> None:
    """The kernel takes a namespace and its radios away some time after its last process."""
    assert nothing_left(directory)
    deadline = time.monotonic() + GONE_WITHIN_S
    while (left := [*traces.remaining(), *radios()]) and time.monotonic() < deadline:
        time.sleep(1)
    assert left == []


@pytest.fixture
def python(tmp_path, monkeypatch):
    """A Python that ends as the test says."""

    def ends(script: str) -> Path:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv(mininet_wifi.VARIABLE, str(path))
        return path

    return ends


def test_a_python_without_it_is_named_with_the_remedy(python):
    path = python("echo 'no module mn_wifi' >&2; exit 1")
    with pytest.raises(UsageError) as caught:
        require_net("mininet-wifi")
    assert str(caught.value) == f'net "mininet-wifi": {path}: no module mn_wifi; {mininet_wifi.REMEDY}'


def test_a_missing_python_is_named(monkeypatch):
    monkeypatch.setenv(mininet_wifi.VARIABLE, "/proc/absent/python")
    with pytest.raises(UsageError, match=r'^net "mininet-wifi": /proc/absent/python: not found; install it'):
        require_net("mininet-wifi")


def test_programs_of_its_that_are_missing_are_named(python, monkeypatch, tmp_path):
    python("echo /there")
    monkeypatch.setattr(mininet_wifi, "PROGRAMS", ("absent1", "sh", "absent2"))
    with pytest.raises(UsageError, match=r'^net "mininet-wifi": absent1, absent2: not found; install it'):
        require_net("mininet-wifi")


def test_our_own_stations_have_no_requirements(monkeypatch):
    monkeypatch.setenv(mininet_wifi.VARIABLE, "/proc/absent/python")
    require_net("manet")


def test_its_classes_make_the_scenarios_stations(tmp_path):
    def network_config(**keys: object) -> dict:
        return builder_config(Site(chain(**THEIRS, **keys), 1, tmp_path, cgroup=tmp_path))

    config = network_config()
    assert config["stations"][1] == {
        "name": "sta2", "mac": "02:00:00:00:00:02", "ip": "10.0.0.2/8", "position": [200.0, 0.0, 0.0],
    }  # fmt: skip
    assert (config["interface"], config["bitrates"]) == ("wlan0", "legacy-2.4 2")
    assert network_config(radio="dot11b-11m", radio_overrides={"data_rate_bps": 5_500_000})["bitrates"] == "legacy-2.4 5.5"
    assert network_config(radio="dot11g-54m", hwsim={"rates": "kernel"})["bitrates"] == "legacy-2.4 6 9 12 18 24 36 48 54"


def test_a_second_run_does_not_take_the_firsts_radios(tmp_path, monkeypatch):
    (tmp_path / HWSIM).mkdir()
    monkeypatch.setattr("testbed.host.modules.LOADED", tmp_path)
    with exclusive(), pytest.raises(RunError, match=r"another run has Mininet-WiFi's stations.*--jobs 1"), exclusive():
        pass
    with exclusive():
        pass


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@needs_hwsim
@needs_mininet_wifi
def test_two_hops_carry_as_much_as_two_hops_of_our_stations(tmp_path):
    result = run(tmp_path / "run", hops=2, warmup=1, duration=8, window=8)
    assert 0.9 < measured(result) / OURS_KBPS < 1.1
    config = json.loads((tmp_path / "run" / "medium.json").read_text())
    assert config["hwsim"]["radios"] == "found"
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    assert verdict["tap_read_drops"] == 0
    wait_until(lambda: radios() == [], "the radios go with the run")


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@needs_hwsim
@needs_mininet_wifi
@pytest.mark.parametrize(("victim", "word"), [("medium.json", "medium"), ("mininet-wifi.json", "mininet-wifi")])
def test_a_run_fails_with_its_medium_or_its_stations_and_leaves_nothing(tmp_path, victim, word):
    """Without the medium the kernel goes on with one that loses nothing and takes no time: nothing of it may count."""
    background = Background(chain(**THEIRS, duration=600), tmp_path / "run", deadline_s=BUILD_S).at("traffic", 0.001)
    traces = Traces.of(tmp_path / "run")
    os.kill(process_of(tmp_path / "run", victim), signal.SIGKILL)
    result = background.result()
    assert result.status == "failed" and result.error.startswith(f"{word}: "), result.error
    expect_nothing_left(tmp_path / "run", traces)


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@needs_hwsim
@needs_mininet_wifi
def test_clean_removes_leftovers_of_a_killed_manet(tmp_path):
    manet = driven(chain(**THEIRS, duration=600), tmp_path / "run")
    until_stage(manet, "traffic")
    traces = Traces.of(tmp_path / "run")
    manet.kill()
    manet.wait()
    clean()
    expect_nothing_left(tmp_path / "run", traces)
