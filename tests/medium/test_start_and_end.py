"""Start and end of the medium: signals, the stop command, SIGKILL, the end of its parent, mistakes in its configuration."""

import errno
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from routing.host.tests.harness import DEADLINE_S, wait_for
from tests.medium.medium import MEDIUM, address, configuration, needs_medium, pings_answered

pytestmark = needs_medium


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signals_complete_the_outputs(hosts, start, how):
    daemon = start(configuration(hosts(1)))
    assert daemon.stop(how) == (0, "")
    assert daemon.read("verdict.json")["format"] == "manet-verdict/1"


def test_the_stop_command_completes_the_outputs(hosts, start):
    daemon = start(configuration(hosts(1)))
    assert daemon.ask("stop") == {"ok": True}
    assert daemon.process.wait(timeout=DEADLINE_S) == 0
    assert daemon.read("counters.json")["format"] == "manet-counters/1"


def test_a_killed_medium_leaves_only_its_data_and_starts_again(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    wait_for("rows on disk", lambda: "deliver" in (tmp_path / "air.csv").read_text())
    daemon.stop(signal.SIGKILL)
    wait_for("the TAPs to vanish", lambda: stations[0].interfaces() == stations[1].interfaces() == ["lo"])
    start(configuration(stations))
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5


def test_the_results_are_complete_before_the_interfaces_are_closed(hosts, start):
    """Of many interfaces a medium that is ended in a hurry closes only some: by then the verdict is there."""
    (station,) = hosts(1)
    daemon = start(configuration([station]))
    unread = daemon.process.stdout.fileno()
    with open(f"/proc/self/fd/{unread}", "wb", buffering=0) as pipe:  # noqa: PTH123 - no path of a file
        os.set_blocking(pipe.fileno(), False)
        while pipe.write(b"\n"):  # None: full; the medium waits with its message about the files that it has written
            pass
    daemon.process.send_signal(signal.SIGTERM)
    wait_for("the verdict", lambda: (daemon.folder / "verdict.json").exists())
    assert (daemon.folder / "counters.json").exists()
    assert station.interfaces() == ["lo", "wlan0"]
    assert daemon.stop() == (0, "")  # reads the pipe
    assert station.interfaces() == ["lo"]


def test_the_medium_ends_with_its_parent_on_request(hosts, tmp_path):
    (tmp_path / "medium.json").write_text(json.dumps(configuration(hosts(1))))
    script = f'"{MEDIUM}" run --die-with-parent "{tmp_path}/medium.json" & echo $!; read line'
    parent = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    assert parent.stdout.readline() == "ready\n"
    parent.kill()
    parent.communicate()
    wait_for("the daemon's end", lambda: (tmp_path / "verdict.json").exists())
    wait_for("its process's end", lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text())


def broken(change) -> dict:
    config = configuration([])
    config["stations"] = [{"name": "sta1", "mac": "02:00:00:00:00:01", "position": [0, 0, 0], "netns": "/proc/self/ns/net"}]
    change(config)
    return config


@pytest.mark.parametrize(
    ("change", "says", "code"),
    [
        (lambda c: c["stations"][0].update(netns="/proc/999999999/ns/net"), "is the station's process running?", 1),
        (lambda c: c["stations"][0].pop("netns"), 'key "stations[0].netns" is missing', 1),
        (lambda c: c["stations"][0].update(ifname="a-far-too-long-name"), "is no interface name", 1),
        (lambda c: c.update(trace="nowhere.csv"), "nowhere.csv: cannot be read", 2),
        (lambda c: c.update(verdict={"late_ms": 1}), 'key "verdict.late_ms": unknown key; did you mean late_us?', 2),
        (lambda c: c.update(surprise=1), 'key "surprise": unknown key; use one of format, seed, ', 2),
        (lambda c: c["outputs"].update(air_log="no/such/folder/air.csv"), "does the folder exist", 1),
        (lambda c: c.update(control_socket="x" * 120), 'key "control_socket"', 1),
    ],
)
def test_mistakes_are_one_line_with_the_remedy_and_leave_nothing(start, change, says, code, tmp_path):
    before = Path("/proc/net/dev").read_text().count("\n")
    daemon = start(broken(change), ready=False)
    status, errors = daemon.stop()
    assert status == code
    assert errors.count("\n") == 1 and says in errors and str(tmp_path) in errors, errors
    assert Path("/proc/net/dev").read_text().count("\n") == before


def test_check_of_a_valid_file_is_silent(tmp_path):
    (tmp_path / "medium.json").write_text(json.dumps(broken(lambda c: None)))
    done = subprocess.run([str(MEDIUM), "check", str(tmp_path / "medium.json")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("older", [False, True])
def test_the_medium_sleeps_by_epoll_pwait2_or_as_before_where_the_kernel_has_none(hosts, start, tmp_path, monkeypatch, older):
    """`older`: as on Linux before 5.11, a filter of system calls answers ENOSYS."""
    if older:
        monkeypatch.setattr("tests.medium.medium.MEDIUM", without_system_call(tmp_path, EPOLL_PWAIT2))
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    sleep = Path(f"/proc/{daemon.process.pid}/syscall")
    wait_for("the medium to sleep", lambda: sleep.read_text().split()[0] in (EPOLL_WAIT if older else {str(EPOLL_PWAIT2)}))
    assert daemon.stop() == (0, "")
    assert daemon.read("verdict.json")["lateness"]["count"] >= 10


EPOLL_PWAIT2 = 441  # asm-generic/unistd.h, the same for all machines
EPOLL_WAIT = {"232", "22"}  # epoll_wait of x86-64, epoll_pwait of machines without it


def without_system_call(folder: Path, number: int) -> Path:
    """A program that runs the medium under seccomp(2), where the system call `number` returns ENOSYS."""
    # struct sock_filter: load the number; if it is this one: SECCOMP_RET_ERRNO | ENOSYS; else SECCOMP_RET_ALLOW
    load, equal, give = 0x20, 0x15, 0x06
    program = [(load, 0, 0, 0), (equal, 0, 1, number), (give, 0, 0, 0x50000 | errno.ENOSYS), (give, 0, 0, 0x7FFF0000)]
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    script = folder / "medium-on-an-older-kernel"
    script.write_text(
        f"#!{sys.executable}\n"
        "import ctypes, os, struct, sys\n"
        f"code = ctypes.create_string_buffer({code!r})\n"
        f"filter = struct.pack('@HP', {len(program)}, ctypes.addressof(code))\n"
        "libc = ctypes.CDLL(None)\n"
        "assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS\n"
        "assert libc.prctl(22, 2, filter) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER\n"
        f"os.execv({str(MEDIUM)!r}, [{str(MEDIUM)!r}, *sys.argv[1:]])\n"
    )
    script.chmod(0o755)
    return script
