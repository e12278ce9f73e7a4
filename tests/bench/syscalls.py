"""System calls and CPU of the medium for each packet that it delivers, with and without aggregation.

One saturated TCP flow (CUBIC) over one hop of static routes. `perf stat` counts the calls of the medium from the start of
the traffic to its end; packets are those of data and ACKs that stations got (counters.json).
"""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

from scenarios.scenario import Scenario
from testbed.errors import RunError
from tests.bench import Table
from tests.bench.pace import descendants
from tests.bench.runs import bench_folder, timed_run

RADIOS = {
    "802.11g, 54 Mbit/s": {"radio": "dot11g-54m"},
    "802.11n, MCS 7, each packet alone": {"radio": "dot11n-ht20", "radio_overrides": {"aggregation": False}},
    "802.11n, MCS 7, A-MPDUs": {"radio": "dot11n-ht20"},
    "802.11ac, 80 MHz, A-MPDUs": {"radio": "dot11ac-vht80"},
}
SPACING_M = 30.0
DURATION_S = 10.0


def measure() -> Table:
    columns = ["radio", "packets/s", "calls a packet", "CPU us a packet", "verdict"]
    table = Table("System calls of the medium, one saturated hop", columns, "aggregation makes a packet cheaper")
    if shutil.which("perf") is None:
        table.rows.append(["perf is absent", *["-"] * (len(columns) - 1)])
        return table
    for name, radio in RADIOS.items():
        with bench_folder() as folder:
            table.rows.append([name, *_cost(radio, folder)])
    return table


def _cost(radio: dict[str, object], folder: Path) -> list[str | float]:
    chain = {"topology": "chain", "hops": 1, "spacing": SPACING_M, "routing": "static", "arp": "static", "profile": "modern"}
    flow = {"from": "sta1", "to": "sta2", "tcp": "cubic"}
    scenario = Scenario.model_validate(chain | radio | {"warmup": 0, "duration": DURATION_S, "queue": 1000, "flows": [flow]})
    counting: list[subprocess.Popen[bytes]] = []

    def entered(stage: str) -> None:
        if stage == "traffic":
            words = ["perf", "stat", "-e", "raw_syscalls:sys_enter", "-x", ",", "-o", str(folder / "calls"), "-p", str(_medium())]
            counting.append(subprocess.Popen(words))
        elif stage == "stop" and counting:
            counting[0].send_signal(signal.SIGINT)
            counting[0].wait()

    run = timed_run(scenario, folder / "run", entered=entered)
    calls = int(next(line for line in (folder / "calls").read_text().splitlines() if "raw_syscalls" in line).split(",")[0])
    stations = json.loads((folder / "run" / "counters.json").read_text())["stations"].values()
    packets = sum(station["delivered_up"] for station in stations)
    return [packets / DURATION_S, calls / packets, 1e6 * run.verdict["cpu_s"] / packets, run.verdict["verdict"]]


def _medium() -> int:
    """The medium's process below this one."""
    for (pid, _start), (name, _cpu) in descendants(os.getpid()).items():
        if name == "manet-medium":
            return pid
    raise RunError("the run has no manet-medium")
