"""Snakemake carries out the batches of a round on a cluster, one for each job. (On one machine: local.py.)

The end of a campaign (time limit, Ctrl-C) cancels the jobs that wait in its queue, and waits for the running ones.
Snakemake's executor can only cancel all jobs. So Snakemake gets SIGTERM, after which it submits nothing more, and `scancel` ends
the jobs of this campaign that are pending; their names begin with a word of its folder.

A campaign that is killed ends nothing in order. Snakemake is then killed, too, and submits nothing more (PR_SET_PDEATHSIG). The
jobs stay in the queue; the next campaign in the folder, which has it alone, cancels them before it submits its own.
"""

import hashlib
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from testbed.campaigns import local
from testbed.campaigns.time_limit import TimeLimit
from testbed.errors import RunError, UsageError

SNAKEFILE = Path(__file__).parent / "workflow" / "Snakefile"
LIBRARIES = ("snakemake", "snakemake_executor_plugin_slurm")
RETRIES = 2  # of a batch whose node went down
NODES = 100  # jobs of a cluster at once
POLL_S = 1.0
CANCEL_S = 5.0  # between two looks for jobs to cancel: one may be submitted just now
STUCK_S = 600.0  # more than three status checks of the executor, the longest interval of which is 180 s
LOG = "snakemake.log"  # in the campaign's folder: all that Snakemake prints
SLOWER = 6  # a batch may take so many times its planned time: slow nodes, reruns


def missing() -> str:
    """The libraries that a cluster needs and .venv lacks, in words; empty with all of them."""
    return " and ".join(name for name in LIBRARIES if find_spec(name) is None)


def require_installed() -> None:
    """UsageError without Snakemake and its executor for Slurm."""
    if names := missing():
        raise UsageError(f"--cluster slurm: {names} is not installed; run ./setup.sh --cluster, or leave out --cluster")


def workflow(directory: Path, options: str, release: Callable[[], None], minutes: int) -> Callable[[Path], None]:
    """Carries out the batches in a folder as jobs of Slurm. `options`: more arguments of snakemake; `release` frees the lock of
    the campaign; `minutes`: the planned time of a batch."""

    def carry_out(folder: Path) -> None:
        queue = Queue.of(directory)
        queue.clear()
        _run(command(folder, directory, options, minutes, queue.name), directory, release, queue, TimeLimit.of(folder))

    return carry_out


def command(folder: Path, directory: Path, options: str, minutes: int, jobs: str) -> list[str]:
    """The command line of snakemake for one round. `jobs`: the word with which the names of the jobs begin."""
    config = {
        "folder": folder.resolve(), "campaign": directory.resolve(), "python": shlex.quote(sys.executable),
        "minutes": SLOWER * minutes, "retries": RETRIES,
    }  # fmt: skip
    return [
        sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE), "--directory", str(directory.resolve()), "--nolock",
        "--rerun-incomplete", "--rerun-triggers", "mtime", "--keep-going", "--quiet", "progress", "rules", "host", "reason",
        "--executor", "slurm", "--jobs", str(NODES), "--default-resources", "slurm_extra='--exclusive'", "--latency-wait", "30",
        "--slurm-jobname-prefix", jobs, *shlex.split(options), "--config", *(f"{key}={value}" for key, value in config.items()),
    ]  # fmt: skip


@dataclass(frozen=True)
class Queue:
    """The jobs in Slurm's queue whose names begin with `name`."""

    name: str

    @classmethod
    def of(cls, directory: Path) -> Self:
        """The jobs of the campaigns in a folder."""
        return cls(f"manet-{hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:32]}")

    def clear(self) -> None:
        """Cancel the jobs of an earlier campaign in the folder, which was killed, and wait for their end."""
        number, deadline = len(self._jobs()), time.monotonic() + STUCK_S
        if number:
            text = f"{number} jobs of an earlier campaign in this folder are cancelled; their complete runs are kept"
            print(f"manet campaign: {text}", file=sys.stderr, flush=True)
        while jobs := self._jobs():
            if time.monotonic() > deadline:
                raise RunError(f"jobs {', '.join(jobs)} of an earlier campaign do not end; end them with scancel")
            subprocess.run(["scancel", *jobs], check=False)
            time.sleep(POLL_S)

    def drain(self, process: subprocess.Popen[bytes]) -> None:
        """Cancel the pending jobs of this snakemake, and wait for the end of the running ones and of the process. Its handler of
        SIGTERM takes a lock that the process may hold itself: one that stays without jobs is killed."""
        text = "the jobs that wait in the queue are cancelled (Snakemake calls them failed), the others end"
        print(f"manet campaign: {text}", file=sys.stderr, flush=True)
        process.terminate()
        idle_s = 0.0
        while process.poll() is None:
            jobs = self._jobs()
            if pending := [number for number, state in jobs.items() if state == "PD"]:
                subprocess.run(["scancel", "--state=PENDING", *pending], check=False)
            idle_s = 0.0 if jobs else idle_s + CANCEL_S
            if idle_s > STUCK_S:
                process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(CANCEL_S)

    def _jobs(self) -> dict[str, str]:
        """The state of each job by its number."""
        argv = ["squeue", "--me", "--noheader", "--format=%i %t %j"]
        try:
            lines = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()
        except FileNotFoundError:
            raise UsageError("squeue: not found; start the campaign where Slurm's commands are, or leave out --cluster") from None
        rows = (line.split(maxsplit=2) for line in lines)
        return {number: state for number, state, name in rows if name.startswith(self.name)}


def _run(argv: list[str], directory: Path, release: Callable[[], None], queue: Queue, limit: TimeLimit) -> None:
    def interrupted(process: subprocess.Popen[bytes]) -> None:
        release()
        queue.drain(process)

    path = directory / LOG
    with path.open("ab") as log, local.process(["setpriv", "--pdeathsig", "KILL", *argv], interrupted, log) as process:
        if _outlasts(process, limit):
            queue.drain(process)
            return
        status = process.wait()
    if status:
        raise RunError(f"a batch did not end (snakemake: status {status}); see {path}, then start the campaign again")


def _outlasts(process: subprocess.Popen[bytes], limit: TimeLimit) -> bool:
    """Wait for the process or the limit; returns whether the limit came first."""
    while process.poll() is None:
        if limit.is_reached:
            return True
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)
    return False
