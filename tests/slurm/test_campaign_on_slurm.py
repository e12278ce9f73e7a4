"""A campaign on a real Slurm: a controller and two workers on this machine, one of which is killed in mid-batch, or takes
no jobs, so that a batch waits in the queue."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.campaigns import snakemake
from testbed.campaigns.rounds import done_records
from testbed.programs import ROOT
from tests.slurm.cluster import NODES, Cluster, missing

EXPERIMENT = """question = "?"
[scenario]
topology = "chain"
hops = 1
spacing = 200
duration = 2
[axes]
hops = [1, 2]
[[variants]]
name = "reno"
set = { tcp = "reno" }
[[variants]]
name = "cubic"
set = { tcp = "cubic" }
[full]
seeds = 15
"""
RUNS = 60
LIMIT_S = 600
# this cluster keeps no accounts, hence squeue; the checks are frequent because the batches are short
SNAKEMAKE = (
    "--slurm-status-command squeue --slurm-no-account"
    " --slurm-init-seconds-before-status-checks 3 --seconds-between-status-checks 3"
)

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.alone("ends and starts daemons for three minutes"),
    pytest.mark.skipif(missing() is not None, reason=f"{missing()} is not installed (apt-get install slurm-wlm munge)"),
    pytest.mark.skipif(bool(snakemake.missing()), reason="Snakemake is not installed: ./setup.sh --cluster"),
]


@pytest.fixture
def out(tmp_path):
    (tmp_path / "two.toml").write_text(EXPERIMENT)
    return tmp_path / "out"


def start(cluster: Cluster, out: Path, *more: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-P", "-m", "testbed", "campaign", str(out.parent / "two.toml"), "--out", str(out),
            "--cluster", "slurm", "--jobs", "4", "--batch", "1", "--snakemake", SNAKEMAKE, *more]  # fmt: skip
    environment = cluster.environment | {"PYTHONPATH": str(ROOT)}
    with (out.parent / "log").open("w") as log:
        return subprocess.Popen(argv, env=environment, cwd=ROOT, stdout=log, stderr=log, text=True)


def ended_runs(out: Path) -> dict[str, str]:
    """The id of each complete run, by its place."""
    found = {}
    for path in out.glob("two/*/seed-*/run.json"):
        run = json.loads(path.read_text())
        if run.get("status") == "complete" and (path.parent / "manifest.json").exists():
            found[str(path.parent.relative_to(out))] = run["id"]
    return found


def batches_with_ended_runs(out: Path) -> int:
    """The unfinished batches of the first round that have two complete runs."""
    ended, found = {(out / place).resolve() for place in ended_runs(out)}, 0
    for batch in out.glob("batches/round-1/batch-?.json"):
        runs = [(batch.parent / run["directory"]).resolve() for run in json.loads(batch.read_text())["runs"]]
        found += not batch.with_suffix(".done.json").exists() and len(ended & set(runs)) >= 2
    return found


def wait_for(condition, process: subprocess.Popen[str], log: Path) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


def end(campaign: subprocess.Popen[str]) -> None:
    if campaign.poll() is None:
        campaign.terminate()
        campaign.wait(60)


def await_end(campaign: subprocess.Popen[str], log: Path) -> None:
    try:
        assert campaign.wait(LIMIT_S) == 0, log.read_text()
    finally:
        end(campaign)


def test_a_campaign_survives_the_loss_of_a_worker_and_repeats_no_finished_run(tmp_path, out):
    with Cluster(tmp_path / "slurm") as cluster:
        campaign = start(cluster, out)
        try:
            # both workers' batches: of the killed one's some runs are to be kept
            both = list(NODES)
            wait_for(lambda: sorted(cluster.busy()) == both and batches_with_ended_runs(out) >= 2, campaign, tmp_path / "log")
            cluster.kill("w0")
            before = ended_runs(out)
            await_end(campaign, tmp_path / "log")
        finally:
            end(campaign)
            # what the killed worker's runs left: records and control groups, as after a loss of power
            subprocess.run(
                [sys.executable, "-P", "-m", "testbed", "clean"],
                cwd=ROOT,
                env=cluster.environment | {"PYTHONPATH": str(ROOT)},
                check=True,
            )
    after = ended_runs(out)
    assert len(after) == RUNS
    assert {place: after[place] for place in before} == before
    record = json.loads((out / "campaign.json").read_text())
    assert (record["cluster"], record["verdicts"]["failed"], record["ended"] is not None) == ("slurm", 0, True)
    assert sum(batch["runs"] for batch in record["batches"]) == RUNS
    kept = [run for record in done_records(out) for run in record["runs"] if run["status"] == "kept"]
    assert 0 < len(kept) < RUNS / 3  # of the batch that another worker took over: some runs, not all


def test_a_batch_that_waits_in_the_queue_at_the_time_limit_is_cancelled(tmp_path, out):
    """One of four batches has a node. At the limit it ends its runs, and the campaign ends; the others are never begun. They take
    minutes, so that the first is under way at the limit, however loaded the host is."""
    runs = 240
    file = out.parent / "two.toml"
    file.write_text(EXPERIMENT.replace("seeds = 15", f"seeds = {runs // 4}"))
    with Cluster(tmp_path / "slurm") as cluster:
        cluster.run(["scontrol", "update", "nodename=w1", "state=drain", "reason=test"])
        campaign = start(cluster, out, "--time", "2", "--batch", "3")
        await_end(campaign, tmp_path / "log")
        assert cluster.run(["squeue", "--noheader"]) == ""
    record = json.loads((out / "campaign.json").read_text())
    assert (record["time_limit"]["round"], len(record["batches"])) == (1, 1)
    assert 0 < len(ended_runs(out)) <= runs - record["time_limit"]["not_started"]
    assert "the time limit ended the campaign" in (tmp_path / "log").read_text()


def test_a_campaign_that_was_killed_leaves_nothing_that_works_beside_the_next(tmp_path, out):
    """Its Snakemake ends with it, and the next call cancels its jobs."""
    (out.parent / "two.toml").write_text(EXPERIMENT.replace("seeds = 15", "seeds = 6"))
    with Cluster(tmp_path / "slurm") as cluster:
        killed = start(cluster, out)
        wait_for(lambda: len(cluster.busy()) == len(NODES) and ended_runs(out), killed, tmp_path / "log")
        killed.kill()
        killed.wait()
        before, jobs = ended_runs(out), cluster.run(["squeue", "-h", "-o", "%i"]).split()
        assert jobs
        campaign = start(cluster, out)
        await_end(campaign, tmp_path / "log")
        states = [cluster.run(["squeue", "-h", "-t", "all", "-j", job, "-o", "%T"]).strip() for job in jobs]
    assert f"{len(jobs)} jobs of an earlier campaign in this folder are cancelled" in (tmp_path / "log").read_text()
    assert set(states) == {"CANCELLED"}
    after = ended_runs(out)
    assert len(after) == 24 and {place: after[place] for place in before} == before
