"""What a network of N moving stations costs: time and CPU of its start, run and stop, memory, processes and descriptors.

Random waypoint at 10 m/s with one station per 15,000 m2, as in the papers' area of thirty stations, and five CBR flows of
20 kbit/s for 20 s: between stations half the numbers apart, so anywhere in the area, or with `--reach M` between pairs that
begin about M metres apart. With `--against DIR`, another built checkout, both run in turn. Processor time of a stage is that
of all processes below the command, as the kernel counts it; memory is their PSS when the traffic begins.

`PYTHONPATH=. .venv/bin/python -P -m tests.bench.sizes [--against DIR] [--stations N,...] [--routing NAME,...] [--rounds N]
[--seconds S] [--reach M] [--csv FILE] [--figure FILE]`
"""

import argparse
import csv
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from rich.console import Console

from scenarios.scenario import Scenario
from testbed.programs import ROOT
from tests.bench import Table
from tests.bench.__main__ import draw
from tests.bench.pace import descendants
from tests.bench.runs import bench_folder, number_of, python_of

AREA_PER_STATION_M2 = 15_000.0
SEED_OF_ROUND = 1  # the first round has this seed, the next one the next
LIMIT_S = 900.0
FLOWS = 5
START = ("", "starts", "stations", "medium", "routing", "kernel-tcp", "captures")
FIGURES = {  # each with its title
    "start_s": "start, s",
    "stop_s": "stop, s",
    "start_cpu_s": "CPU of the start, s",
    "stop_cpu_s": "CPU of the stop, s",
    "traffic_cpu_s": "CPU of the traffic, s",
    "pss_mb": "memory (PSS), MB",
    "processes": "processes",
    "descriptors": "open files",
}


@dataclass
class Size:
    """One run. Times in s of wall clock and of CPU by part, PSS in MB (1e6 bytes) when the traffic begins."""

    checkout: str
    routing: str
    stations: int
    seed: int
    verdict: str
    start_s: float = math.nan
    stop_s: float = math.nan
    total_s: float = math.nan
    start_cpu_s: float = math.nan
    traffic_cpu_s: float = math.nan
    stop_cpu_s: float = math.nan
    pss_mb: float = math.nan
    processes: int = 0
    descriptors: int = 0
    max_descriptors: int = 0
    tries: int = 0
    p99_late_ms: float = math.nan
    error: str = ""


def scenario(stations: int, routing: str, seconds: float, seed: int, reach_m: float | None) -> str:
    """The file of the network; with `reach_m`, the flows depend on where the stations of this seed begin."""
    side = round(math.sqrt(AREA_PER_STATION_M2 * stations))
    keys = [
        f'topology = "random"\nnodes = {stations}\narea = [{side}, {side}]',
        'mobility = { model = "random-waypoint", speed = 10 }',
        f'routing = "{routing}"\nwarmup = 0\nduration = {seconds:g}',
    ]
    pairs = [(f"sta{1 + i}", f"sta{1 + i + stations // 2}") for i in range(FLOWS)]
    if reach_m is not None:
        pairs = pairs_at(_begins("\n".join(keys), seed), reach_m)
    flows = [f'{{ from = "{a}", to = "{b}", traffic = "cbr", bytes = 512, rate = 20_000 }}' for a, b in pairs]
    return "\n".join([*keys, f"flows = [{', '.join(flows)}]\n"])


def _begins(text: str, seed: int) -> dict[str, tuple[float, float]]:
    placed = Scenario.model_validate({**tomllib.loads(text), "flows": []}).positions(seed)
    return {station.name: (station.x_m, station.y_m) for station in placed}


def pairs_at(places: Mapping[str, tuple[float, float]], reach_m: float) -> list[tuple[str, str]]:
    """FLOWS pairs of different stations: the first ones in order, each with the free one whose distance is next to `reach_m`."""
    free = dict(places)
    pairs = []
    for _ in range(FLOWS):
        one, place = next(iter(free.items()))
        del free[one]
        other = min(free, key=lambda name: abs(math.dist(place, free[name]) - reach_m))
        del free[other]
        pairs.append((one, other))
    return pairs


def run(name: str, checkout: Path, stations: int, routing: str, seed: int, seconds: float, reach_m: float | None = None) -> Size:
    """Run the network with the programs of `checkout`; `error` has the reason of one that is not valid."""
    size = Size(name, routing, stations, seed, "failed")
    with bench_folder() as folder:
        file = folder / "size.toml"
        file.write_text(scenario(stations, routing, seconds, seed, reach_m))
        words = ["run", file, "--seeds", seed, "--only", f"all/seed-{seed}", "--progress", "json", "--json"]
        words += ["--out", folder / "results"]
        with (folder / "out").open("wb") as out:
            pipes = {"stdout": out, "stderr": subprocess.PIPE, "text": True}
            child = python_of(checkout, "-m", "testbed", *words, start_new_session=True, **pipes)
            limit = threading.Timer(LIMIT_S, child.terminate)
            limit.start()
            try:
                _follow(child, size)
            finally:
                limit.cancel()
                if child.poll() is None:
                    child.terminate()
                    child.wait()
        verdicts = list((folder / "results").glob("*/*/verdict.json"))
        if verdicts:
            verdict = json.loads(verdicts[0].read_text())
            size.p99_late_ms = verdict["lateness"]["p99_us"] / 1e3
            size.error = size.error or "; ".join(verdict["reasons"])
    return size


def _follow(child: subprocess.Popen[str], size: Size) -> None:
    """Read the command's events; at each change of the stage take the CPU that was used so far. A void run is repeated: the
    last try counts, without the start of the command."""
    began = entered = time.monotonic()
    stage, used_s = "", 0.0
    wall: Counter[str] = Counter()
    cpu: Counter[str] = Counter()
    assert child.stderr
    for line in child.stderr:
        if not line.startswith("{"):
            size.error = line.strip() or size.error
            continue
        event = json.loads(line)
        if event["event"] == "run":
            size.verdict = event["outcome"]
        now = "end" if event["event"] == "run" else event.get("stage", stage)
        if now == stage:
            continue
        at, total_s = time.monotonic(), _cpu_s(child.pid)
        part = "start" if stage in START else stage
        wall[part] += at - entered
        cpu[part] += total_s - used_s
        if now == "starts":
            size.tries += 1
            if size.tries > 1:
                wall.clear()
                cpu.clear()
                size.processes = size.descriptors = size.max_descriptors = 0
        stage, entered, used_s = now, at, total_s
        if stage == "traffic":
            _take_memory(child.pid, size)
            entered, used_s = time.monotonic(), _cpu_s(child.pid)
    child.wait()
    size.start_s, size.stop_s, size.total_s = wall["start"], wall["stop"], time.monotonic() - began
    size.start_cpu_s, size.traffic_cpu_s, size.stop_cpu_s = cpu["start"], cpu["traffic"], cpu["stop"]


def _cpu_s(root: int) -> float:
    """CPU seconds of a process, of all below it, and of those that they waited for."""
    ticks = 0
    for pid, _start in descendants(root):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _take_memory(root: int, size: Size) -> None:
    pss_kib = 0
    for pid, _start in descendants(root):
        with suppress(OSError):
            pss_kib += number_of(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")
            open_files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
            size.processes += 1
            size.descriptors += open_files
            size.max_descriptors = max(size.max_descriptors, open_files)
    size.pss_mb = pss_kib * 1024 / 1e6


def mean(sizes: Iterable[Size], figure: str) -> float:
    """Mean over the runs that have the figure; nan without any."""
    values = [value for size in sizes if not math.isnan(value := getattr(size, figure))]
    return sum(values) / len(values) if values else math.nan


def slope(sizes: Iterable[Size], figure: str) -> float:
    """Exponent of the growth with the number of stations: least squares of the logarithms."""
    points = [(size.stations, getattr(size, figure)) for size in sizes]
    measured = [(n, value) for n, value in points if value > 0]
    if len({n for n, _ in measured}) < 2:
        return math.nan
    return float(np.polyfit(*np.log(measured).T, 1)[0])


def table_of(sizes: list[Size]) -> Table:
    """A row for each checkout, protocol and number of stations, the mean of its runs, and the slopes below."""
    table = Table(
        "Moving stations, five CBR flows",
        ["", "routing", "stations", *FIGURES.values(), "p99 late, ms", "verdicts"],
        "1,000 start in less than 30 s and end valid; nothing grows faster than the stations do (slope 1)",
    )
    for (checkout, routing), of_one in _grouped(sizes, lambda size: (size.checkout, size.routing)):
        for stations, runs in _grouped(of_one, lambda size: size.stations):
            means = [mean(runs, figure) for figure in (*FIGURES, "p99_late_ms")]
            table.rows.append([checkout, routing, str(stations), *means, " ".join(size.verdict for size in runs)])
        if len({size.stations for size in of_one}) > 1:
            table.rows.append([checkout, routing, "slope", *(f"{slope(of_one, figure):.2f}" for figure in FIGURES), "", ""])
    return table


def _grouped(sizes: list[Size], key: Callable[[Size], Any]) -> list[tuple[Any, list[Size]]]:
    return [(value, list(group)) for value, group in itertools.groupby(sorted(sizes, key=key), key=key)]


def draw_figure(sizes: list[Size], file: Path) -> None:
    """Each figure of the table by stations, both axes logarithmic, with the slope in the legend."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(11, 5.5), layout="constrained")
    several = len({size.checkout for size in sizes}) > 1
    for axes, (name, title) in zip(drawing.subplots(2, 4).flat, FIGURES.items(), strict=True):
        for (checkout, routing), of_one in _grouped(sizes, lambda size: (size.checkout, size.routing)):
            points = [(n, mean(runs, name)) for n, runs in _grouped(of_one, lambda s: s.stations)]
            style = {"linestyle": "--", "marker": "x"} if checkout == "before" else {"linestyle": "-", "marker": "o"}
            axes.loglog(
                *zip(*points, strict=True), label=f"{routing}{f' {checkout}' * several}: {slope(of_one, name):.2f}", **style
            )
        axes.set(title=title, xlabel="stations")
        axes.legend(fontsize=7)
    drawing.savefig(file, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.sizes", description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="DIR", type=Path, help="another built checkout, to compare with")
    parser.add_argument("--stations", default="30,100,300,1000,2000", metavar="N,...")
    parser.add_argument("--routing", default="aodv,olsr", metavar="NAME,...")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each size, each with its seed")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="S", help="duration of the traffic")
    parser.add_argument("--reach", type=float, metavar="M", help="flows between stations about so far apart at the start")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="rows of earlier runs; new ones are appended")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the rows, too")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the run under way, too
    checkouts = {"before": options.against.resolve(), "now": ROOT} if options.against else {"now": ROOT}
    sizes = _read(options.csv)
    done = {(size.checkout, size.routing, size.stations, size.seed) for size in sizes}
    counts = [int(count) for count in options.stations.split(",")]
    for seed in range(SEED_OF_ROUND, SEED_OF_ROUND + options.rounds):
        turn = list(checkouts) if seed % 2 else list(reversed(checkouts))
        for stations, routing, name in itertools.product(counts, options.routing.split(","), turn):
            if (name, routing, stations, seed) not in done:
                sizes.append(run(name, checkouts[name], stations, routing, seed, options.seconds, options.reach))
                print(asdict(sizes[-1]), file=sys.stderr, flush=True)
                _write(options.csv, sizes)
    draw(Console(width=None if sys.stdout.isatty() else 200), table_of(sizes))
    if options.figure:
        draw_figure(sizes, options.figure)
    return 0


def _read(file: Path | None) -> list[Size]:
    if not file or not file.exists():
        return []
    with file.open(newline="") as rows:
        return TypeAdapter(list[Size]).validate_python(list(csv.DictReader(rows)))


def _write(file: Path | None, sizes: list[Size]) -> None:
    if file:
        with file.open("w", newline="") as rows:
            writer = csv.DictWriter(rows, list(Size.__dataclass_fields__))
            writer.writeheader()
            writer.writerows(asdict(size) for size in sizes)


if __name__ == "__main__":
    sys.exit(main())
