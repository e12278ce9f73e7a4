"""`python -m tests.soak [--duration S] [--out DIR]`: one long run, sampled and judged; `--judge DIR` judges one that has ended.

The run is a user's: `manet run` on a scenario file, thirty stations under random waypoint at 10 m/s, a routing daemon on each,
captures and TCP samples on, one TCP flow with a layer, so that notices, gates and probes are at work. Status 1 if something
grew or the run failed.
"""

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

from testbed.errors import RunError, UsageError
from testbed.host.state import RunState, recorded_runs
from testbed.programs import ROOT
from tests.soak import flat, samples

SCENARIO = """# tests/soak: what a run of {duration:g} s holds.
topology = "random"
nodes = {stations}
area = [1500, 300]       # m
mobility = "random-waypoint"
speed = 10               # m/s
pause = 0
routing = "{routing}"
tcp = "{tcp}"
window = 8               # segments
warmup = 0               # s
duration = {duration:g}  # s

[[flows]]
from = "sta1"
to = "sta2"
"""
START_DEADLINE_S = 120.0
MAX_DURATION_S = 86_400.0  # of a scenario
RUN = Path("all/seed-1")  # of a scenario's folder of results


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--duration", default="3600", metavar="S", help="of the traffic (default: %(default)s)")
    parser.add_argument("--every", type=float, default=60.0, metavar="S", help="between samples (default: %(default)g)")
    parser.add_argument("--warm-up", type=float, metavar="S", help="not judged (default: a third of the duration)")
    parser.add_argument("--stations", type=int, default=30, metavar="N", help="default: %(default)s")
    parser.add_argument("--routing", default="aodv", metavar="NAME", help="default: %(default)s")
    parser.add_argument("--tcp", default="elfn(newreno, probe=2s)", metavar="TCP", help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=Path("results/soak"), metavar="DIR", help="default: %(default)s")
    parser.add_argument("--judge", type=Path, metavar="DIR", help="judge the samples of a soak that has ended")
    options = parser.parse_args()
    try:
        folder = (options.judge or options.out).resolve()
        status = 0 if options.judge else soak(options, folder)
        return judged(folder, options.warm_up) or status
    except (RunError, UsageError) as problem:
        print(f"soak: {problem}", file=sys.stderr)
        return problem.exit_status
    except (OSError, ValueError) as problem:
        print(f"soak: {problem}", file=sys.stderr)
        return 1


def duration_of(options: argparse.Namespace) -> float:
    """The seconds of traffic that were asked for, if enough of them are left to be judged; a UsageError with the least."""
    if not options.every > 0:
        raise UsageError(f"--every {options.every:g}: give seconds above 0")
    min_s = flat.min_duration_s(options.every, options.warm_up)
    try:
        seconds = float(options.duration)
    except ValueError:
        seconds = math.nan
    if not min_s <= seconds <= MAX_DURATION_S:
        text = f"{flat.MIN_SAMPLES} samples are judged, one every {options.every:g} s, after the warm-up; make soak SOAK_S=900"
        raise UsageError(f'--duration "{options.duration}": give seconds from {min_s:g} to {MAX_DURATION_S:g} ({text})')
    return seconds


def soak(options: argparse.Namespace, folder: Path) -> int:
    """Do the run and write samples.csv beside it; `manet run`'s status."""
    options.duration = duration_of(options)
    if (folder / "samples.csv").exists():
        raise UsageError(f"{folder}: holds a soak already; remove it, or give another folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    scenario = folder / "soak.toml"
    scenario.write_text(SCENARIO.format(**vars(options)))
    results = folder / "run"
    argv = [sys.executable, "-P", "-m", "testbed", "run", str(scenario), "--jobs", "1", "--out", str(results)]
    with (folder / "manet.log").open("w") as log:
        manet = subprocess.Popen(argv, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            sample(manet, results / RUN, folder / "samples.csv", options.every)
            return manet.wait()
        finally:
            if manet.poll() is None:
                manet.terminate()
                manet.wait()


def sample(manet: subprocess.Popen, run: Path, out: Path, every_s: float) -> None:
    """One line a reading, every so often, until the run is over; t_s counts from `began.json`'s UNIX time."""
    state = _state_of(manet, run)
    began_s = time.time()
    out.with_name("began.json").write_text(json.dumps({"unix_s": began_s, "run": str(run)}) + "\n")
    next_s = time.monotonic()
    with out.open("w", newline="") as lines:
        table = csv.writer(lines)
        table.writerow(["t_s", "of", "measure", "value"])
        while manet.poll() is None and state.path.exists():
            now = time.time() - began_s
            table.writerows((f"{now:.1f}", *reading) for reading in samples.read(state))
            lines.flush()
            next_s += every_s
            while manet.poll() is None and state.path.exists() and time.monotonic() < next_s:
                time.sleep(0.2)


def _state_of(manet: subprocess.Popen, run: Path) -> RunState:
    deadline = time.monotonic() + START_DEADLINE_S
    while manet.poll() is None and time.monotonic() < deadline:
        for state in recorded_runs():
            if state.directory == str(run):
                return state
        time.sleep(0.05)
    raise RunError(f"{run}: no run began; see {run.parents[2]}/manet.log")


def judged(folder: Path, warm_up_s: float | None) -> int:
    """Print each trend over the traffic after the warm-up, and what grew; 1 if anything did."""
    began_s = json.loads((folder / "began.json").read_text())["unix_s"]
    record = json.loads((folder / "run" / RUN / "run.json").read_text())
    scenario = json.loads((folder / "run" / RUN / "scenario.json").read_text())
    if record.get("traffic_ns") is None:
        raise RunError(f"{folder}: the run had no traffic: {record['error']}")
    traffic_s = (record["epoch_ns"] + record["traffic_ns"]) / 1e9 - began_s
    if warm_up_s is None:
        warm_up_s = flat.WARM_UP * scenario["duration"]
    found = flat.trends(folder / "samples.csv", traffic_s + warm_up_s, traffic_s + scenario["duration"])
    for trend in found:
        print(trend.line())
    grown = [trend for trend in found if not trend.flat]
    print(f"{record['status']}, {scenario['duration']:g} s of traffic, {len(grown)} of {len(found)} grow")
    return 1 if grown or record["status"] != "complete" else 0


if __name__ == "__main__":
    sys.exit(main())
