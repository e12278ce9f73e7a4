"""Whole scripts for Mininet-WiFi, by `manet script`, on TAP radios."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.programs import ROOT
from testbed.tests.running import DEADLINE_S, needs_runs, nothing_left

pytestmark = [pytest.mark.root, needs_runs]

BEGIN = """
import sys
from mininet.log import setLogLevel
from mn_wifi.cli import CLI, CLI_wifi
from mn_wifi.link import Intf, adhoc, wmediumd
from mn_wifi.manetRoutingProtocols import olsrd
from mn_wifi.net import Mininet_wifi
from mn_wifi.replaying import ReplayingMobility
from mn_wifi.topo import Topo
from mn_wifi.wmediumdConnector import interference
setLogLevel('info')
net = Mininet_wifi(link=wmediumd, wmediumd_mode=interference)
"""


def output_of(tmp_path: Path, text: str, lines: str = "", status: int | None = 0, **environment: str) -> str:
    """Standard output and error of a script, at whose prompt `lines` are entered."""
    script, directory = tmp_path / "mine.py", tmp_path / "run"
    script.write_text(BEGIN + text)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "testbed", "script", "--out", str(directory), str(script)],
        capture_output=True, text=True, timeout=DEADLINE_S, check=False, input=lines, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert done.returncode == status or (status is None and done.returncode in (0, 1)), printed  # 1: void, on a loaded host
    assert "Traceback" not in printed and "Warning" not in printed, printed
    assert nothing_left(directory)
    return printed


def test_verbs_and_prompt_of_a_script_are_those_of_its_command_line(tmp_path: Path) -> None:
    printed = output_of(
        tmp_path,
        """
class Mine(CLI):
    prompt = 'drones> '
    def do_hop(self, line):
        "One hop.\\nUsage: hop station"
        print('hop of', self.mn.get(line).IP(), self.mn is net, len(self.mn.stations))
    def do_fall(self, line):
        1 / 0

def leap(self, line):
    print('leap', line, self.prompt == '')
CLI.do_leap = leap
for number in (1, 2):
    sta = net.addStation('sta%d' % number, position='%d,0,0' % (20 * number), ipv6='2001::1')
    net.addLink(sta, cls=adhoc, ssid='adhocNet', flags=1)
net.build()
print('PROMPTS', Mine.prompt, CLI_wifi.prompt)
Mine(net)
CLI(net)
net.stop()
""",
        "hop sta2\nleap far\nfall\nhelp hop\npy sta1.wintfs[0].ip\nsta1 ping -c 1 -W 2 sta2\nnodes\ndump\nexit\n"
        "hop sta1\nleap near\nexit\n",
    )
    assert "PROMPTS drones>  mininet-wifi> \n" in printed
    assert "hop of 10.0.0.2 True 2" in printed and "leap far True" in printed and "leap near True" in printed
    assert "*** fall: ZeroDivisionError: division by zero" in printed
    assert "One hop." in printed and "\n10.0.0.1\n" in printed
    assert "1 received" in printed and re.search(r"<Station sta1: sta1-wlan0:10.0.0.1 pid=\d+>", printed)
    assert "*** Unknown command: hop sta1" in printed, "it is a verb of the derived class alone"


def test_addresses_of_wires_and_of_ipv6_are_those_that_the_script_sets(tmp_path: Path) -> None:
    printed = output_of(
        tmp_path,
        """
sta1 = net.addStation('sta1', position='0,0,0')
sta2 = net.addStation('sta2', position='30,0,0', ip6='2001::2/64')
h1 = net.addHost('h1', position='5,5,0')
net.addLink(sta1, cls=adhoc, ssid='adhocNet')
net.addLink(sta2, cls=adhoc, ssid='adhocNet')
link = net.addLink(sta1, h1)
sta1.setIP6('2001::1/64')
sta1.setIP('172.16.0.1/24', intf='sta1-eth1')
net.build()
h1.setIP('172.16.0.2/24', intf=link.intf2)
print(sta1.cmd('ping -c 1 -W 2 172.16.0.2'))
print(sta1.cmd('ping -6 -c 1 -W 5 2001::2'))
print(sta1.cmd('ip -brief address show dev sta1-eth1'))
print('H1', h1.IP(), h1.intfNames())
CLI(net)
net.stop()
""",
        "net\nintfs\npy net.links\ndump\nexit\n",
    )
    assert printed.count("1 received") == 2, printed
    assert "172.16.0.1/24" in printed and "192.168.1.1" not in printed
    assert "H1 172.16.0.2 ['h1-eth0']" in printed
    assert "\nsta1 sta1-wlan0:wifiAdhoc sta1-eth1:h1-eth0\n" in printed and "\nh1 h1-eth0:sta1-eth1\n" in printed
    assert "\n[sta1-wlan0, sta2-wlan0, sta1-eth1<->h1-eth0]\n" in printed
    assert "\nsta1: sta1-wlan0,sta1-eth1\n" in printed and "<Host h1: h1-eth0:172.16.0.2 pid=" in printed


def test_the_addresses_that_the_kernel_adds_to_those_of_ipv6_are_the_scripts(tmp_path: Path) -> None:
    """A radio's link-local address. OLSR has no IPv6, so that the stations are without it until the script sets an address."""
    output_of(
        tmp_path,
        """
import time
for number in (1, 2):
    sta = net.addStation('sta%d' % number, position='%d,0,0' % (20 * number), ip6='2001::%d/64' % number if number == 1 else '')
    net.addLink(sta, cls=adhoc, ssid='adhocNet', proto='olsr')
net.build()
time.sleep(1)
net.get('sta2').setIP6('2001::2/64')
time.sleep(3)
assert 'fe80' in net.get('sta2').cmd('ip -6 addr show dev sta2-wlan0')
net.stop()
""",
        "",
        None,
    )
    assert json.loads((tmp_path / "run" / "verdict.json").read_text())["changed"] == {}


def test_iperf_right_after_build_waits_for_the_routing_daemons(tmp_path: Path) -> None:
    """OLSR has routes of two hops after its first TC messages: some ten seconds."""
    printed = output_of(
        tmp_path,
        """
for number in (1, 2, 3):
    sta = net.addStation('sta%d' % number, position='%d,0,0' % (40 * number), range=50)
    net.addLink(sta, cls=adhoc, ssid='adhocNet', proto='olsr')
net.build()
print('RATES', net.iperf(seconds=1))
net.stop()
""",
        "",
        None,
    )
    assert "*** waiting for a route from sta1 to sta3" in printed
    assert re.search(r"^RATES \['[0-9.]+ [KM]bits/sec', ", printed, re.MULTILINE), printed


def test_modules_are_found_by_pythonpath_also_in_the_stations(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "flights.py").write_text("height = 7\n")
    printed = output_of(
        tmp_path,
        """
import flights
net.addLink(net.addStation('sta1', position='0,0,0'), cls=adhoc)
net.addLink(net.addStation('sta2', position='9,0,0'), cls=adhoc)
net.build()
print(net.get('sta1').cmd('python3 -c "import flights; print(flights.height)"'), 'HEIGHT', flights.height)
net.stop()
""",
        PYTHONPATH=f"{ROOT}:{tmp_path / 'mine'}",
    )
    assert re.search(r"^7\s+HEIGHT 7$", printed, re.MULTILINE), printed


def test_a_missing_package_of_a_script_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    printed = output_of(tmp_path, "import nowhere_at_all.parts\n", status=1)
    assert "mine.py: line 13: there is no module nowhere_at_all; scripts run by " in printed
    assert "apt-get install python3-nowhere_at_all, or " in printed and "PYTHONPATH" in printed


def test_places_of_a_flight_are_taken_off_and_a_new_list_counts_on_the_way(tmp_path: Path) -> None:
    """sta1 has two places a second, sta2 its own times. sta1 turns off after some two seconds, and sta2 flies on as before."""
    printed = output_of(
        tmp_path,
        """
import time
sta1 = net.addStation('sta1', position='0,0,0', speed=2)
sta2 = net.addStation('sta2', position='0,20,0')
sta3 = net.addStation('sta3', position='9,9,0')
for sta in net.stations:
    net.addLink(sta, cls=adhoc, ssid='adhocNet')
sta1.p = [(k, 0, 0) for k in range(60)]
sta2.p, sta2.time = [('0', '20', '0'), (60, 20, 0)], [0, 6]
net.build()
ReplayingMobility(net)
while len(sta1.p) > 56:
    time.sleep(0.05)
print('FIRST', sta1.position[1], len(sta2.p), len(sta2.time))
x = sta1.p[0][0]
sta1.p = [(x, k, 0) for k in range(1, 5)]
sta3.setPosition('7,7,0')
while sta1.p or sta2.p:
    time.sleep(0.05)
print('LAST', sta1.position, x, sta2.position, sta3.position)
sta1.p = [(1, 1, 1)]
time.sleep(0.5)
print('OVER', sta1.position[:2] == (x, 4))
net.stop()
""",
        "",
        None,
    )
    assert "FIRST 0.0 1 1\n" in printed
    found = re.search(r"^LAST \((\d+)\.0, 4\.0, 0\.0\) (\d+) \(60\.0, 20\.0, 0\.0\) \(7\.0, 7\.0, 0\.0\)$", printed, re.MULTILINE)
    assert found and found[1] == found[2], printed
    assert "*** note: ReplayingMobility: sta1.p: its flight was over" in printed and "OVER True" in printed
    assert moved(tmp_path / "run", "sta2") == [60 / 6], "one speed from end to end"


def moved(directory: Path, station: str) -> list[float]:
    """The different speeds of a station's legs in moved.csv, those of jumps and of rest left out."""
    rows = [line.split(",") for line in (directory / "moved.csv").read_text().splitlines() if f",{station}," in line]
    return sorted({round(float(row[5]), 6) for row in rows} - {0.0, float("inf")})
