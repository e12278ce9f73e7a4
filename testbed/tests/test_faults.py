"""Faults in a run: each gives one line with the remedy, tears all down, and keeps the captures."""

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.host.clean import clean
from testbed.programs import ROOT
from testbed.runs.outputs import RESERVE_BYTES
from testbed.runs.run import run_scenario
from testbed.tests.running import (
    STAGES,
    Background,
    chain,
    driven,
    needs_runs,
    nothing_left,
    process_of,
    run_json,
    state_of,
    until_stage,
    wait_until,
)

pytestmark = [pytest.mark.root, needs_runs]
LONG = {"duration": 20}


def assert_ended_cleanly(directory: Path, status: str, *words: str) -> None:
    """The record says so in one line, the captures can be read, and the machine is as before."""
    record = run_json(directory)
    assert record["status"] == status
    assert "\n" not in record["error"]
    for word in words:
        assert word in record["error"]
    assert nothing_left(directory)


def packets(directory: Path, station: str) -> int:
    """How many packets tcpdump reads back; a damaged file is an error."""
    argv = ["tcpdump", "-n", "-r", str(directory / "captures" / f"{station}.pcap")]
    return len(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines())


TCPDUMP = {"capture_program": "tcpdump"}


@pytest.mark.parametrize(
    ("victim", "keys", "words"),
    [
        ("medium.json", {}, ["medium", "SIGKILL", "void"]),
        ("mininet:sta2", {}, ["sta2", "SIGKILL", "run it again"]),
        pytest.param("--snap-bytes", {}, ["captures", "SIGKILL"], marks=pytest.mark.slow),
        pytest.param("sta1.pcap", TCPDUMP, ["tcpdump-sta1", "SIGKILL"], marks=pytest.mark.slow),
        pytest.param("--server", {}, ["flow1", "iperf3"], marks=pytest.mark.slow),
        pytest.param("tcp-settings.json", {}, ["kernel-tcp", "SIGKILL"], marks=pytest.mark.slow),
    ],
    ids=["medium", "station", "manet-capture", "tcpdump", "iperf3", "kernel-tcp"],
)
def test_a_killed_process_fails_the_run_and_is_named(tmp_path: Path, victim: str, keys: dict, words: list[str]) -> None:
    run = Background(chain(**LONG, **keys), tmp_path / "run").at("traffic", 0.1)
    os.kill(process_of(tmp_path / "run", victim), signal.SIGKILL)
    result = run.result()
    assert result.status == "failed"
    assert_ended_cleanly(tmp_path / "run", "failed", *words)
    assert packets(tmp_path / "run", "sta2") > 10
    assert run_json(tmp_path / "run")["error"] == result.error
    assert (tmp_path / "run" / "log" / "run.log").read_text().endswith(f"failed: {result.error}\n")


STREAM = {"from": "sta1", "to": "sta2", "traffic": "cbr", "rate": 100_000, "bytes": 512}
AODV = {"routing": "aodv"}


@pytest.mark.parametrize(
    ("victim", "keys", "words"),
    [
        ("--connect-timeout", {}, ["flow1", "killed by SIGKILL"]),
        ("iperf_client.py", {}, ["flow1-sender", "SIGKILL"]),
        ("--one-off", {}, ["flow1", "iperf3"]),
        ("iperf_server.py", {}, ["flow1-receiver", "SIGKILL"]),
        ("datagrams.py send", {"flows": [STREAM]}, ["flow1-sender", "SIGKILL"]),
        ("datagrams.py receive", {"flows": [STREAM]}, ["flow1-receiver", "SIGKILL"]),
        ("manet-aodv", AODV, ["aodv", "SIGKILL"]),
    ],
    ids=["client", "its-keeper", "server", "receiver", "cbr-sender", "cbr-receiver", "routing-daemon"],
)
def test_a_run_killed_during_its_flow_is_never_a_result(tmp_path: Path, victim: str, keys: dict, words: list[str]) -> None:
    """At once: the rest of the flow's 20 s is not waited for. Nothing is begun again and measured as if it were the whole."""
    run = Background(chain(**LONG, **keys), tmp_path / "run").at("traffic", 0.2)
    os.kill(process_of(tmp_path / "run", victim), signal.SIGKILL)
    killed_s = time.monotonic()
    result = run.result()
    assert time.monotonic() - killed_s < LONG["duration"] / 2
    assert result.status == "failed"
    assert_ended_cleanly(tmp_path / "run", "failed", *words)


def test_the_killed_run_itself_is_recorded_as_failed(tmp_path: Path) -> None:
    run = Background(chain(**LONG), tmp_path / "run").at("traffic", 0.1)
    state = state_of(tmp_path / "run")
    assert state is not None and state.keeper is not None
    os.kill(state.keeper.pid, signal.SIGKILL)
    assert run.result().status == "failed"
    assert_ended_cleanly(tmp_path / "run", "failed", "was killed", "run it again")


@pytest.mark.parametrize("stage", STAGES)
def test_ctrl_c_at_any_stage_interrupts_the_run_in_order(tmp_path: Path, stage: str) -> None:
    process = driven(chain(duration=20 if stage == "traffic" else 1), tmp_path / "run")
    until_stage(process, stage)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert_ended_cleanly(tmp_path / "run", "interrupted", "interrupted")


def test_a_run_of_a_killed_manet_ends_and_removes_its_cgroup_and_state_file(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    process = driven(chain(**LONG), directory)
    until_stage(process, "traffic", 0.05)
    state = state_of(directory)
    assert state is not None and state.keeper is not None
    process.kill()
    process.communicate(timeout=60)
    wait_until(lambda: not state.keeper.alive(), "the run ends by itself")
    assert run_json(directory)["status"] == "interrupted"
    assert packets(directory, "sta1") > 0
    assert nothing_left(directory) and not Path(state.cgroup).exists()
    assert not any(str(directory) in line for line in clean().removed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_manet_ends_its_run_in_order_at_a_hangup_as_at_sigterm(tmp_path: Path, number: int) -> None:
    (tmp_path / "x.toml").write_text("hops = 1\nwarmup = 0\nduration = 20\n")
    argv = [sys.executable, "-P", "-m", "testbed", "run", str(tmp_path / "x.toml"), "--out", str(tmp_path / "out")]
    manet = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    directory = tmp_path / "out" / "all" / "seed-1"
    wait_until(lambda: (directory / "traffic").exists(), "the traffic")
    manet.send_signal(number)
    assert "interrupted; everything was taken down" in manet.communicate(timeout=60)[1]
    assert manet.returncode == 130
    assert_ended_cleanly(directory, "interrupted", "interrupted")


def test_the_end_of_a_prompt_s_terminal_ends_the_run_in_order(tmp_path: Path) -> None:
    """A terminal that goes sends SIGHUP to every process of its foreground group, the run's keeper among them."""
    (tmp_path / "x.toml").write_text("hops = 1\n")
    argv = [sys.executable, "-P", "-m", "testbed", "cli", str(tmp_path / "x.toml"), "--out", str(tmp_path / "run")]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, {**os.environ, "PYTHONPATH": str(ROOT)})
    shown = b""
    while b"manet> " not in shown:
        shown += os.read(terminal, 4096)  # an error once the process has ended
    state = state_of(tmp_path / "run")
    assert state is not None and state.keeper is not None
    os.close(terminal)
    os.waitpid(pid, 0)
    wait_until(lambda: not state.keeper.alive(), "the run ends")
    assert_ended_cleanly(tmp_path / "run", "interrupted", "interrupted")


def test_a_run_has_little_memory_for_files_in_its_folder_of_sockets(tmp_path: Path) -> None:
    seen = threading.Event()
    run = Background(chain(**LONG), tmp_path / "run", cancel=seen).at("traffic")
    folder = Path(f"/proc/{process_of(tmp_path / 'run', 'medium.json')}/root/run/manet")
    space = os.statvfs(folder)
    seen.set()
    assert run.result().status == "interrupted"
    assert 1 << 20 <= space.f_blocks * space.f_frsize <= 64 << 20


def test_cancelling_from_another_thread_interrupts_the_run(tmp_path: Path) -> None:
    cancel = threading.Event()
    run = Background(chain(**LONG), tmp_path / "run", cancel=cancel).at("traffic", 0.1)
    cancel.set()
    assert run.result().status == "interrupted"
    assert_ended_cleanly(tmp_path / "run", "interrupted")


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system with hardly more room than a run keeps in reserve."""
    where = tmp_path / "disk"
    where.mkdir()
    size = 2 * RESERVE_BYTES + 600 * 1024
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(where)], check=True)
    yield where
    subprocess.run(["umount", "--lazy", str(where)], check=True)


@pytest.mark.slow
def test_a_disk_that_fills_up_ends_the_run_with_readable_captures(small_disk: Path) -> None:
    result = run_scenario(chain(duration=120), 1, small_disk / "run")
    assert result.status == "failed"
    assert_ended_cleanly(small_disk / "run", "failed", "disk full", "--out")
    assert packets(small_disk / "run", "sta1") > 100


def test_a_disk_that_is_suddenly_full_still_gets_the_reason_recorded(small_disk: Path) -> None:
    run = Background(chain(**LONG), small_disk / "run").at("traffic", 0.05)
    with pytest.raises(OSError, match="No space left"), (small_disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    assert run.result().status == "failed"
    assert_ended_cleanly(small_disk / "run", "failed", "disk full")


def test_a_full_disk_is_refused_before_anything_starts(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(1024 * 1024))
    with pytest.raises(UsageError, match="disk full"):
        run_scenario(chain(), 1, small_disk / "run")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"radio": "no-such-radio"}, "no-such-radio"),
        ({"radio_overrides": {"rts_treshold": 1}}, "rts_treshold"),
    ],
)
def test_a_scenario_that_the_medium_refuses_is_refused_before_anything_starts(tmp_path: Path, keys: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        run_scenario(chain(**keys), 1, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_second_ctrl_c_ends_a_run_that_hangs_by_force(tmp_path: Path) -> None:
    """The medium is stopped so that the orderly end would have to wait for it."""
    process = driven(chain(**LONG), tmp_path / "run")
    until_stage(process, "traffic", 0.05)
    medium = process_of(tmp_path / "run", "medium.json")
    os.kill(medium, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: has_pending(medium, signal.SIGTERM), "the run asks the medium to end")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    record = run_json(tmp_path / "run")  # an orderly end would have written another
    assert (record["status"], record["error"]) == ("interrupted", "the run never came to its end")
    assert nothing_left(tmp_path / "run")


def has_pending(pid: int, number: int) -> bool:
    """Whether a signal waits for a process (proc_pid_status(5), ShdPnd: bit 0 is signal 1)."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(fields["ShdPnd"], 16) >> (number - 1) & 1)


def test_a_second_run_of_the_same_name_is_refused_while_the_first_runs_and_after(tmp_path: Path) -> None:
    run = Background(chain(), tmp_path / "run").at("stations")
    with pytest.raises(UsageError, match=r"another run is writing there now.*--out"):
        run_scenario(chain(), 1, tmp_path / "run")
    assert run.result().status == "complete"
    with pytest.raises(UsageError, match=r"holds a run already.*--out"):
        run_scenario(chain(), 1, tmp_path / "run")
    assert run_json(tmp_path / "run")["status"] == "complete"
