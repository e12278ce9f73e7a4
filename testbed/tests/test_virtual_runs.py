"""Real runs with `clock = "virtual"`: one seed on an idle and on a loaded host, if QEMU and a kernel are installed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.definition import load_scenario
from scenarios.scenario import Scenario
from testbed.errors import ManetError
from testbed.guests import virtual_time
from testbed.tests.running import needs_runs
from testbed.tests.test_own_daemon import PAGE, written_by

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

SCENARIO = Scenario(hops=2, tcp="newreno", window=8, warmup=1, duration=5, clock="virtual")


@contextmanager
def busy_host() -> Iterator[None]:
    """A busy loop for each CPU and one more, at ordinary priority."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(len(os.sched_getaffinity(0)) + 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.fixture(scope="module")
def guests() -> virtual_time.Guests:
    if "MANET_GUEST" in os.environ:
        pytest.skip("a guest boots no guests")
    try:
        return virtual_time.Guests()
    except ManetError as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module")
def runs(guests: virtual_time.Guests, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three runs of the scenario: seed 1 on an idle and on a busy host, into folders with names of other lengths, and seed 2."""
    folder = tmp_path_factory.mktemp("virtual")
    made = {}
    for name, seed, host in (("idle", 1, nullcontext()), ("busy-host", 1, busy_host()), ("other", 2, nullcontext())):
        with host:
            ended = guests.run(SCENARIO, seed, folder / name)
        assert (ended.status, ended.verdict, ended.error) == ("complete", "valid", None), name
        made[name] = folder / name
    return made


def files_of(run: Path) -> dict[str, bytes]:
    """The files of a run but the two that tell of the host: run.json, and the list of hashes, which has that of run.json."""
    paths = [path for path in run.rglob("*") if path.is_file() and path.name not in ("run.json", "manifest.json")]
    return {str(path.relative_to(run)): path.read_bytes() for path in paths}


def test_one_seed_gives_the_same_files_byte_for_byte_on_an_idle_and_a_busy_host(runs: dict[str, Path]) -> None:
    idle, busy = files_of(runs["idle"]), files_of(runs["busy-host"])
    assert {"air.csv", "captures/sta1.pcap", "captures/sta3.pcap", "tcp.csv", "traffic/flow1.json", "verdict.json"} <= set(idle)
    assert sorted(idle) == sorted(busy)
    assert [name for name in idle if idle[name] != busy[name]] == []
    assert analyse_run(runs["idle"]) == analyse_run(runs["busy-host"])
    ours = [json.loads((runs[name] / "run.json").read_text()) for name in ("idle", "busy-host")]
    for key in ("epoch_ns", "traffic_ns", "mtu", "sysctls", "capture_drops", "kernel"):
        assert ours[0][key] == ours[1][key], key


def test_another_seed_gives_other_files(runs: dict[str, Path]) -> None:
    one, other = files_of(runs["idle"]), files_of(runs["other"])
    assert one["air.csv"] != other["air.csv"] and one["captures/sta1.pcap"] != other["captures/sta1.pcap"]


def test_a_run_carries_what_the_medium_allows_and_records_its_clock(runs: dict[str, Path], guests: virtual_time.Guests) -> None:
    for name, run in runs.items():
        metrics = analyse_run(run)
        assert [check for check in metrics["checks"] if not check["ok"]] == [], name
        # two hops at 2 Mbit/s carry 630 kbit/s (ns-2.35: docs/validation.md)
        assert metrics["flows"]["flow1"]["acked_bps"] == pytest.approx(630e3, rel=0.03), name
        record = json.loads((run / "run.json").read_text())
        assert (record["clock"]["kind"], record["clock"]["files"]) == ("virtual", "memory"), name
        assert record["kernel"] == guests.kernel.release, name
        assert record["clock"]["traffic"]["guest_s"] == pytest.approx(SCENARIO.warmup + SCENARIO.duration, abs=2), name


def test_a_daemon_by_a_users_description_runs_over_hwsim_radios_in_a_guest(guests: virtual_time.Guests, tmp_path: Path) -> None:
    """The example of docs/extend.md; the guest has this machine's files at the same paths."""
    path = written_by(PAGE, tmp_path)
    path.write_text(path.read_text() + '\nstations = "hwsim"\nclock = "virtual"\n')
    ended = guests.run(load_scenario(path), 1, tmp_path / "run")
    assert (ended.status, ended.verdict, ended.error) == ("complete", "valid", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    assert 450e3 < metrics["flows"]["flow1"]["acked_bps"] < 700e3  # 619 to 631 kbit/s over static routes
    usage = json.loads((tmp_path / "run" / "routing" / "usage.json").read_text())
    assert usage["end"]["stations"]["sta1"]["processes"] == 1


def test_a_run_with_a_program_of_the_users_own_reads_this_machines_files(guests: virtual_time.Guests, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nprintf 'hello from %s\\n' \"$(uname -r)\"\n")
    program.chmod(0o755)
    flow = {
        "from": "sta1",
        "to": "sta2",
        "traffic": "command",
        "command": [str(program)],
        "server": ["sleep", "99"],
        "ready_after": 0,
    }
    scenario = Scenario(hops=1, warmup=0, duration=2, clock="virtual", flows=[flow])
    ended = guests.run(scenario, 1, tmp_path / "run")
    assert (ended.status, ended.verdict, ended.error) == ("complete", "valid", None)
    assert (tmp_path / "run" / "log" / "flow1-sender.log").read_text() == f"hello from {guests.kernel.release}\n"
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (record["clock"]["files"], record["kernel"]) == ("host", guests.kernel.release)
