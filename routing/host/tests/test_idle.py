"""The cost of a hundred idle daemons: processor time and memory, printed (`pytest -s`) and bounded."""

import json
import os
import time
from pathlib import Path

import pytest

from routing.host.tests.conftest import DAEMONS, Station

DAEMON_COUNT = 100
SECONDS = 10.0
TICKS_S = os.sysconf("SC_CLK_TCK")
# share of one core for all daemons together; kB per daemon
MAX_CPU, MAX_MEMORY_KB = 0.05, 8 * 1024

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.alone("measures processor time, of a hundred daemons"),
    pytest.mark.skipif(not (DAEMONS / "manet-aodv").exists(), reason="the routing daemons are not built (./setup.sh)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for namespaces and TUN; sudo ./manet test"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="the kernel has no TUN; modprobe tun"),
]


@pytest.fixture
def stations(tmp_path):
    """Isolated stations: the radio is a pair of devices whose other end is not used."""
    stations = []
    try:
        for number in range(1, DAEMON_COUNT + 1):
            station = Station(number, tmp_path)
            stations.append(station)
            station.sh("ip", "link", "add", "wlan0", "type", "veth", "peer", "name", "end")
            station.sh("ip", "link", "set", "end", "up")
            station.sh("ip", "link", "set", "wlan0", "up")
            station.sh("ip", "address", "add", f"{station.address}/8", "dev", "wlan0", "noprefixroute")
        yield stations
    finally:
        for station in stations:
            station.stop()


def used_s(pid: int) -> float:
    """Processor time of the process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


def memory_kb(pid: int) -> int:
    """Peak resident memory of the process, in kB."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def woken(pid: int) -> int:
    """Number of times the process has slept and woken."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches:"))


def test_a_hundred_idle_daemons_use_little_processor_time_and_memory(stations):
    daemons = [station.start("aodv", feedback="none") for station in stations]
    pids = [daemon.process.pid for daemon in daemons]
    time.sleep(1)
    before, wakes = sum(map(used_s, pids)), sum(map(woken, pids))
    time.sleep(SECONDS)
    share = (sum(map(used_s, pids)) - before) / SECONDS
    wakes_s = (sum(map(woken, pids)) - wakes) / SECONDS
    memory = max(map(memory_kb, pids))
    print(json.dumps({"daemons": len(pids), "cpu_share": share, "wake_ups_per_s": wakes_s, "memory_kb": memory}))
    assert share < MAX_CPU and memory < MAX_MEMORY_KB
