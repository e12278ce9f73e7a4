"""A campaign on Slurm beside the same campaign without it, in turn: wall time, and what Slurm costs per batch and per run.

Both use this machine: the cluster's two workers share its cores (tests/slurm/cluster.py), each with half as many runs side by
side as the campaign without Slurm. The difference of their wall times is thus what Slurm and Snakemake's executor cost, not what
a second machine gains. Most of it is Snakemake's interval of status checks, once for each round of batches.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from testbed.campaigns import snakemake
from testbed.errors import RunError
from testbed.programs import ROOT
from tests.bench import Table
from tests.bench.runs import bench_folder
from tests.slurm.cluster import NODES, Cluster, missing

SEEDS = 20
JOBS = 8
BATCH_MIN = 1
ROUNDS = 2
EXPERIMENT = f"""question = "What does Slurm cost?"
[scenario]
topology = "chain"
hops = 1
spacing = 200
duration = 10
[axes]
hops = [1, 2]
[[variants]]
name = "reno"
set = {{ tcp = "reno" }}
[[variants]]
name = "cubic"
set = {{ tcp = "cubic" }}
[full]
seeds = {SEEDS}
"""
# this cluster keeps no accounts, hence squeue
NO_ACCOUNTS = "--slurm-status-command squeue --slurm-no-account"


def measure() -> Table:
    columns = ["campaign", "wall s", "runs", "batches", "wall s / run", "s on the air / wall s", "verdicts"]
    table = Table("A campaign without Slurm and on a Slurm of two workers on the same two cores", columns, "seconds per batch")
    lacking = f"{program} is absent: apt-get install slurm-wlm munge" if (program := missing()) is not None else ""
    lacking = lacking or (f"{names} is absent: ./setup.sh --cluster" if (names := snakemake.missing()) else "")
    if lacking:
        table.rows.append([lacking, *["-"] * (len(columns) - 1)])
        return table
    records: dict[str, list[dict]] = {"local": [], "slurm": []}
    with bench_folder() as folder:
        file = folder / "slurm.toml"
        file.write_text(EXPERIMENT)
        for number in range(ROUNDS):
            records["local"].append(_campaign(file, folder / f"local-{number}", os.environ, JOBS))
            with Cluster(folder / f"cluster-{number}") as cluster:
                words = ["--cluster", "slurm", "--snakemake", NO_ACCOUNTS]
                records["slurm"].append(
                    _campaign(file, folder / f"slurm-{number}", cluster.environment, JOBS // len(NODES), words)
                )
    for name, of_rounds in records.items():
        table.rows.extend(_row(name, record) for record in of_rounds)
    wall = {name: statistics.median(record["wall_s"] for record in of_rounds) for name, of_rounds in records.items()}
    last = records["slurm"][-1]
    more_s = wall["slurm"] - wall["local"]
    table.rows.append(
        ["Slurm adds", more_s, "-", "-", more_s / _runs(last), "-", f"{more_s / len(last['batches']):.3g} s / batch"]
    )
    return table


def _row(name: str, record: dict) -> list[str | float]:
    runs, wall_s = _runs(record), record["wall_s"]
    verdicts = ", ".join(f"{count} {word}" for word, count in record["verdicts"].items() if count)
    return [name, wall_s, runs, len(record["batches"]), wall_s / runs, record["emulated_s"] / wall_s, verdicts]


def _runs(record: dict) -> int:
    return sum(batch["runs"] for batch in record["batches"])


def _campaign(
    file: Path, out: Path, environment: os._Environ[str] | dict[str, str], jobs: int, words: list[str] | None = None
) -> dict:
    """campaign.json, with `wall_s` of the whole command. RunError if it failed."""
    argv = [sys.executable, "-P", "-m", "testbed", "campaign", str(file), "--out", str(out), "--jobs", str(jobs)]
    argv += ["--batch", str(BATCH_MIN), *(words or [])]
    began = time.monotonic()
    done = subprocess.run(
        argv, env={**environment, "PYTHONPATH": str(ROOT)}, cwd=ROOT, capture_output=True, text=True, check=False
    )
    wall_s = time.monotonic() - began
    if done.returncode != 0:
        raise RunError(f"{' '.join(argv[3:])}: status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    record = json.loads((out / "campaign.json").read_text())
    shutil.rmtree(out)
    return record | {"wall_s": wall_s}
