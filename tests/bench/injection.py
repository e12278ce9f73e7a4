"""The effect of lateness and stalls of the medium on TCP throughput, behind the verdict's thresholds (docs/verdict.md).

    PYTHONPATH=. .venv/bin/python -P -m tests.bench.injection [REPETITIONS [SCENARIO [INJECTION ...]]]

The same scenario is run with a medium that is made late (`--inject-lateness`) or to stand still (`--inject-stall`); each row
says how far throughput moved from that of the undisturbed runs of the same scenario, and what the verdict's inputs were.
"""

import json
import shlex
import statistics
import sys
from dataclasses import replace
from pathlib import Path

from analysis.metrics.analyse import analyse_run
from scenarios.scenario import Scenario
from testbed.errors import RunError
from testbed.programs import BUILT, Programs
from testbed.runs.run import run_scenario
from tests.bench.runs import bench_folder

# the papers' radio over one and four hops, and the fastest radio, where an exchange is 20 times shorter
SCENARIOS = {
    "2 Mbit/s, 1 hop": {"radio": "ns2-dsss-2m", "hops": 1, "spacing": 200},
    "2 Mbit/s, 4 hops": {"radio": "ns2-dsss-2m", "hops": 4, "spacing": 200},
    "54 Mbit/s, 2 hops": {"radio": "dot11g-54m", "hops": 2, "spacing": 20},
}
INJECTIONS = [
    "",
    *(f"--inject-lateness {us}" for us in (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)),
    *(
        f"--inject-stall {stall}"
        for stall in ("10:100", "60:1000", "100:2000", "200:5000", "200:2000", "500:10000", "500:3000", "1000:10000")
    ),
]
COMMON = {"topology": "chain", "window": 8, "warmup": 2.0, "duration": 20.0}


def wrapper(folder: Path, options: str) -> Programs:
    """The medium's program with more options."""
    script = folder / f"medium-{options.replace(' ', '').replace(':', '-') or 'plain'}"
    medium = shlex.quote(str(BUILT.medium))
    script.write_text(f'#!/bin/sh\n[ "$1" = run ] || exec {medium} "$@"\nshift\nexec {medium} run {options} "$@"\n')
    script.chmod(0o755)
    return replace(BUILT, medium=script)


def one(folder: Path, keys: dict, options: str, seed: int) -> tuple[float, dict]:
    """Acknowledged throughput in kbit/s, and verdict.json."""
    scenario = Scenario.model_validate({**COMMON, **keys})
    result = run_scenario(scenario, seed, folder / "run", programs=wrapper(folder, options))
    if result.status != "complete":
        raise RunError(f"{options}: {result.error}")
    directory = result.directory
    metrics = analyse_run(directory)
    return metrics["flows"]["flow1"]["acked_bps"] / 1e3, json.loads((directory / "verdict.json").read_text())


def main() -> int:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    scenarios = {name: keys for name, keys in SCENARIOS.items() if name in sys.argv[2:3] or len(sys.argv) < 3}
    print("| scenario | injected | kbit/s | sd | moved | p50 us | p99 us | > 1 ms | > 5 ms | stalled | longest ms | verdict |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name, keys in scenarios.items():
        base: float | None = None
        for options in ["", *sys.argv[3:]] if len(sys.argv) > 3 else INJECTIONS:
            rates, verdicts = [], []
            for seed in range(1, repetitions + 1):
                with bench_folder() as folder:
                    rate, verdict = one(folder, keys, options, seed)
                rates.append(rate)
                verdicts.append(verdict)
            base = base or statistics.fmean(rates)
            print(row(name, options, rates, base, verdicts), flush=True)
    return 0


def row(name: str, options: str, rates: list[float], base: float, verdicts: list[dict]) -> str:
    def late(key: str) -> str:
        return f"{statistics.fmean(v['lateness'][key] for v in verdicts):.0f}"

    def above(us: float) -> str:
        late = [v["lateness"] for v in verdicts]
        shares = [sum(n for bound, n in seen["histogram_us"] if bound > us) / max(seen["count"], 1) for seen in late]
        return f"{100 * statistics.fmean(shares):.2f} %"

    mean = statistics.fmean(rates)
    what = options.removeprefix("--inject-").replace("lateness", "late, us").replace("stall", "stall, ms:every") or "nothing"
    spread = f"{statistics.stdev(rates):.1f}" if len(rates) > 1 else ""
    cells = [name, what, f"{mean:.1f}", spread, f"{100 * (mean / base - 1):+.1f} %"]
    cells += [late("p50_us"), late("p99_us"), above(1000), above(5000)]
    cells.append(f"{100 * statistics.fmean(v['stalled_share'] for v in verdicts):.1f} %")
    cells.append(f"{max(v['longest_stall_ms'] for v in verdicts):.0f}")
    cells.append(", ".join(sorted({v["verdict"] for v in verdicts})))
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
