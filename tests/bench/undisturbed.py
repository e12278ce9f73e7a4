"""False alarms of the verdict: undisturbed runs, and what their verdicts saw.

    PYTHONPATH=. .venv/bin/python -P -m tests.bench.undisturbed [--seeds N] [--loops N] [--jobs N] EXPERIMENT ...

Runs the cells of experiments (`demo`, `hv-fig3`) at their quick size with seeds of its own and, for a loaded host, busy loops
beside them. Nothing stops a program or changes a station, so `stopped` and `changed` of each verdict.json (formats/air.md) are
to be empty. Exit status 1 if one is not.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from testbed.programs import ROOT
from tests.bench.runs import bench_folder
from tests.bench.starving import loops

KINDS = ("stopped", "changed", "written")


def verdicts(name: str, seeds: int, jobs: int | None, out: Path) -> list[dict]:
    """verdict.json of each run of an experiment."""
    words = ["run", name, "--quick", "--seeds", str(seeds), "--out", str(out), *(["--jobs", str(jobs)] if jobs else [])]
    subprocess.run([str(ROOT / "manet"), *words], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    return [json.loads(path.read_text()) for path in sorted(out.glob("*/seed-*/verdict.json"))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.undisturbed", description=__doc__.splitlines()[0])
    parser.add_argument("experiments", nargs="+", metavar="EXPERIMENT")
    parser.add_argument("--seeds", type=int, default=12, metavar="N", help="seeds of each cell")
    parser.add_argument("--loops", type=int, default=0, metavar="N", help="busy loops on each processor")
    parser.add_argument("--jobs", type=int, metavar="N", help="runs side by side")
    options = parser.parse_args()
    alarms = 0
    for name in options.experiments:
        with bench_folder() as folder, loops(f"{options.loops}:0"):
            found = verdicts(name, options.seeds, options.jobs, folder / "results")
        judged = Counter(verdict["verdict"] for verdict in found)
        reasons = Counter(kind for verdict in found for kind in KINDS if verdict.get(kind))
        alarms += reasons.total()
        print(
            f"{name}: {len(found)} runs, {options.loops} busy loops a processor: {dict(judged)}; alarms {dict(reasons)}",
            flush=True,
        )
        for verdict in found:
            if any(verdict.get(kind) for kind in KINDS):
                print("  ", {kind: verdict.get(kind) for kind in KINDS}, verdict["reasons"])
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
