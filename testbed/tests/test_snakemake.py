"""Snakemake's lines of a round whose worker ends: errors while the campaign holds its folder, none after Ctrl-C. Its executor is
here the local one, in place of Slurm's (tests/slurm)."""

import argparse
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from testbed.campaigns import snakemake
from testbed.campaigns.folder import BATCHES, CampaignFolder
from testbed.campaigns.snakemake import command
from testbed.campaigns.time_limit import TimeLimit
from testbed.commands import campaign as verb
from testbed.errors import RunError, UsageError
from testbed.programs import ROOT

# in place of the worker: it begins, waits for the end, and ends as one that was interrupted
WORKER = "touch {0}/began; while ! test -e {0}/end; do sleep 0.05; done; exit 130\n"
LIMIT_S = 120
HERE = "--executor local --cores 1"


def needs_snakemake(test):
    skip = pytest.mark.skipif(bool(snakemake.missing()), reason="Snakemake is not installed: ./setup.sh --cluster")
    return pytest.mark.cluster(skip(test))


def ended(tmp_path: Path, interrupted: bool) -> subprocess.CompletedProcess[str]:
    """A round of one batch, whose worker ends with 130 after the campaign has freed its folder, or before."""
    out, (began, end, worker) = tmp_path / "out", (tmp_path / name for name in ("began", "end", "worker"))
    folder = out / BATCHES / "round-1"
    worker.write_text(WORKER.format(tmp_path))
    with CampaignFolder.claimed(out) as campaign, (tmp_path / "stderr").open("w+") as stderr:
        folder.mkdir(parents=True)
        (folder / "batch-1.json").write_text("{}")
        argv = [f"python=sh {worker}" if word.startswith("python=") else word for word in command(folder, out, HERE, 1, "jobs")]
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr) as process:
            deadline = time.monotonic() + LIMIT_S
            while not began.exists() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            if interrupted:
                campaign.release()
            end.touch()
    return subprocess.CompletedProcess(argv, process.returncode, None, (tmp_path / "stderr").read_text())


@needs_snakemake
@pytest.mark.parametrize("interrupted", [True, False])
def test_a_worker_that_ends_with_its_campaign_is_no_error_of_snakemake(tmp_path, interrupted):
    done = ended(tmp_path, interrupted)
    (log,) = (tmp_path / "out" / ".snakemake" / "log").iterdir()
    assert done.returncode == 1 and "CalledProcessError" in log.read_text()
    assert ("CalledProcessError" in done.stderr) == ("WorkflowError" in done.stderr) == (not interrupted)


CAMPAIGN = """
import sys
from pathlib import Path
from testbed.campaigns import snakemake
from testbed.campaigns.time_limit import TimeLimit
folder, out, worker = map(Path, sys.argv[1:4])
argv = snakemake.command(folder, out, sys.argv[4], 1, "jobs")
argv = [f"python=sh {worker}" if word.startswith("python=") else word for word in argv]
snakemake._run(argv, out, lambda: None, snakemake.Queue("none"), TimeLimit())
"""


def snakemakes(folder: Path) -> list[str]:
    """The processes of Snakemake in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            words = entry.read_bytes().decode().split("\0")
            if "snakemake" in words and str(folder) in words:
                found.append(entry.parent.name)
    return found


@needs_snakemake
def test_snakemake_ends_with_a_campaign_that_is_killed(tmp_path):
    """It would carry out the rest of the round, or submit jobs to a cluster, beside the next campaign in the folder."""
    out, (began, end, worker) = tmp_path / "out", (tmp_path / name for name in ("began", "end", "worker"))
    folder = out / BATCHES / "round-1"
    folder.mkdir(parents=True)
    (folder / "batch-1.json").write_text("{}")
    worker.write_text(WORKER.format(tmp_path))
    argv = [sys.executable, "-P", "-c", CAMPAIGN, str(folder), str(out), str(worker), HERE]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)}) as campaign:
        deadline = time.monotonic() + LIMIT_S
        while not began.exists() and campaign.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        try:
            assert snakemakes(out) != []
            campaign.kill()
            campaign.wait()
            while snakemakes(out):
                assert time.monotonic() < deadline
                time.sleep(0.05)
        finally:
            end.touch()


def test_a_cluster_without_snakemake_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(snakemake, "LIBRARIES", ("snakemake_that_nobody_has",))
    parser = argparse.ArgumentParser()
    verb.add(parser.add_subparsers())
    options = parser.parse_args(["campaign", "hv-fig3", "--quick", "--cluster", "slurm", "--out", str(tmp_path / "out")])
    with pytest.raises(UsageError, match=r"^--cluster slurm: snakemake_that_nobody_has is not installed; run ./setup.sh --"):
        verb.run(options)
    assert not (tmp_path / "out").exists()


@needs_snakemake
def test_a_campaign_keeps_what_snakemake_prints_in_a_log_that_its_error_names(tmp_path, capfd):
    out, worker = tmp_path / "out", tmp_path / "worker"
    folder = out / BATCHES / "round-1"
    worker.write_text("exit 3\n")
    with CampaignFolder.claimed(out):
        folder.mkdir(parents=True)
        (folder / "batch-1.json").write_text("{}")
        argv = [f"python=sh {worker}" if word.startswith("python=") else word for word in command(folder, out, HERE, 1, "jobs")]
        with pytest.raises(RunError, match=rf"see {out}/{snakemake.LOG}, then start the campaign again"):
            snakemake._run(argv, out, lambda: None, snakemake.Queue("none"), TimeLimit())
    assert capfd.readouterr().err == ""
    assert "CalledProcessError" in (out / snakemake.LOG).read_text()
