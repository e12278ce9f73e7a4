"""Every example in real namespaces, without a terminal, and the leftovers of a script's end."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.programs import ROOT
from testbed.tests.running import needs_runs, nothing_left, state_of

pytestmark = [pytest.mark.root, needs_runs]
EXAMPLES = ROOT / "examples"
TIME_LIMIT_S = 900  # of a machine that is busy with campaigns; some 15 s of an idle one
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def script(path: Path, directory: Path, *words: str, lines: str = "") -> subprocess.CompletedProcess:
    argv = [sys.executable, "-P", "-m", "testbed", "script", "--out", str(directory), str(path), *words]
    return run(argv, input=lines)


def run(argv: list[str], **options: object) -> subprocess.CompletedProcess:
    return subprocess.run(argv, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False, env=ENVIRONMENT, **options)


def output_of(tmp_path: Path, name: str, *words: str, lines: str = "") -> str:
    """The output of an example that succeeds, or is void on a loaded host, and leaves a complete run."""
    done = script(EXAMPLES / name, tmp_path / "out", *words, lines=lines)
    assert done.returncode == (1 if void(done) else 0), done.stdout + done.stderr
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "complete"
    assert nothing_left(tmp_path / "out")
    return done.stdout


def void(done: subprocess.CompletedProcess) -> bool:
    return re.search(r"^manet script: \S+: void \(.*\), so that its figures do not count", done.stderr, re.MULTILINE) is not None


def measured(host, tmp_path: Path, name: str, *words: str) -> str:
    """The same of an example that measures; void where the example itself found the host too busy for its figures."""
    answers = output_of(tmp_path, name, *words)
    if doubt := re.search(r"^\*\*\* ((too busy|void|suspect).*)", answers, re.MULTILINE):
        host.void(f"{name}: {doubt.group(1)}")
    return answers


def written_script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(text)
    return path


TWO = """
import os, sys, time
from mn_wifi.link import wmediumd, adhoc
from mn_wifi.net import Mininet_wifi
net = Mininet_wifi(link=wmediumd)
for number in (1, 2):
    sta = net.addStation('sta%d' % number, position='%d,0,0' % (20 * number), range=50{station})
    net.addLink(sta, cls=adhoc, intf='sta%d-wlan0' % number, ssid='adhocNet', mode='g', channel=5)
net.build()
sta1, sta2 = net.get('sta1', 'sta2')
"""


def two(station: str = "") -> str:
    return TWO.replace("{station}", station)


def test_adhoc_without_a_protocol_reaches_neighbours_only(tmp_path):
    commands = "sta1 ping -c1 -W1 -I sta1-wlan0 sta2\ndistance sta1 sta3\npy sta3.position\nexit\n"
    answers = output_of(tmp_path, "adhoc.py", lines=commands)
    assert re.search(r"^sta1 -> sta2 X ?$", answers, re.MULTILINE), answers
    assert "1 received" in answers
    assert "The distance between sta1 and sta3 is 80.00 meters" in answers
    assert "(90.0, 10.0, 0.0)" in answers


def test_adhoc_with_aodv_reaches_all_stations(tmp_path):
    answers = output_of(tmp_path, "adhoc.py", "aodv")
    assert "*** Results: 0% dropped (6/6 received)" in answers
    assert "this testbed's own AODV stands in" in answers or shutil.which("aodvd")


@pytest.mark.slow
def test_mesh_finds_a_route_to_the_far_corner(tmp_path):
    answers = output_of(tmp_path, "mesh.py")
    assert re.search(r"has found the way after \d+ s", answers), answers
    assert re.search(r"10\.0\.0\.6 via 10\.0\.0\.\d", answers)


def test_mobility_takes_two_stations_apart(tmp_path):
    answers = output_of(tmp_path, "mobility.py")
    apart = [(float(metres), how) for metres, how in re.findall(r"\*\*\* ([\d.]+) m apart: (\w+)", answers)]
    assert apart[0][1] == "within" and apart[-1][1] == "out", answers
    assert [metres for metres, _ in apart] == sorted(metres for metres, _ in apart)
    assert apart[-1][0] <= 63.8  # sta1 is at (100, 30) after 11 s, sta2 then at (37, 40), on its way to (40, 40)
    assert (tmp_path / "out" / "map.png").stat().st_size > 1000


@pytest.mark.parametrize("model", ["RandomWayPoint", "RandomDirection"])
def test_models_move_all_stations_at_their_speeds(tmp_path, model):
    answers = output_of(tmp_path, "random_waypoint.py", model)
    places = [[tuple(map(int, place)) for place in re.findall(r"\((\d+), (\d+)\)", line)] for line in answers.splitlines()]
    first, last = [row for row in places if len(row) == 6][0::2]
    assert first != last
    assert all(0 <= x <= 200 and 0 <= y <= 200 for x, y in first + last)


@pytest.mark.slow
def test_propagation_models_differ_in_reach(tmp_path):
    answers = output_of(tmp_path, "propagation.py", "friis", "logDistance", "twoRayGround")
    reached = dict(re.findall(r"^\*\*\* (\w+) .*: reached (.*)$", answers, re.MULTILINE))
    # 83 dB of loss: 138 m in free space; 51 m at exponent 2.5; 119 m over the ground from 1 m
    assert reached == {"friis": "[25, 50, 100, 130]", "logDistance": "[25, 50]", "twoRayGround": "[25, 50, 100]"}


def test_replay_follows_the_file(tmp_path):
    answers = output_of(tmp_path, "replay.py")
    xs = [int(x) for x in re.findall(r"sta1 at \((\d+), 50\)", answers)]
    assert len(xs) == 4 and xs == sorted(xs) and 20 <= xs[0] < xs[-1] <= 138, answers


@pytest.mark.slow
def test_hidden_terminals_collide_and_rts_helps(host, tmp_path):
    answers = measured(host, tmp_path, "hidden_terminals.py", "5")
    rows = re.findall(r"\*\*\* (\w+) RTS/CTS: .* = (\d+) kbit/s, (\d+) frames collided", answers)
    (_, without, lost_without), (_, with_rts, lost_with) = rows
    assert int(without) * 2 < int(with_rts), answers
    assert int(lost_without) > 2 * int(lost_with)
    assert list(tmp_path.glob("out/network2/run.json"))


@pytest.mark.slow
def test_two_pairs_share_air_only_when_near(host, tmp_path):
    answers = measured(host, tmp_path, "two_pairs.py", "5")
    rows = re.findall(r"^\*\*\* (alone|side by side|far apart): (.*) kbit/s", answers, re.MULTILINE)
    found = {what: [int(word) for word in words.split(" and ")] for what, words in rows}
    alone = found["alone"][0]
    assert found["far apart"] == [pytest.approx(alone, rel=0.1)] * 2, answers
    assert sum(found["side by side"]) == pytest.approx(alone, rel=0.15), answers
    assert min(found["side by side"]) > 0.3 * alone


def test_one_changed_import_hands_a_script_over(tmp_path):
    """Started by whatever Python there is, which need not have this project's libraries."""
    text = (EXAMPLES / "adhoc.py").read_text().replace("from mn_wifi.cli import CLI", "from testbed.mn_wifi.cli import CLI")
    assert text.count("testbed.mn_wifi") == 1
    path = written_script(tmp_path, text)
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
    before = set((ROOT / "results" / "script").glob("*"))
    done = run([python, str(path)], stdin=subprocess.DEVNULL)
    assert done.returncode == (1 if void(done) else 0), done.stdout + done.stderr
    assert "sta1 -> sta2 X" in done.stdout
    for made in set((ROOT / "results" / "script").glob("mine-*")) - before:
        shutil.rmtree(made)


def test_a_refused_call_is_one_line_with_the_scripts_line(tmp_path):
    text = "from mn_wifi.net import Mininet_wifi\nnet = Mininet_wifi()\nsensor1 = net.addSensor('sensor1')\n"
    done = script(written_script(tmp_path, text), tmp_path / "out")
    assert done.returncode == 2
    assert re.search(r"^manet script: mine\.py: line 3: addSensor: IEEE 802\.15\.4 is not supported", done.stderr, re.MULTILINE)
    assert "Traceback" not in done.stderr
    text = "from mn_wifi.energy import Energy\nEnergy()\n"
    done = script(written_script(tmp_path, text), tmp_path / "out2")
    assert "mine.py: line 2: mn_wifi.energy.Energy: is not supported" in done.stderr


def test_a_script_that_fails_shows_its_own_trace_and_takes_its_network_down(tmp_path):
    done = script(written_script(tmp_path, two() + "print(1 / 0)\n"), tmp_path / "out")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr and "testbed/" not in done.stderr
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "failed"
    assert nothing_left(tmp_path / "out")


def test_a_void_network_is_no_result(tmp_path):
    """A medium that stands still for a second is void (docs/verdict.md: 0.5 s)."""
    body = two() + (
        "import pathlib, signal\n"
        "(medium,) = [int(comm.parent.name) for comm in pathlib.Path('/proc').glob('[0-9]*/comm')"
        " if comm.read_text() == 'manet-medium\\n']\n"
        "os.kill(medium, signal.SIGSTOP)\ntime.sleep(1)\nos.kill(medium, signal.SIGCONT)\ntime.sleep(0.5)\n"
        "print('it was', net.stop())\n"
    )
    done = script(written_script(tmp_path, body), tmp_path / "out")
    assert done.returncode == 1 and void(done), done.stdout + done.stderr
    assert re.search(r"^\*\*\* void \(.*\): see verdict\.json, and run it again; results in ", done.stdout, re.MULTILINE)
    assert "it was void\n" in done.stdout
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "complete"


def test_addresses_and_names_of_a_script_are_the_devices(tmp_path):
    body = two(", ip='192.168.7.%d/24' % number, ip6='fe80::%d' % number") + (
        "print(sta1.cmd('ip -br address show dev sta1-wlan0'))\n"
        "print(sta1.IP(), sta1.cmd('ping -c1 -W2 ' + sta2.IP()), sta1.cmd('ping -6 -c1 -W2 fe80::2%wlan0'))\n"
        "sta2.setPosition('500,0,0')\n"
        "print(sta1.get_distance_to(sta2), sta1.cmd('ping -c1 -W1 192.168.7.2'))\n"
        "sys.exit(3)\n"
    )
    done = script(written_script(tmp_path, body), tmp_path / "out")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "192.168.7.1/24" in done.stdout and "10.0.0.1" not in done.stdout
    assert re.findall(r"(\d) received", done.stdout) == ["1", "1", "0"], done.stdout
    assert "480.0" in done.stdout


def test_a_script_with_addresses_of_ipv6_runs_over_a_protocol_of_ipv4(tmp_path):
    """As Mininet-WiFi's adhoc.py with `aodv`: by IPv6 the stations are neighbours."""
    body = two(", ip6='fe80::%d' % number").replace("cls=adhoc", "cls=adhoc, proto='aodv'") + (
        "print(sta1.cmd('ping -6 -c1 -W2 fe80::2%wlan0'), sta1.cmd('ping -c1 -W2 ' + sta2.IP()))\n"
        "print(sta1.cmd('ip -6 -br address show dev sta1-wlan0'))\n"
    )
    done = script(written_script(tmp_path, body), tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"(\d) received", done.stdout) == ["1", "1"], done.stdout
    assert "fe80::1/64" in done.stdout and "fd6d" not in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_nothing_is_left_of_a_script_that_is_ended(tmp_path, number):
    argv = [sys.executable, "-P", "-m", "testbed", "script", "--out", str(tmp_path / "out")]
    argv.append(str(written_script(tmp_path, two() + "print('up', flush=True)\ntime.sleep(600)\n")))
    manet = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert manet.stdout is not None
    assert any(line == "up\n" for line in manet.stdout)
    state = state_of(tmp_path / "out")
    assert state is not None
    manet.send_signal(number)
    manet.wait(60)
    deadline = time.monotonic() + 60
    while (alive := Path(f"/proc/{state.keeper.pid}").exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "interrupted"
    if number == signal.SIGKILL:  # nobody was left to tidy up: `manet clean` does
        run([sys.executable, "-P", "-m", "testbed", "clean"])
    else:
        assert manet.returncode == 130
        assert nothing_left(tmp_path / "out")


POWERS = """
from mn_wifi.link import wmediumd, adhoc
from mn_wifi.net import Mininet_wifi
net = Mininet_wifi(link=wmediumd, noise_th=-91)
sta1 = net.addStation('sta1', position='40,0,0', range=50)
sta2 = net.addStation('sta2', position='80,0,0', range=30)
for sta in (sta1, sta2):
    net.addLink(sta, cls=adhoc, intf=sta.params['wlan'][0], ssid='adhocNet', mode='g', channel=5)
net.addLink(sta1, net.addHost('h1', ip='10.0.0.77/8'))
net.build()
h1 = net.hosts[0]
def heard():
    links = net.standing.network.medium.ask('links')['links']
    return sorted(link['from'] for link in links if link['range'])
print('names', sta1.intfNames()[0], sta1.params['wlan'][0], sta1.wintfs[0], sta1.defaultIntf())
print('files', sta1.cmd('ls -d /sys/class/net/sta1-wlan0 /proc/sys/net/ipv4/conf/sta1-wlan0').split())
print('one way', heard(), sta1.wintfs[0].range, sta2.wintfs[0].range)
sta2.setRange(50); sta1.setTxPower(-20); print('other way', heard())
sta1.setRange(50); print('both', heard())
print('ping', [(str(a), str(b), out[1]) for a, b, out in net.pingFull([sta1, sta2])])
print('host', h1.IP(), net.ping([sta1, h1]))
print('udp', net.iperf([sta1, sta2], l4Type='UDP', udpBw='500K', seconds=1, fmt='k')[:1])
net.stop()
"""


def test_names_and_powers_of_a_script_are_those_of_the_kernel_and_the_medium(tmp_path):
    """40 m apart: sta1 reaches sta2 from the start (50 m), sta2 not yet sta1 (30 m)."""
    done = script(written_script(tmp_path, POWERS), tmp_path / "out")
    assert done.returncode == (1 if void(done) else 0), done.stdout + done.stderr
    lines = {line.split(" ", 1)[0]: line for line in done.stdout.splitlines()}
    assert lines["names"] == "names sta1-wlan0 sta1-wlan0 sta1-wlan0 sta1-wlan0"
    assert lines["files"] == "files ['/proc/sys/net/ipv4/conf/sta1-wlan0', '/sys/class/net/sta1-wlan0']"
    assert lines["one"] == "one way ['sta1'] 50.0 30.0" and lines["other"] == "other way ['sta2']"
    assert lines["both"] == "both ['sta1', 'sta2']"
    assert lines["ping"] == "ping [('sta1', 'sta2', 1), ('sta2', 'sta1', 1)]"
    assert lines["host"] == "host 10.0.0.77 0.0" and lines["udp"] == "udp ['500K']"
    assert (tmp_path / "out" / "radios.csv").read_text().count("\n") == 4
    assert nothing_left(tmp_path / "out")
