"""The medium in virtual time beside Debian's ns-2.35, by number of stations, still and moving: CPU time of a broadcast.

One station per hectare, still or random waypoint at 10 m/s; each broadcasts 512 bytes a second at 2 Mbit/s. The programs
have the same positions and movement and run in turn, ROUNDS times, for LONG_S and SHORT_S; the difference of the medians is the
cost of the broadcasts between, without the start of the program. `--with PROGRAM` adds one: its arguments are the number of
stations, the width (m), the seconds and a file in ns-2's format of movement; it prints how many packets were received.

`PYTHONPATH=. .venv/bin/python -P -m tests.bench.moving [--stations N,...] [--with PROGRAM]`
"""

import argparse
import itertools
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

import topologies
from mobility.files import ns2 as setdest
from mobility.models.random_waypoint import random_waypoint
from mobility.trace import Trace, place, write
from testbed.validate import ns2, simulate
from tests.bench import Table
from tests.bench.__main__ import draw
from tests.bench.beside_ns2 import cpu_s

ROUNDS = 3
SEED = 1
STATION_M2 = 10_000.0
SPEED_MPS = 10.0
LONG_S, SHORT_S = 31, 1
BYTES = 512


@dataclass(frozen=True)
class Network:
    """Stations of a square field of this width (m), and their movement."""

    trace: Trace
    width_m: float

    def medium(self, seconds: int, folder: Path) -> int:
        names = self.trace.stations()
        sends = {"to": "*", "kind": "cbr", "bytes": BYTES, "rate_bps": 8.0 * BYTES, "jitter": True}
        traffic = [{"from": name, "start_s": k / len(names), **sends} for k, name in enumerate(names)]
        at = [self.trace.position(name, 0.0) for name in names]
        layout = simulate.Layout("ns2-dsss-2m", [(x, y) for x, y, _ in at], traffic, float(seconds), 0.0)
        (folder / "trace.csv").write_text(write(self.trace.legs))
        (folder / "medium.json").write_text(json.dumps(simulate.medium_json(layout, SEED) | {"trace": "trace.csv"}))
        printed = json.loads(_called([simulate.PROGRAM, "sim", folder / "medium.json"], folder))
        return sum(flow["delivered_packets"] for flow in printed["flows"])

    def ns2(self, seconds: int, folder: Path) -> int:
        (folder / "moves.tcl").write_text(setdest.write(self.trace))
        keys: dict[str, ns2.Value] = {
            "stations": len(self.trace.stations()),
            "width_m": math.ceil(self.width_m),
            "ip_bytes": BYTES,
        }
        arguments = {**keys, "seed": SEED, "measured_s": seconds, "positions_file": "moves.tcl"}
        return int(ns2.call_ns("broadcasts", arguments, str(folder))["packets"])

    def other(self, program: Path, seconds: int, folder: Path) -> int:
        (folder / "moves.tcl").write_text(setdest.write(self.trace))
        words = [program, len(self.trace.stations()), math.ceil(self.width_m), seconds, "moves.tcl"]
        return int(_called(words, folder))


Program = Callable[[Network, int, Path], int]  # seconds, a folder for its files; returns the packets received


def network(stations: int, moving: bool) -> Network:
    width_m = math.sqrt(STATION_M2 * stations)
    places = [(one.name, one.x_m, one.y_m, 0.0) for one in topologies.random_uniform(stations, (width_m, width_m), SEED)]
    options = {"begin_s": 0.0, "end_s": float(LONG_S), "seed": SEED, "speed": SPEED_MPS}
    legs = random_waypoint(places, (width_m, width_m), **options) if moving else place(places)  # type: ignore[arg-type]
    return Network(Trace("moves", legs), width_m)


def measure(counts: list[int], other: Path | None) -> Table:
    programs: dict[str, Program] = {"medium": Network.medium}
    if shutil.which("ns"):
        programs["ns-2"] = Network.ns2
    if other:
        programs[other.name] = lambda network, seconds, folder: network.other(other, seconds, folder)
    columns = [
        "stations",
        "",
        *(f"{name}, us a broadcast" for name in programs),
        "received by",
        *(f"{name} / medium" for name in list(programs)[1:]),
    ]
    table = Table("The medium in virtual time: a broadcast among the stations", columns, "moving costs little more than still")
    for stations in counts:
        for moving in (False, True):
            costs, received = _costs(network(stations, moving), list(programs.values()), stations)
            ratios = [cost / costs[0] for cost in costs[1:]]
            by = " ".join(f"{one:.2f}" for one in received)
            table.rows.append([str(stations), "moving" if moving else "still", *costs, by, *ratios])
            print(*table.rows[-1], file=sys.stderr, flush=True)
    return table


def _costs(of: Network, programs: list[Program], stations: int) -> tuple[list[float], list[float]]:
    """CPU us of a broadcast with each program, and the stations that received it, which shows that all do the same work."""
    taken: dict[tuple[int, int], list[float]] = defaultdict(list)
    packets: dict[tuple[int, int], int] = {}
    with tempfile.TemporaryDirectory(prefix="manet-bench-moving-") as folder:
        for _, (which, program), seconds in itertools.product(range(ROUNDS), enumerate(programs), (SHORT_S, LONG_S)):

            def call(which: int = which, program: Program = program, seconds: int = seconds) -> None:
                packets[which, seconds] = program(of, seconds, Path(folder))

            taken[which, seconds].append(cpu_s(call))
    broadcasts = (LONG_S - SHORT_S) * stations
    middle = {key: statistics.median(values) for key, values in taken.items()}
    both = [((which, LONG_S), (which, SHORT_S)) for which in range(len(programs))]
    costs = [(middle[long] - middle[short]) / broadcasts * 1e6 for long, short in both]
    return costs, [(packets[long] - packets[short]) / broadcasts for long, short in both]


def _called(words: Sequence[object], folder: Path) -> str:
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True, cwd=folder).stdout


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.moving", description=__doc__.splitlines()[0])
    parser.add_argument("--stations", default="100,300,1000", metavar="N,...")
    parser.add_argument("--with", dest="other", metavar="PROGRAM", type=Path, help="a third program")
    options = parser.parse_args()
    other = options.other.resolve() if options.other else None
    table = measure([int(count) for count in options.stations.split(",")], other)
    draw(Console(width=None if sys.stdout.isatty() else 160), table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
