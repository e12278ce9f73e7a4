"""Scripts with access points, in a guest whose kernel has mac80211_hwsim (`./manet test --guests`)."""

import csv
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from testbed.host.access_points import require_programs
from testbed.host.radios import require_radios
from testbed.programs import ROOT
from testbed.tests.running import needs_runs, nothing_left, skip_unless
from testbed.tests.test_hwsim import radios

needs_hwsim = skip_unless(require_radios, "hwsim")
needs_programs = skip_unless(require_programs, encrypted=True)
needs_iw = pytest.mark.skipif(shutil.which("iw", path="/usr/sbin:/sbin:/usr/bin:/bin") is None, reason="iw: apt-get install iw")
pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs, needs_hwsim, needs_programs, needs_iw]
TIME_LIMIT_S = 1800  # of an emulated machine beside others
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


MESH = """
import time
from mn_wifi.link import mesh, wmediumd
from mn_wifi.net import Mininet_wifi
from mn_wifi.wmediumdConnector import interference
net = Mininet_wifi(link=wmediumd, wmediumd_mode=interference)
for number in (1, 2, 3):
    sta = net.addStation('sta%d' % number, position='%d,10,0' % (40 * number - 30))
    net.addLink(sta, cls=mesh, ssid='meshNet', intf='sta%d-wlan0' % number, channel=5, ht_cap='HT40+')
net.setPropagationModel(model='logDistance', exp=4)
net.build()
sta1, sta3 = net.get('sta1', 'sta3')
end = time.monotonic() + 60
while ' 0% packet loss' not in sta1.cmd('ping -c 2 -W 1', sta3.IP()) and time.monotonic() < end:
    pass
print(sta1.cmd('ping -c 5 -i 0.2', sta3.IP()))
print(sta1.cmd('iw dev sta1-wlan0 mpath dump'))
net.stop()
"""


def output_of(script: Path, directory: Path, *words: str) -> str:
    """The output of a script, at whose prompt nothing is entered; its network leaves nothing behind."""
    argv = [sys.executable, "-P", "-m", "testbed", "script", "--out", str(directory), str(script), *words]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False, env=ENVIRONMENT, input="exit\n"
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: void, where the emulated machine was late
    assert json.loads((directory / "run.json").read_text())["status"] == "complete", done.stdout + done.stderr
    assert nothing_left(directory)
    assert radios() == []
    return done.stdout


def associations(directory: Path) -> list[tuple[float, str, str, str]]:
    with (directory / "associations.csv").open() as file:
        return [(float(row["time_s"]), row["station"], row["event"], row["access_point"]) for row in csv.DictReader(file)]


def expect_beacons(directory: Path) -> None:
    """One each 100 TU of 1024 us (IEEE Std 802.11-2012 clause 8.4.1.3), at the basic rate: the most frequent broadcasts."""
    with (directory / "air.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if (row["station"], row["event"], row["frame"]) == ("ap1", "tx", "bcast")]
    length = Counter(row["bytes"] for row in rows).most_common(1)[0][0]
    beacons = [row for row in rows if row["bytes"] == length]
    gaps_s = sorted((int(b["t_ns"]) - int(a["t_ns"])) / 1e9 for a, b in itertools.pairwise(beacons))
    assert 0.101 < gaps_s[len(gaps_s) // 2] < 0.104, gaps_s
    assert {row["rate_bps"] for row in beacons} == {"6000000"}
    assert all(int(row["airtime_ns"]) > 8 * int(length) / 6e6 * 1e9 for row in beacons)


@pytest.mark.parametrize("words", [(), ("wpa2",)], ids=["open", "wpa2"])
def test_stations_associate_and_reach_each_other_and_the_wired_host(tmp_path, words):
    answers = output_of(ROOT / "examples" / "access_point.py", tmp_path / "out", *words)
    assert "Connected to 02:00:00:00:00:03" in answers, answers
    assert answers.count("associated:\tyes") == answers.count("authorized:\tyes") == 2, answers
    assert "*** 0 % of the pings lost" in answers
    events = [event for _time, station, event, _point in associations(tmp_path / "out") if station == "sta2"]
    assert events[:2] == ["join", "associated"]
    expect_beacons(tmp_path / "out")


@pytest.mark.parametrize("words", [(), ("wpa2",)], ids=["open", "wpa2"])
def test_a_station_changes_to_the_stronger_access_point(tmp_path, words):
    answers = output_of(ROOT / "examples" / "handover.py", tmp_path / "out", *words)
    assert re.search(r"^\*\*\* from 02:00:00:00:00:02 to 02:00:00:00:00:03", answers, re.MULTILINE), answers
    changes = [(event, point) for _time, _station, event, point in associations(tmp_path / "out")]
    assert changes == [("join", "ap1"), ("associated", "ap1"), ("join", "ap2"), ("associated", "ap2")], changes
    lost = re.search(r"(\d+)% packet loss", answers)
    assert lost is not None and int(lost.group(1)) < 30, answers


def test_a_mesh_script_finds_a_path_over_a_relay_by_itself(tmp_path):
    """sta3 is 80 m away from sta1, and a radio reaches 75 m: 802.11s forwards over sta2."""
    path = tmp_path / "mesh.py"
    path.write_text(MESH)
    answers = output_of(path, tmp_path / "out")
    assert " 0% packet loss" in answers, answers
    assert re.search(r"^02:00:00:00:00:03 02:00:00:00:00:02 ", answers, re.MULTILINE), answers
