"""Snakemake carries out the batches of a round: here one after another, or on a cluster one for each job."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from testbed.campaigns.side_by_side import usable_cores
from testbed.errors import RunError
from testbed.programs import ROOT

SNAKEFILE = Path(__file__).parent / "workflow" / "Snakefile"
CLUSTERS = ("slurm",)
RETRIES = 2  # of a batch whose node went down
NODES = 100  # jobs of a cluster at once
SLOWER = 6  # a batch may take so many times its planned time: slow nodes, reruns


def workflow(
    directory: Path, cluster: str | None, options: str, release: Callable[[], None], minutes: int
) -> Callable[[Path], None]:
    """Carries out the batches in a folder. `options`: more arguments of snakemake; `minutes`: the planned time of a batch;
    `release` frees the campaign's lock, by which workers of this machine learn that the campaign ends."""
    return lambda folder: _run(command(folder, directory, cluster, options, minutes), directory, release)


def command(folder: Path, directory: Path, cluster: str | None, options: str, minutes: int) -> list[str]:
    """The command line of snakemake for one round."""
    config = {
        "folder": folder.resolve(), "campaign": directory.resolve(),
        "python": shlex.quote(sys.executable), "minutes": SLOWER * minutes,
        "retries": RETRIES if cluster else 0, "threads": 1 if cluster else usable_cores(),
        "driver": "" if cluster else f"--driver {shlex.quote(str(directory.resolve()))}",
    }  # fmt: skip
    where = ["--cores", str(usable_cores())]
    if cluster == "slurm":
        where = [
            "--executor",
            "slurm",
            "--jobs",
            str(NODES),
            "--default-resources",
            "slurm_extra='--exclusive'",
            "--latency-wait",
            "30",
        ]
    return [
        sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE), "--directory", str(directory.resolve()), "--nolock",
        "--rerun-incomplete", "--rerun-triggers", "mtime", "--keep-going", "--quiet", "progress", "rules", "host", "reason",
        *where, *shlex.split(options),
        "--config", *(f"{key}={value}" for key, value in config.items()),
    ]  # fmt: skip


def _run(argv: list[str], directory: Path, release: Callable[[], None]) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    # a session of its own: Ctrl-C is for this program, which ends the workers in order
    with subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a library may have replaced it
        try:
            status = process.wait()
        except KeyboardInterrupt:
            release()  # the workers end their runs and keep what is complete
            process.wait()
            raise
    if status:
        log = f"see the lines above and {directory}/.snakemake/log, then start the campaign again"
        raise RunError(f"a batch did not end (snakemake: status {status}); {log}")
