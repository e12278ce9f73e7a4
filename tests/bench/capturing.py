"""The cost of the captures of a run, by tcpdump and by manet-capture in turn: AODV over a chain, one TCP flow.

`start`: CPU of the stage that starts them, all processes of the run together. `whole run`: CPU of a process that makes one run,
with all below it. `own`: CPU of the capturing processes until the end of the traffic. Memory (PSS) and descriptors are theirs in
the traffic.

    PYTHONPATH=. .venv/bin/python -P -m tests.bench.capturing [--stations N ...] [--pairs N]
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

from rich.console import Console

from scenarios.scenario import Scenario
from testbed.host import cgroup
from testbed.host.state import recorded_runs
from testbed.programs import ROOT
from testbed.stages.capture import NAME
from tests.bench import Table
from tests.bench.runs import bench_folder, number_of, python_of, timed_run

PROGRAMS = ("tcpdump", "manet-capture")
STATIONS = (5, 30, 100, 300)
PAIRS = 2
DURATION_S = 5.0
LOOK_S = 3.0  # after the start of the traffic
AIM = "the default is the cheaper one of the two (docs/decisions/0016-one-capturing-process.md)"


def measure(stations: tuple[int, ...] = STATIONS, pairs: int = PAIRS) -> Table:
    columns = ["stations", "program", "processes", "start CPU s", "own CPU s", "whole run CPU s", "PSS MB", "files", "dropped"]
    table = Table(f"Captures of {DURATION_S:g} s of traffic, medians of {pairs}", columns, AIM)
    for count in stations:
        costs: dict[str, list[dict[str, float]]] = {program: [] for program in PROGRAMS}
        for number in range(pairs):
            for program in PROGRAMS if number % 2 == 0 else reversed(PROGRAMS):
                costs[program].append(_in_a_process(count, program))
        for program, found in costs.items():
            table.rows.append([count, program, *(median(cost[column] for cost in found) for column in columns[2:])])
    return table


def _in_a_process(stations: int, program: str) -> dict[str, float]:
    """The cost of a run, made by a process that makes no other, so that the kernel has counted all below it when it ends."""
    words = ["-m", "tests.bench.capturing", "--one", program, stations]
    process = python_of(ROOT, *words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    cost: dict[str, float] = json.loads(process.stdout.read())
    used = os.wait4(process.pid, 0)[2]
    return cost | {"whole run CPU s": used.ru_utime + used.ru_stime}


def _one(program: str, stations: int) -> dict[str, float]:
    cost: dict[str, float] = {}
    used: dict[str, float] = {}

    def entered(stage: str) -> None:
        used[stage] = cgroup.numbers(group / "cpu.stat")["usage_usec"] / 1e6 if (group := _group(directory)) else 0.0
        if stage == "traffic":
            looking.start()

    def look() -> None:
        time.sleep(LOOK_S)
        while (group := _group(directory)) is not None and "stop" not in used:
            cost.update({name: max(value, cost.get(name, 0)) for name, value in _of_processes(group).items()})  # some end already
            time.sleep(1.0)

    with bench_folder() as folder:
        directory = folder / "run"
        looking = threading.Thread(target=look, daemon=True)
        result = timed_run(_scenario(program, stations), directory, entered=entered).result
        looking.join()
        drops = json.loads((result.directory / "run.json").read_text())["capture_drops"]
    return cost | {"start CPU s": used["traffic"] - used["captures"], "dropped": drops}


def _scenario(program: str, stations: int) -> Scenario:
    flow = {"from": "sta1", "to": "sta4", "traffic": "bulk"}
    keys = {"topology": "chain", "nodes": stations, "routing": {"protocol": "aodv"}, "window": 8, "flows": [flow]}
    return Scenario.model_validate({**keys, "warmup": 0.0, "duration": DURATION_S, "capture_program": program})


def _group(directory: Path) -> Path | None:
    return next((Path(state.cgroup) for state in recorded_runs() if state.directory == str(directory)), None)


def _of_processes(group: Path) -> dict[str, float]:
    count, ran_ns, pss_kb, descriptors = 0, 0, 0, 0
    for pid in cgroup.members(group):
        with suppress(OSError):
            place = Path(f"/proc/{pid}")
            if (place / "comm").read_text().rstrip() == NAME:
                count += 1
                ran_ns += int((place / "schedstat").read_text().split()[0])
                pss_kb += number_of(place / "smaps_rollup", "Pss:")
                descriptors += len(list((place / "fd").iterdir()))
    return {"processes": count, "own CPU s": ran_ns / 1e9, "PSS MB": pss_kb / 1000, "files": descriptors}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.capturing", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--stations", type=int, nargs="+", default=STATIONS, metavar="N")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help="runs with either program")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_one(options.one[0], int(options.one[1]))))
        return 0
    from tests.bench.__main__ import draw

    draw(Console(width=None if sys.stdout.isatty() else 140), measure(tuple(options.stations), options.pairs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
