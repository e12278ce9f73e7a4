"""Snakemake's lines of a round whose worker ends: errors while the campaign holds its folder, none after Ctrl-C."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from testbed.campaigns.folder import BATCHES, Folder
from testbed.campaigns.snakemake import _run, command

# in place of the worker: it begins, waits for the end, and ends as one that was interrupted
WORKER = "touch {0}/began; while ! test -e {0}/end; do sleep 0.05; done; exit 130\n"
LIMIT_S = 120


def ended(tmp_path: Path, interrupted: bool) -> subprocess.CompletedProcess[str]:
    """A round of one batch, whose worker ends with 130 after the campaign has freed its folder, or before."""
    out, (began, end, worker) = tmp_path / "out", (tmp_path / name for name in ("began", "end", "worker"))
    folder = out / BATCHES / "round-1"
    worker.write_text(WORKER.format(tmp_path))
    with Folder.claimed(out) as campaign, (tmp_path / "stderr").open("w+") as stderr:
        folder.mkdir(parents=True)
        (folder / "batch-1.json").write_text("{}")
        argv = [f"python=sh {worker}" if word.startswith("python=") else word for word in command(folder, out, None, "", 1)]
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr) as process:
            deadline = time.monotonic() + LIMIT_S
            while not began.exists() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            if interrupted:
                campaign.release()
            end.touch()
    return subprocess.CompletedProcess(argv, process.returncode, None, (tmp_path / "stderr").read_text())


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_worker_that_ends_with_its_campaign_is_no_error_of_snakemake(tmp_path, interrupted):
    done = ended(tmp_path, interrupted)
    (log,) = (tmp_path / "out" / ".snakemake" / "log").iterdir()
    assert done.returncode == 1 and "CalledProcessError" in log.read_text()
    assert ("CalledProcessError" in done.stderr) == ("WorkflowError" in done.stderr) == (not interrupted)


def test_ctrl_c_while_snakemake_is_being_started_ends_it_in_order(tmp_path, monkeypatch):
    """It has a session of its own, so nobody else would end it. `end`: what the workers see of a freed folder."""

    class Popen(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    argv = ["sh", "-c", f"touch {tmp_path}/began; while ! test -e {tmp_path}/end; do sleep 0.05; done"]
    with pytest.raises(KeyboardInterrupt):
        _run(argv, tmp_path, (tmp_path / "end").touch)
    assert (tmp_path / "began").exists() and (tmp_path / "end").exists()
