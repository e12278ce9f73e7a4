"""`manet exec`, `manet shell` and `manet wireshark`: into a run, a session of the prompt, a script and a mesh under way."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from manet_testbed import Mesh
from record.events_file import read_events
from scenarios.scenario import Scenario
from testbed.programs import ROOT
from testbed.tests.running import Background, needs_runs, wait_until
from testbed.view.tests.serving import view
from testbed.view.tests.test_plan import act

pytestmark = [pytest.mark.root, needs_runs]
KEYS = {"hops": 1, "warmup": 0}
MANET = [sys.executable, "-P", "-m", "testbed"]


def manet(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MANET, *map(str, words)], capture_output=True, text=True, cwd=ROOT, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(scope="module")
def under_way(tmp_path_factory):
    """A run that the tests of this module use, and that ends after them."""
    directory, over = tmp_path_factory.mktemp("entered") / "run", threading.Event()
    running = Background(Scenario(duration=900, **KEYS), directory, cancel=over).at("traffic")
    yield directory
    over.set()
    assert running.result().status == "interrupted"


def test_the_command_is_at_the_station_and_has_the_callers_streams(under_way):
    done = manet(
        "exec", under_way, "sta2", "--", "sh", "-c", "cat; ip -br addr show wlan0; echo problem >&2; exit 7", input="words\n"
    )
    assert done.returncode == 7 and done.stderr == "problem\n"
    assert done.stdout.startswith("words\n") and "10.0.0.2/8" in done.stdout


def test_a_signal_that_ends_the_command_ends_the_caller_too(under_way):
    assert manet("exec", under_way, "sta1", "--", "sh", "-c", "kill -9 $$").returncode == -signal.SIGKILL


def test_a_signal_to_the_caller_is_the_commands(under_way):
    words = [
        "exec",
        str(under_way),
        "sta1",
        "--",
        "sh",
        "-c",
        'trap "echo asked; exit 3" TERM; echo ready; while :; do sleep 0.1; done',
    ]
    with subprocess.Popen([*MANET, *words], stdout=subprocess.PIPE, text=True, cwd=ROOT) as caller:
        assert caller.stdout and caller.stdout.readline() == "ready\n"
        caller.terminate()
        assert caller.communicate(timeout=20)[0] == "asked\n" and caller.returncode == 3


def test_a_caller_that_is_gone_hangs_up(under_way, tmp_path):
    trap = f'trap "touch {tmp_path}/hung-up; exit" HUP; echo ready; while :; do sleep 0.1; done'
    with subprocess.Popen(
        [*MANET, "exec", under_way, "sta1", "--", "sh", "-c", trap], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as caller:
        assert caller.stdout and caller.stdout.readline() == "ready\n"
        caller.kill()
    wait_until((tmp_path / "hung-up").exists, "SIGHUP of a caller that is gone")


def test_a_program_that_is_missing_is_the_commands_own_error(under_way):
    done = manet("exec", under_way, "sta1", "--", "no-such-program")
    text = "manet exec: no-such-program: no such program at sta1; install it, or write its path\n"
    assert (done.returncode, done.stdout, done.stderr) == (127, "", text)
    assert manet("exec", under_way, "sta1", "--", "/etc/passwd").returncode == 126, "as of a shell: nobody may execute it"


def test_a_program_that_is_missing_is_no_event(under_way):
    """The repetition of the run would ask for the program."""
    rows = read_events(under_way)
    for program in ("no-such-program", "/etc/passwd", "./no-such-file"):
        assert manet("exec", under_way, "sta1", "--", program).returncode in (126, 127)
    assert read_events(under_way) == rows


def test_a_station_that_is_missing_is_one_line(under_way):
    done = manet("exec", under_way, "sta9", "--", "true")
    assert (done.returncode, done.stderr) == (2, 'manet exec: there is no station or host "sta9"; there are sta1, sta2\n')


@pytest.mark.alone(reason="expects that no other run is under way")
@pytest.mark.parametrize("words", [["exec", "no-such-run", "sta1", "--", "true"], ["shell", "no-such-run"]])
def test_a_word_that_is_neither_run_nor_station_is_one_line_with_both(under_way, words):
    done = manet(*words)
    text = '"no-such-run" is neither the folder of a run nor a station or host of the run under way, '
    assert (done.returncode, done.stderr) == (2, f"manet {words[0]}: {text}{under_way}, which has sta1, sta2\n")


@pytest.mark.parametrize(
    "words", [["exec", "no/run", "sta1", "--", "true"], ["shell", "no-run", "sta1"], ["wireshark", "no-run", "sta1"]]
)
def test_a_run_that_is_missing_is_one_line_with_those_under_way(under_way, words):
    done = manet(*words)
    begin = f'manet {words[0]}: "{words[1]}": is no folder of a run; under way: '
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(begin) and str(under_way) in done.stderr


def test_no_run_under_way_is_one_line(tmp_path):
    done = manet("exec", tmp_path, "sta1", "--", "true")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "the run has ended" in done.stderr


def test_each_command_is_an_event_of_the_run(under_way):
    manet("exec", under_way, "sta2", "--", "true")
    rows = [row for row in read_events(under_way) if row["source"] == "exec"]
    assert rows and all(row["event"] == "command" and re.fullmatch(r"exec\d+ started", row["detail"]) for row in rows)
    assert rows[-1]["station"] == "sta2" and float(rows[-1]["at_s"]) > 0


def terminal(words: list[str], keys: list[tuple[str, str]]) -> tuple[str, int]:
    """The output and the status of a command of `manet` on a terminal; each key is typed once the text before it has appeared."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [*MANET, *words])
    seen, deadline, waiting = "", time.monotonic() + 30, list(keys)
    while time.monotonic() < deadline:
        if waiting and waiting[0][0] in seen:
            os.write(master, waiting.pop(0)[1].encode())
        if select.select([master], [], [], 0.05)[0]:
            try:
                seen += os.read(master, 4096).decode()
            except OSError:
                break
    return seen, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_shell_on_a_terminal_has_job_control_and_survives_ctrl_c(under_way):
    # one process for both: between two, Ctrl-C would reach neither
    keys = [
        ("#", "sh -c 'tty; exec sleep 1000'\n"),
        ("/dev/pts/", "\x03"),
        ("^C", "echo after=$((40 + 2)); hostname -I; exit 5\n"),
    ]
    seen, status = terminal(["shell", str(under_way), "sta1"], keys)
    assert status == 5 and "after=42" in seen and "10.0.0.1" in seen, seen


def test_a_shell_reads_a_pipe(under_way):
    done = manet("shell", under_way, "sta2", input="hostname -I\n")
    assert done.returncode == 0 and "10.0.0.2" in done.stdout


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark: not installed; apt-get install tshark")
def test_a_growing_capture_reaches_tshark_while_the_run_goes_on(under_way):
    """The packet of a ping at a known time; tshark prints when it shows it."""
    for what in ("sta2", "air"):
        stream = subprocess.Popen([*MANET, "wireshark", under_way, what], stdout=subprocess.PIPE, cwd=ROOT)
        shown = subprocess.Popen(
            ["tshark", "-l", "-r", "-", "-Y", "icmp.type == 8"], stdin=stream.stdout, stdout=subprocess.PIPE, text=True
        )
        try:
            time.sleep(2)  # both have started, and read what there is
            sent_s = time.monotonic()
            manet("exec", under_way, "sta1", "--", "ping", "-c", "1", "10.0.0.2")
            assert shown.stdout and "Echo (ping) request" in shown.stdout.readline()
            assert time.monotonic() - sent_s < 30, what
        finally:
            stream.kill(), shown.kill()
            stream.wait(), shown.wait()


def test_a_command_ends_with_the_traffic_and_is_in_the_record(tmp_path):
    directory = tmp_path / "run"
    running = Background(Scenario(duration=4, **KEYS), directory).at("traffic")
    with subprocess.Popen([*MANET, "exec", directory, "sta1", "--", "sleep", "1000"], cwd=ROOT) as caller:
        assert running.result().status == "complete"
        assert caller.wait(20) == -signal.SIGHUP
    (command,) = json.loads((directory / "run.json").read_text())["commands"]
    assert (command["name"], command["argv"], command["ended_by"]) == ("exec1", ["sleep", "1000"], "run")


def test_into_a_run_of_the_view(tmp_path):
    (tmp_path / "two.toml").write_text('topology = "chain"\nhops = 1\nwarmup = 0\nduration = 300\n')
    directory = tmp_path / "results" / "all" / "seed-1"
    with view(tmp_path / "two.toml", "--control", "--out", str(tmp_path / "results")) as served:
        assert act(served, {"op": "start"})[0] == 200
        wait_until(lambda: served.ask("/api/run")["kind"] == "live", "the run is under way")
        done = manet("shell", directory, "sta2", input="hostname -I\n")
    assert done.returncode == 0 and "10.0.0.2" in done.stdout, done.stderr
    assert [row["source"] for row in read_events(directory)] == ["exec"]


def test_into_a_mesh_of_a_test(tmp_path):
    with Mesh.chain(2, directory=tmp_path / "mesh"):
        assert "10.0.0.1" in manet("exec", tmp_path / "mesh", "sta1", "--", "hostname", "-I").stdout
    assert [row["source"] for row in read_events(tmp_path / "mesh")] == ["exec"]


SCRIPT = """
import time
from pathlib import Path
from mn_wifi.net import Mininet_wifi
from mn_wifi.link import adhoc
net = Mininet_wifi()
for n in (1, 2):
    net.addLink(net.addStation(f"sta{n}", position=f"{100 * n},0"), cls=adhoc)
net.build()
here = Path(__file__).parent
(here / "up").touch()
while not (here / "go-on").exists():
    time.sleep(0.1)
net.stop()
"""


def test_into_a_script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    words = [*MANET, "script", "--out", str(tmp_path / "run"), str(tmp_path / "script.py")]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True) as script:
        wait_until((tmp_path / "up").exists, "the script's network")
        assert manet("exec", tmp_path / "run", "sta2", "--", "true").returncode == 0
        (tmp_path / "go-on").touch()
        errors = script.communicate(timeout=60)[1]
    assert [row["source"] for row in read_events(tmp_path / "run")] == ["exec"], errors


def test_it_is_repeated_from_the_record(tmp_path):
    running = Background(Scenario(duration=6, **KEYS), tmp_path / "run").at("traffic")
    manet("exec", tmp_path / "run", "sta1", "--", "sh", "-c", f"echo once >> {tmp_path}/marks")
    assert running.result().status == "complete"
    manet("run", tmp_path / "run", "--out", tmp_path / "again")
    assert (tmp_path / "marks").read_text() == "once\nonce\n"
