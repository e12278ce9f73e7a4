"""The verdict on runs in which the medium was late, stood still or was starved."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from routing.host.tests.harness import wait_for
from tests.medium.medium import address, configuration, needs_medium, pings_answered

pytestmark = needs_medium


def test_stalls_make_the_run_void(hosts, start):
    stations = hosts(2)
    daemon = start(configuration(stations), "--inject-stall", "120:400")
    address(stations)
    stations[0].sh("ping", "-n", "-q", "-c", "60", "-i", "0.05", "-W", "2", "10.0.0.2")
    daemon.stop()
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] == "void" and verdict["stalls"] >= 5
    assert any("stood still" in reason for reason in verdict["reasons"])


def test_a_stopped_process_is_a_stall_even_when_the_air_is_quiet(hosts, start):
    daemon = start(configuration(hosts(1)))
    daemon.process.send_signal(signal.SIGSTOP)
    wait_for("the stop", lambda: Path(f"/proc/{daemon.process.pid}/stat").read_text().split()[2] == "T")
    time.sleep(0.7)  # the length of the stall is what is tested
    daemon.process.send_signal(signal.SIGCONT)
    daemon.stop()
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] == "void" and verdict["stalls"] >= 1
    assert verdict["longest_stall_ms"] >= 600


def test_each_second_has_its_lateness_and_its_stalls(hosts, start):
    stations = hosts(2)
    config = configuration(stations)
    config["outputs"]["lateness"] = "lateness.csv"
    daemon = start(config, "--inject-stall", "120:700")
    address(stations)
    stations[0].sh("ping", "-n", "-q", "-c", "40", "-i", "0.05", "-W", "2", "10.0.0.2")
    daemon.stop()
    verdict, rows = daemon.read("verdict.json"), RunDirectory(daemon.folder).lateness
    assert sum(int(row["count"]) for row in rows) == verdict["lateness"]["count"]
    assert sum(int(row["stalls"]) for row in rows) == verdict["stalls"] >= 2
    assert int(rows[-1]["t_ns"]) == verdict["model_ns"] and rows[-1]["verdict"] == verdict["verdict"] == "void"
    assert max(float(row["max_us"]) for row in rows) == pytest.approx(verdict["lateness"]["max_us"], rel=0.125)


@pytest.mark.alone("twelve busy loops on one processor")
def test_a_medium_starved_of_processor_time_is_not_valid(hosts, start):
    stations = hosts(2)
    daemon = start(configuration(stations), "--ordinary-priority")
    address(stations)
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(daemon.process.pid, {cpu})
    # a class that gets only what others leave, on a processor where others leave nothing
    os.sched_setscheduler(daemon.process.pid, os.SCHED_IDLE, os.sched_param(0))
    hogs = [subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]) for _ in range(12)]
    try:
        pings_answered(stations[0], "10.0.0.2", 40, "-W", "1")
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    assert daemon.stop()[0] == 0
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] in ("suspect", "void"), verdict
    assert verdict["reasons"]


def test_lateness_makes_the_run_void(hosts, start):
    stations = hosts(2)
    daemon = start(configuration(stations, verdict={"late_us": 5000}), "--inject-lateness", "20000")
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    daemon.stop()
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] == "void" and verdict["late_share"] > 0.5
    # what is due while the daemon oversleeps is released when it wakes: up to 20 ms late, mostly more than half of it
    assert verdict["lateness"]["p50_us"] >= 10_000
    assert verdict["lateness"]["max_us"] >= 15_000
    assert verdict["thresholds"]["late_us"] == 5000
