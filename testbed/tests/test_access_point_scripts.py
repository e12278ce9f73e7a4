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

from testbed.host.requirements import require_access_points, require_radios
from testbed.programs import ROOT
from testbed.tests.running import needs_runs, nothing_left, skip_unless
from testbed.tests.test_hwsim import radios

needs_hwsim = skip_unless(require_radios, "hwsim")
needs_programs = skip_unless(require_access_points, encrypted=True)
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
print(sta1.cmd('iw dev sta1-mp0 mpath dump'))
print(sta1.cmd('iw dev sta1-mp0 info'), sta1.params['wlan'])
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
    assert "channel 5 (2432 MHz)" in answers and "['sta1-mp0']" in answers, answers


ABOUT = """
from mn_wifi.link import _4address, adhoc, mesh
from mn_wifi.net import Mininet_wifi
net = Mininet_wifi()
"""
MESH_OF_ACCESS_POINTS = f"""{ABOUT}
for number, x in ((1, 10), (2, 50)):
    sta = net.addStation(f'sta{{number}}', position=f'{{x}},10,0', range=20)
    ap = net.addAccessPoint(f'ap{{number}}', wlans=2, ssid=f'ssid{{number}}', channel=1, position=f'{{x}},20,0')
    net.addLink(sta, ap)
    net.addLink(ap, intf=f'ap{{number}}-wlan2', cls=mesh, ssid='backbone', channel=6)
net.build()
sta1, sta2 = net.stations
print(sta1.cmd('ping -c 10 -i 0.2 -W 2', sta2.IP()))
net.stop()
"""
TWO_RADIOS = f"""{ABOUT}
sta1, sta2 = net.addStation('sta1', wlans=2, position='0,0,0'), net.addStation('sta2', position='10,0,0')
ap1 = net.addAccessPoint('ap1', ssid='ssid1', channel=11, position='0,10,0')
net.addLink(ap1, sta1)
net.addLink(sta1, intf='sta1-wlan1', cls=adhoc, ssid='adhocNet')
net.addLink(sta2, cls=adhoc, ssid='adhocNet')
h1 = net.addHost('h1', ip='10.0.0.9/8')
net.addLink(ap1, h1)
net.build()
sta1.setIP('192.168.10.1/24', intf='sta1-wlan1')
sta2.setIP('192.168.10.2/24', intf='sta2-wlan0')
print('RSSI', sta1.wintfs[0].rssi, sta1.wintfs[0].associatedTo, sta1, net['ap1'], net.links)
print(sta1.cmd('ping -c 5 -i 0.2 -W 2 10.0.0.9'), sta1.cmd('ping -c 5 -i 0.2 -W 2 192.168.10.2'), sta1.cmd('iw dev'))
net.stop()
"""
MASTER_MODE = f"""{ABOUT}
for number in (1, 2):
    net.addStation(f'sta{{number}}', ip=f'192.168.{{number}}.1/24', position=f'{{1000 * number}},0,0')
    router = net.addStation(f'r{{number}}', ip=f'192.168.{{number}}.10/24', position=f'{{1000 * number}},10,0')
    router.setMasterMode(ssid=f'ssid{{number}}', channel=5 * number - 4)
net.addLink('r1', 'r2')
net.build()
for number, other in ((1, 2), (2, 1)):
    net[f'r{{number}}'].setIP(f'192.168.3.{{number}}/24', intf=f'r{{number}}-eth1')
    net[f'r{{number}}'].cmd(f'ip route add 192.168.{{other}}.0/24 via 192.168.3.{{other}}')
    net[f'sta{{number}}'].cmd(f'ip route add 192.168.{{other}}.0/24 via 192.168.{{number}}.10')
print(net['sta1'].cmd('ping -c 5 -i 0.2 -W 2 192.168.2.1'))
net.stop()
"""
FOUR_ADDRESSES = f"""{ABOUT}
for number in (1, 2, 3):
    sta = net.addStation(f'sta{{number}}', position=f'{{30 * number}},0,0', range=40)
    net.addLink(sta, net.addAccessPoint(f'ap{{number}}', ssid=f'ssid{{number}}', position=f'{{30 * number}},5,0', range=40))
net.addLink('ap2', 'ap1', cls=_4address)
net.addLink('ap2', 'ap3', cls=_4address)
net.build()
print(net['sta1'].cmd('ping -c 5 -i 0.2 -W 2', net['sta3'].IP()), net['ap2'].cmd('bridge link'))
net.stop()
"""


def frames_between(directory: Path, sender: str, receiver: str) -> int:
    """Data frames on the air."""
    with (directory / "air.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if (row["event"], row["frame"]) == ("tx", "data")]
    return sum((row["station"], row["peer"]) == (sender, receiver) for row in rows)


def answers_of(text: str, tmp_path: Path) -> str:
    path = tmp_path / "several.py"
    path.write_text(text)
    return output_of(path, tmp_path / "out")


def test_access_points_bridge_their_stations_by_a_mesh_on_another_channel(tmp_path):
    answers = answers_of(MESH_OF_ACCESS_POINTS, tmp_path)
    assert " 0% packet loss" in answers, answers
    assert frames_between(tmp_path / "out", "ap1-wlan2", "ap2-wlan2") >= 10
    assert frames_between(tmp_path / "out", "sta1", "sta2") == frames_between(tmp_path / "out", "ap1", "ap2") == 0


def test_a_station_is_in_two_networks_by_two_radios(tmp_path):
    answers = answers_of(TWO_RADIOS, tmp_path)
    assert answers.count(" 0% packet loss") == 2, answers
    assert "channel 11 (2462 MHz)" in answers and "channel 1 (2412 MHz)" in answers, answers
    # 14 dBm and 5 dBi twice, less 40.27 dB over the first metre at 2.462 GHz and 30 dB to 10 m
    assert "RSSI -46.27 ap1-wlan1 sta1 ap1 [sta1-wlan1, sta2-wlan0, ap1-eth1<->h1-eth0]" in answers, answers


def test_stations_in_master_mode_route_between_their_networks(tmp_path):
    answers = answers_of(MASTER_MODE, tmp_path)
    assert " 0% packet loss" in answers and "ttl=253" in answers, answers  # 255, less two routers


def test_links_of_four_addresses_join_access_points(tmp_path):
    answers = answers_of(FOUR_ADDRESSES, tmp_path)
    assert " 0% packet loss" in answers, answers
    assert re.findall(r"ap2-wlan0\.sta\d", answers), answers
    assert frames_between(tmp_path / "out", "ap1", "ap2") >= 5 and frames_between(tmp_path / "out", "ap1", "ap3") == 0
