"""A station's programs signal each other and nothing else of the run; in a script, at the prompt, in a flow and in an event."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from testbed.host.state import STATE_FOLDER
from testbed.programs import BUILT, ROOT
from testbed.runs.run import run_scenario
from testbed.runs.verdict import verdict_of
from testbed.tests.running import captured, chain, needs_runs, prompt, run_json

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

BY_NAME = "killall -9 manet-medium manet-tcp manet-capture tcpdump python3 stations sleep; pkill -9 manet; pkill -9 -f python"
REMOVED = f"rm -rf {STATE_FOLDER}/* /proc/1/root{STATE_FOLDER}/*"
IN_FOLDER = f"mv {STATE_FOLDER}/medium.sock {STATE_FOLDER}/x; : >{STATE_FOLDER}/fill; {REMOVED}"
FOLDERS = f"if mountpoint -q {STATE_FOLDER}; then {IN_FOLDER}; fi"  # without the mount it is the machine's
UNMOUNTED = f"umount -l {STATE_FOLDER}; umount -l /sys; umount -l /proc"
ATTACKS = {
    "by name": f"{BY_NAME}; pkill -9 -f captures",
    "by number": "kill -9 1; kill -9 -1",
    "folders": f"{FOLDERS}; {UNMOUNTED}",
}
SCRIPT = """
import os, subprocess, sys
from mn_wifi.link import adhoc
from mn_wifi.net import Mininet_wifi

net = Mininet_wifi()
stations = [net.addStation(f"sta{{n}}", position=f"{{n * 10}},0,0") for n in (1, 2)]
for station in stations:
    net.addLink(station, cls=adhoc, intf=f"{{station.name}}-wlan0", ssid="m", mode="g", channel=1)
net.build()
sta1, sta2 = stations
{lines}
print("loss", sta2.cmd("ping -c 5 -i 0.2 10.0.0.1").partition("% packet loss")[0].split()[-1])
net.stop()
"""


END_ALL = ["sh", "-c", "sleep 1; kill -9 -1"]


def script(tmp_path: Path, *lines: str) -> tuple[subprocess.CompletedProcess, Path]:
    """Execute the script with these lines before its five pings."""
    (tmp_path / "x.py").write_text(SCRIPT.format(lines="\n".join(lines)))
    argv = [sys.executable, "-P", "-m", "testbed", "script", "--out", str(tmp_path / "out"), str(tmp_path / "x.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=environment)
    return done, tmp_path / "out"


def pings(directory: Path, station: str) -> int:
    """The echo requests in a capture."""
    return len(captured(directory, station, "icmp[icmptype] = icmp-echo"))


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_what_a_station_of_a_script_ends_and_removes_is_not_the_runs(tmp_path: Path, attack: str) -> None:
    attacker = f"sta1.popen(['sh', '-c', {attack!r}]).wait()"
    done, directory = script(tmp_path, attacker, f"sta1.cmd({attack!r})", "sta2.cmd('true')")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "loss 0\n" in done.stdout
    assert (run_json(directory)["status"], verdict_of(directory)) == ("complete", "valid")
    assert [pings(directory, name) for name in ("sta1", "sta2")] == [5, 5]


def test_a_script_ends_its_own_tcpdump_by_name_and_not_the_captures(tmp_path: Path) -> None:
    """In Mininet the script's own commands see the programs of all stations."""
    lines = ["dump = sta1.popen(['tcpdump', '-i', 'sta1-wlan0'])", "sta1.cmd('sleep 1')", "os.system('killall tcpdump')"]
    done, directory = script(tmp_path, *lines, "print('ended', dump.wait())")
    assert "ended 0\n" in done.stdout and "loss 0\n" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0 and pings(directory, "sta2") == 5


@pytest.mark.parametrize(
    ("helper", "signal", "words"),
    [
        ("manet-capture", "TERM", "captures: manet-capture ended with status 0"),
        ("manet-medium", "TERM", "medium: manet-medium ended with status 0"),
        ("manet-tcp", "TERM", "kernel-tcp: manet-tcp ended with status 0"),
        ("manet-tcp", "KILL", "kernel-tcp: manet-tcp was killed by SIGKILL"),
    ],
)
def test_a_helper_that_the_script_itself_ends_fails_its_network(tmp_path: Path, helper: str, signal: str, words: str) -> None:
    done, directory = script(tmp_path, f"os.system('killall -{signal} {helper}')", "sys.exit()")
    assert done.returncode == 1 and words in done.stderr, done.stdout + done.stderr
    assert run_json(directory)["status"] == "failed" and words in run_json(directory)["error"]


def test_stations_see_each_other_and_their_numbers_are_none_outside(tmp_path: Path) -> None:
    lines = [
        "sta1.cmd('sleep 60 &')",
        "number = int(sta1.cmd('echo $!'))",
        "sta1.cmd(f'until [ $(cat /proc/{number}/comm) = sleep ]; do sleep 0.02; done')",  # first it is a copy of the shell
        "print('seen', 'sleep 60' in sta2.cmd('ps ax'), 'manet-' in sta2.cmd('ps ax'))",
        "print('outside', os.path.exists(f'/proc/{number}'), os.path.exists(f'/proc/{sta1.pid}'))",
        "print('ended', sta2.cmd(f'kill {number} && echo ended'), sta1.cmd(f'wait {number}; echo $?'))",
        "orphan = sta1.cmd('sh -c \"sleep 0.1 & echo $!\"').strip()",
        "sta1.cmd('sleep 0.5')",
        "print('reaped', sta1.cmd(f'ls -d /proc/{orphan}'))",
        "print('by file', sta1.popen(['cat', '/proc/self/comm'], text=True).communicate()[0])",
    ]
    done, _ = script(tmp_path, *lines)
    assert "seen True False\noutside False True\n" in done.stdout, done.stdout + done.stderr
    assert re.search(r"ended ended\r?\n\s*143", done.stdout), done.stdout
    assert re.search(r"reaped .*No such file", done.stdout), done.stdout
    assert "by file cat\n" in done.stdout


def test_a_command_flow_reaches_no_other_program_of_the_run(tmp_path: Path) -> None:
    """One hop carries the stream beside it: 500 bytes each 40 ms, from 0 to 3.96 s, are 100 datagrams."""
    stream = {"from": "sta2", "to": "sta1", "traffic": "cbr", "rate": 100_000, "bytes": 500}
    words = ["sh", "-c", f"sleep 1; {ATTACKS['by name']}; {ATTACKS['folders']}; exec sleep 9"]
    command = {"from": "sta1", "to": "sta2", "traffic": "command", "command": words}
    result = run_scenario(chain(flows=[stream, command], duration=4), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error, result.verdict) == ("complete", None, "valid")
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    assert (metrics["flows"]["flow1"]["sent"], metrics["flows"]["flow1"]["loss"]) == (100, 0)


@pytest.mark.parametrize(
    "keys",
    [
        {"flows": [{"from": "sta1", "to": "sta2", "traffic": "command", "command": END_ALL}]},
        {"events": [{"at": 1, "station": "sta1", "command": END_ALL}]},
    ],
    ids=["flow", "event"],
)
def test_a_program_that_ends_all_stations_fails_the_run_and_leaves_whole_captures(tmp_path: Path, keys: dict) -> None:
    result = run_scenario(chain(**keys), 1, tmp_path / "run", programs=BUILT)
    assert result.status == "failed" and "bash was killed by SIGKILL" in str(result.error)
    for name in ("sta1", "sta2"):
        captured(tmp_path / "run", name, "icmp")  # tcpdump reads it to its end


def test_a_station_may_end_its_own_routing_daemon_and_the_run_says_so(tmp_path: Path) -> None:
    command = {"from": "sta1", "to": "sta2", "traffic": "command", "command": ["killall", "-9", "manet-aodv"]}
    result = run_scenario(chain(flows=[command], routing="aodv"), 1, tmp_path / "run", programs=BUILT)
    assert result.status == "failed" and "manet-aodv was killed by SIGKILL" in str(result.error)


def test_at_the_prompt_a_station_reaches_the_programs_of_stations_only(tmp_path: Path) -> None:
    lines = ["sta1 killall tcpdump manet-capture manet-medium", "sta1 pkill -9 manet", "sta1 kill -9 -1", "sta2 true"]
    output = prompt(chain(), tmp_path / "run", *lines, "sta2 ping -c 5 -i 0.2 sta1", "exit")
    assert "manet-medium: no process found" in output and " 0% packet loss" in output
    assert "status complete None" in output
    assert verdict_of(tmp_path / "run") == "valid"
    assert [pings(tmp_path / "run", name) for name in ("sta1", "sta2")] == [5, 5]
