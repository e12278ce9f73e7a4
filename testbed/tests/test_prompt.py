"""The prompt of `manet cli`: its verbs through a pipe, and Ctrl-C on a terminal of its own."""

import os
import pty
import re
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from record.events_file import read_events
from testbed.programs import ROOT
from testbed.tests.running import DEADLINE_S, chain, needs_runs, nothing_left, prompt, run_json

pytestmark = [pytest.mark.root, needs_runs]


def test_iperf_and_air_answer_and_verbs_of_switches_are_refused(tmp_path: Path) -> None:
    lines = ["iperf sta1 sta2", "iperfudp 100K sta2 sta1", "air 2", "iperf sta1", "iperf sta1 sta9", "iperfudp much sta1 sta2"]
    answers = prompt(chain(), tmp_path / "run", *lines, "switch s1 stop", "dpctl", "help iperf", "exit")
    tcp = re.search(r"^sta1 -> sta2: (\d+) kbit/s \(TCP, 5 s\)$", answers, re.MULTILINE)
    udp = re.search(r"^sta2 -> sta1: (\d+) kbit/s \(UDP offered at 100K", answers, re.MULTILINE)
    assert tcp and udp, answers
    assert int(tcp[1]) > 300
    assert 60 <= int(udp[1]) <= 110
    assert re.search(r"^t_ns,station,event,.*\n\d+,sta", answers, re.MULTILINE)
    assert answers.count("usage: iperf") == 2
    assert "there is no station sta9" in answers
    assert answers.count("*** Not supported: ") == 2
    assert "iperf3" in answers
    assert "status complete None" in answers
    assert nothing_left(tmp_path / "run")


def test_iperf_without_a_path_ends_with_one_line(tmp_path: Path) -> None:
    answers = prompt(chain(), tmp_path / "run", "move sta2 9000 9000", "iperf sta1 sta2", "nodes", "exit")
    assert len(re.findall(r'^\*\*\* iperf3: "unable to connect.*$', answers, re.MULTILINE)) == 1, answers
    assert "available nodes" in answers
    assert "status complete None" in answers


def test_the_end_of_a_station_s_shell_and_a_missing_file_leave_the_network_as_it_is(tmp_path: Path) -> None:
    ping = "sta1 ping -n -c 1 -W 1 sta2"
    answers = prompt(chain(), tmp_path / "run", "source nowhere", "sta1 exit", ping, "sta2 kill -9 $$", ping, "exit")
    assert answers.count("*** source nowhere: cannot be read (No such file or directory)") == 1, answers
    assert answers.count("*** sta1: its shell ended with status 0; it has a new one") == 1
    assert answers.count("*** sta2: its shell was killed by SIGKILL; it has a new one") == 1
    assert re.findall(r"(\d) received", answers) == ["1", "1"]
    assert "Traceback" not in answers
    assert "status complete None" in answers
    assert nothing_left(tmp_path / "run")


def test_a_station_is_switched_off_and_on(tmp_path: Path) -> None:
    ping = "sta1 ping -n -c 1 -W 1 sta2"
    lines = [ping, "power sta2 off", "links", ping, "power sta2 on", ping, "power sta2", "power sta9 off", "exit"]
    answers = prompt(chain(), tmp_path / "run", *lines)
    assert re.findall(r"(\d) received", answers) == ["1", "0", "1"], answers
    assert "sta1 -> (none)" in answers
    assert "usage: power station off|on" in answers
    assert "there is no station sta9" in answers


@pytest.mark.parametrize("word", ["", "manet: stations", "manet: medium"], ids=["imports", "stations", "medium"])
def test_ctrl_c_while_the_prompt_starts_takes_all_down_in_one_line(tmp_path: Path, word: str) -> None:
    directory = tmp_path / "run"
    terminal = Terminal(directory)
    terminal.until(lambda: (directory / "log" / "run.log").parent.exists() and word in terminal.seen)
    os.write(terminal.descriptor, b"\x03")
    assert terminal.ended() == 130
    assert "Traceback" not in terminal.seen
    assert "manet> " not in terminal.seen
    assert terminal.seen.count("manet cli: interrupted") == 1
    assert run_json(directory)["status"] == "interrupted"
    assert nothing_left(directory)


def test_ctrl_c_at_the_prompt_ends_the_command_only(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path / "run")
    terminal.until(lambda: "manet> " in terminal.seen)
    assert re.search(r"results in \S*run\r\n", terminal.seen)
    os.write(terminal.descriptor, b"sta1 ping sta2\n")
    terminal.until(lambda: "bytes from" in terminal.seen)
    os.write(terminal.descriptor, b"\x03")
    terminal.until(lambda: re.search(r"packets transmitted[^$]*manet> $", terminal.seen))
    os.write(terminal.descriptor, b"sta1 exit\n")
    terminal.until(lambda: re.search(r"\*\*\* sta1: its shell ended with status 0; it has a new one\s+manet> $", terminal.seen))
    os.write(terminal.descriptor, b"sta1 echo asks; read word; echo heard $word\n")
    terminal.until(lambda: "\nasks" in terminal.seen)
    os.write(terminal.descriptor, b"typed\n")
    terminal.until(lambda: re.search(r"heard typed\s+manet> $", terminal.seen))
    os.write(terminal.descriptor, b"exit\n")
    assert terminal.ended() == 0
    assert run_json(tmp_path / "run")["status"] == "complete"


def test_the_tab_key_completes_a_verb_a_station_and_a_path(tmp_path: Path) -> None:
    (tmp_path / "lines-of-mine.txt").write_text("position sta2\n")
    terminal = Terminal(tmp_path / "run")
    terminal.until(lambda: "manet> " in terminal.seen)
    os.write(terminal.descriptor, b"pos\tsta1\n")
    terminal.until(lambda: re.search(r"position sta1\s+sta1: 0.00, 0.00, 0.00\s+manet> $", terminal.seen))
    os.write(terminal.descriptor, f"sour\t{tmp_path}/lines-\t\n".encode())
    terminal.until(lambda: re.search(r"source \S+/lines-of-mine.txt\s+sta2: 200.00, 0.00, 0.00\s+manet> $", terminal.seen))
    os.write(terminal.descriptor, b"exi\t\n")
    assert terminal.ended() == 0


class Terminal:
    """`manet cli` as the first process of a terminal; `seen` is what stands on it."""

    def __init__(self, directory: Path) -> None:
        self.seen = ""
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            argv = [sys.executable, "-P", "-m", "testbed", "cli", "chain5", "--set", "hops=1", "--out", str(directory)]
            os.execve(argv[0], argv, {**os.environ, "HOME": str(directory.parent), "PYTHONPATH": str(ROOT)})

    def until(self, condition) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert self._read(), f"ended early: {self.seen}"
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGTERM)
                raise AssertionError(f"not within {DEADLINE_S:g} s: {self.seen}")

    def ended(self) -> int:
        deadline = time.monotonic() + DEADLINE_S
        while self._read():
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGTERM)
                raise AssertionError(f"still there after {DEADLINE_S:g} s: {self.seen}")
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        """Take what has come within a moment; False once nobody holds the terminal."""
        if select.select([self.descriptor], [], [], 0.02)[0]:
            try:
                self.seen += os.read(self.descriptor, 4096).decode(errors="replace")
            except OSError:
                return False
        return True


def test_the_prompt_ends_and_starts_daemons(tmp_path: Path) -> None:
    lines = ["daemon sta2 kill", "daemon sta2 stop", "routes", "daemon sta2 start", "daemon sta2 start", "daemon sta2 end"]
    lines += ["daemon sta2 restart", "daemon sta9 stop", "routes sta2", "exit"]
    answers = prompt(chain(hops=1, routing="aodv"), tmp_path / "run", *lines)
    assert "sta2: its routing daemon does not run; start it" in answers
    assert "sta2: its routing daemon runs; restart it, or stop it before" in answers
    assert "usage: daemon station start|stop|restart|kill" in answers and "there is no station sta9" in answers
    assert (answers.count("sta1: aodv, 10.0.0.1"), answers.count("sta2: aodv, 10.0.0.2")) == (1, 1)
    assert answers.endswith("status complete None\n")


def test_the_prompt_says_that_a_protocol_has_no_daemon(tmp_path: Path) -> None:
    printed = prompt(chain(), tmp_path / "run", "daemon sta1 kill", "exit")
    assert '*** daemon: routing "static" has no daemon; choose a protocol with a daemon' in printed


def test_every_event_of_a_scenario_can_be_given_at_the_prompt(tmp_path: Path) -> None:
    ping = "sta1 ping -n -c 1 -W 1 sta2"
    host = "sta1 ping -n -c 1 -W 1 h1"
    lines = ["link sta1 sta2 down", ping, "link sta1 sta2 up", ping, "link sta2 h1 down", host, "link sta2 h1 up", host]
    lines += ["link sta2 h1 0.5", "link sta1 h1 down", "link sta1 sta1 up", "link sta1 sta2 much", "link sta1 sta2 1.5"]
    lines += ['event link = ["sta1", "sta2"], error_rate = 0.25', "event power = 'sta2', on = false", ping]
    lines += ["event power = 'sta2', on = true", "event move = 'sta2', to = [10, 0]", "position sta2"]
    lines += ["event daemon = 'kill', station = 'sta2'", "event daemon = 'start', station = 'sta2'"]
    lines += ["event command = 'kill', name = 'wait'", "event command = ['sleep', '60'], station = 'h1', name = 'wait'"]
    lines += ["event command = ['sleep', '60'], station = 'sta1'", "event command = 'kill', name = 'wait'"]
    lines += ["event at = 3, power = 'sta2', on = true", "event power = 'sta9', on = true", "event power 'sta2'"]
    lines += ["event cut = 'next-hop', from = 'sta1', to = 'sta2'", "exit"]
    wires = [{"station": "sta2", "host": "h1"}]
    answers = prompt(chain(routing={"protocol": "aodv"}, wires=wires), tmp_path / "run", *lines)
    assert re.findall(r"(\d) received", answers) == ["0", "1", "0", "1", "0"], answers
    told = [
        "sta1 sta2: error_rate 1", "sta1 sta2: error_rate 0", "sta2 h1: stalled", "sta2 h1: goes on",
        "*** link sta2 h1 0.5: a wire has no error rate; write up, or down: its packets wait then",
        "sta1 sta2: error_rate 0.25", "sta2: off", "sta2: on", "sta2: to 10 0", "sta2: 10.00, 0.00, 0.00",
        "sta2: killed", "sta2: started", "h1: wait started", "sta1: command2 started", "h1: wait killed",
        '*** event: name: no event before starts a command "wait"',
        '*** event: power: there is no station "sta9"; name one of the scenario\'s',
    ]  # fmt: skip
    assert [line for line in told if f"{line}\n" not in answers] == [], answers
    assert '*** event: link: "h1" is a wired host, which has no radio; name a station\n' in answers
    assert "*** event: error_rate: 1.5 is out of range" in answers and answers.count("usage: link station station up|down") == 2
    assert "so it has no `at`" in answers and "*** event: Expected '='" in answers
    assert "no station relayed frames of sta1" in answers
    assert answers.endswith("status complete None\n")
    rows = read_events(tmp_path / "run")
    assert [row["event"] for row in rows] == [
        "link", "command", "link", "command", "wire", "command", "wire", "command", "link", "power", "command", "power", "move",
        "daemon", "daemon", "command", "command", "command",
    ]  # fmt: skip
    assert {row["source"] for row in rows} == {"prompt"}
    at_s = [float(row["at_s"]) for row in rows]
    assert at_s == sorted(at_s) and at_s[0] >= 0 and at_s[-1] <= run_json(tmp_path / "run")["session_s"]
    entries = run_json(tmp_path / "run")["commands"]
    assert [(one["name"], one["station"], one["ended_by"]) for one in entries] == [
        ("wait", "h1", "event"), ("command2", "sta1", "run"),
        *((f"prompt{number}", "sta1", "session") for number in range(1, 6)),
    ]  # fmt: skip
    assert entries[-1]["argv"] == ["bash", "-c", "ping -n -c 1 -W 1 10.0.0.2"]
    assert nothing_left(tmp_path / "run")


def test_the_prompt_lists_interfaces_links_and_radios_as_mininet_wifi(tmp_path: Path) -> None:
    wires = [{"station": "sta2", "host": "h1"}, {"station": "sta2", "host": "h2"}]
    answers = prompt(chain(wires=wires), tmp_path / "run", "net", "py net.links", "py sta1.wintfs[0].mac", "exit")
    told = ["sta1 wlan0:wifi", "sta2 wlan0:wifi eth0:h1-eth0 eth1:h2-eth0", "h1 eth0:sta2-eth0", "h2 eth0:sta2-eth1"]
    told += ["[sta2-eth0<->h1-eth0, sta2-eth1<->h2-eth0]", "02:00:00:00:00:01"]
    assert [line for line in told if f"{line}\n" not in answers] == [], answers
