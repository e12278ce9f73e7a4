"""CPU and memory of the verbs that read the results of large runs: `manet story`, `manet plot` and the analysis of a run.

With `--against DIR`, another built checkout, both in turn on the same folders, so that the machine's own changes meet both. The
memory is the peak RSS of the child process. The folders are synthetic (large_runs.py).

`PYTHONPATH=. .venv/bin/python -P -m tests.bench.results [--against DIR] [--rounds N] [--rows N] [--flows N]`
"""

import argparse
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import RunError
from testbed.programs import ROOT
from tests.bench import Table
from tests.bench.runs import bench_folder, python_of

ROWS = 1_000_000
ANALYSE = "import sys; from pathlib import Path; from analysis.metrics.analyse import analyse_run; analyse_run(Path(sys.argv[1]))"

WRITE = """
import sys
from pathlib import Path
from tests.bench.large_runs import write_run
print(write_run(Path(sys.argv[1]), int(sys.argv[2]), flows=int(sys.argv[3])))
"""


@dataclass(frozen=True)
class Cost:
    """Of a child process."""

    cpu_s: float
    peak_mb: float


def measure() -> Table:
    return table_of({"this checkout": ROOT}, ROWS, 1, 1)


def table_of(checkouts: dict[str, Path], rows: int, flows: int, rounds: int) -> Table:
    """A line for each verb, medians of the rounds; with two checkouts the ratio of the second to the first."""
    columns = ["verb", *(f"{name}, {unit}" for unit in ("CPU us/row", "peak MB") for name in checkouts)]
    columns += ["ratio of CPU", "ratio of MB"] if len(checkouts) == 2 else []
    table = Table(
        f"A run with {rows:,} rows of air log and {flows} TCP flows", columns, "a third of CPU and memory (November 2026)"
    )
    with bench_folder() as folder:
        run = folder / "all" / "seed-1"
        # by a child: a process that this one starts inherits its peak RSS
        made = subprocess.run([sys.executable, "-P", "-c", WRITE, run, str(rows), str(flows)], check=True, capture_output=True)
        written = int(made.stdout)
        verbs = {
            "story": ["-m", "testbed", "story", run],
            "plot": ["-m", "testbed", "plot", run, "--out", folder / "plot.png"],
            "analysis": ["-c", ANALYSE, run],
        }
        for verb, words in verbs.items():
            costs: dict[str, list[Cost]] = {name: [] for name in checkouts}
            for number in range(rounds):
                for name in list(checkouts) if number % 2 == 0 else list(reversed(checkouts)):
                    costs[name].append(cost_of(checkouts[name], words))
            cpu = [statistics.median(cost.cpu_s for cost in each) / written * 1e6 for each in costs.values()]
            peak = [statistics.median(cost.peak_mb for cost in each) for each in costs.values()]
            ratios = [cpu[1] / cpu[0], peak[1] / peak[0]] if len(checkouts) == 2 else []
            table.rows.append([verb, *cpu, *peak, *ratios])
    return table


def cost_of(checkout: Path, words: list[str | Path]) -> Cost:
    """Run Python of a checkout with these words. Raises RunError."""
    with python_of(checkout, *words, stdout=subprocess.DEVNULL) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RunError(f"{checkout}: {' '.join(map(str, words[:3]))} ended with status {child.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.results", description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="DIR", type=Path, help="another built checkout, to compare with")
    parser.add_argument("--rounds", metavar="N", type=int, default=1, help="calls of each checkout")
    parser.add_argument("--rows", metavar="N", type=int, default=ROWS, help="rows of the air log")
    parser.add_argument("--flows", metavar="N", type=int, default=1, help="TCP flows, at most ten")
    options = parser.parse_args()
    checkouts = {"before": options.against.resolve(), "now": ROOT} if options.against else {"this checkout": ROOT}
    from rich.console import Console

    from tests.bench.__main__ import draw

    table = table_of(checkouts, options.rows, options.flows, options.rounds)
    draw(Console(width=None if sys.stdout.isatty() else 120), table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
