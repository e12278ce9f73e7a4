"""The effect of a host without time for its stations' programs on throughput: the measurement behind the thresholds of
testbed/runs/waits.py (docs/verdict.md).

    PYTHONPATH=. .venv/bin/python -P -m tests.bench.starving [SECONDS [LOOPS:NICE ...]]

RUNS of thirty stations that move, side by side, on a machine that has nothing else to do; during their traffic busy loops are
added, so many a processor, so much nicer (or less) than the runs. Each row: how far the sum of the throughputs moved from that of
the runs that were left alone, and what their verdicts saw.
"""

import json
import signal
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from analysis.metrics.analyse import analyse_run
from scenarios.scenario import Scenario
from testbed.campaigns.side_by_side import usable_cores
from testbed.programs import ROOT
from tests.bench.runs import bench_folder, timed_run

SECONDS = 40.0
LEVELS = ["0:0", "1:0", "4:0", "1:-5", "4:-5", "1:-12", "4:-12"]
ROUTING = ("dsr-ns2", "aodv-ns2", "dsdv")
PATTERNS = (1, 2)


def scenario(routing: str, pattern: int, seconds: float) -> Scenario:
    """A cell of hv-patterns at 10 m/s, cut short."""
    movement = str(ROOT / "mobility" / "patterns" / f"p{pattern:02}.tcl")
    keys = {"topology": "random", "nodes": 30, "area": [1500, 300], "mobility": {"file": movement, "at": "traffic"}, "speed": 10}
    flows = [{"from": "sta1", "to": "sta2"}]
    keys |= {"traffic_at": 30, "radio": "ns2-dsss-2m", "routing": routing, "window": 8, "warmup": 0, "duration": seconds}
    return Scenario.model_validate({**keys, "flows": flows})


@contextmanager
def loops(level: str) -> Iterator[None]:
    """`2:-5`: two busy loops a processor, with a nice value of 5 below the runs'."""
    count, nice = (int(word) for word in level.split(":"))
    argv = ["nice", "-n", str(nice), sys.executable, "-I", "-S", "-c", "while True: pass"]
    started = [subprocess.Popen(argv) for _ in range(count * usable_cores())]
    try:
        yield
    finally:
        for loop in started:
            loop.send_signal(signal.SIGKILL)
            loop.wait()


def one(directory: Path, routing: str, pattern: int, seconds: float, ready: threading.Barrier) -> tuple[float, dict]:
    """Acknowledged throughput in kbit/s, and verdict.json."""

    def entered(stage: str) -> None:
        if stage == "traffic":
            ready.wait(timeout=120)

    run = timed_run(scenario(routing, pattern, seconds), directory, pattern, entered=entered)
    return analyse_run(directory)["flows"]["flow1"]["acked_bps"] / 1e3, run.verdict


def level_row(level: str, seconds: float, folder: Path) -> tuple[dict[str, float], list[dict]]:
    """Throughput by run, and the verdicts."""
    cells = [(routing, pattern) for routing in ROUTING for pattern in PATTERNS]
    ready = threading.Barrier(len(cells) + 1)
    with ThreadPoolExecutor(len(cells)) as pool:
        runs = [pool.submit(one, folder / f"{r}-{p}", r, p, seconds, ready) for r, p in cells]
        ready.wait(timeout=180)
        with loops(level):
            ended = [run.result() for run in runs]
    return {f"{r} p{p}": rate for (r, p), (rate, _) in zip(cells, ended, strict=True)}, [verdict for _, verdict in ended]


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    base: float | None = None
    print(
        "| loops:nice | kbit/s of the runs | moved | mean wait, ms | worst second, ms | starved share | medium late | verdicts |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for level in sys.argv[2:] or LEVELS:
        with bench_folder() as folder:
            rates, verdicts = level_row(level, seconds, folder)
        base = base or sum(rates.values())
        programs = [v["programs"] for v in verdicts]
        moved = f"{100 * (sum(rates.values()) / base - 1):+.0f} %"
        cells = [level, " ".join(f"{rate:.0f}" for rate in rates.values()), moved]
        cells.append(" ".join(f"{p['mean_wait_ms']:.2f}" for p in programs))
        cells.append(" ".join(f"{p['worst_window_ms']:.1f}" for p in programs))
        cells.append(" ".join(f"{p['starved_share']:.2f}" for p in programs))
        cells.append(f"{statistics.fmean(v['late_share'] for v in verdicts):.3f}")
        cells.append(json.dumps({kind: sum(v["verdict"] == kind for v in verdicts) for kind in ("valid", "suspect", "void")}))
        print("| " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
