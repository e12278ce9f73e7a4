"""The CPU share of a real-time run of 30 stations with one TCP flow.

`medium` is the daemon's own count (verdict.json); `all` is every process of the run, from its start to its end, as
the kernel counts them for the parent that waited for them, packets' processing in their context included.
"""

import os

from tests.bench import Table
from tests.bench.runs import bench_folder, chain, timed_run

STATIONS = 30
DURATION_S = 20.0


def measure() -> Table:
    table = Table(
        f"Real-time run, {STATIONS} stations, one TCP flow over nine hops",
        ["stations", "seconds", "medium CPU s", "medium share", "all CPU s", "all share", "p99 late us", "verdict"],
        "well below one core",
    )
    with bench_folder() as folder:
        before = os.times()
        run = timed_run(chain(STATIONS, DURATION_S), folder / "cpu")
        after = os.times()
        verdict = run.verdict
    all_s = after.children_user + after.children_system - before.children_user - before.children_system
    model_s = verdict["model_ns"] / 1e9
    table.rows.append(
        [
            STATIONS,
            run.seconds,
            verdict["cpu_s"],
            f"{verdict['cpu_s'] / model_s:.1%}",
            all_s,
            f"{all_s / run.seconds:.1%}",
            float(verdict["lateness"]["p99_us"]),
            verdict["verdict"],
        ]
    )
    return table
