"""In a guest in virtual time: one run, of the scenario.json and run.json that stand in its directory (virtual_time.py).

The directory is covered by a file system in memory at the same path, and copied to `--out` when the run has ended: writing to
this machine's files takes as long as that machine likes, which is nothing that may happen while a run's clock goes.
For the same reason `companion.py` runs, and the programs' files are read beforehand. On stdout one JSON object a line:
{"stage", "fraction", "guest_s", "busy_s"}, then {"ended": outcome} or {"refused": words}.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

COMPANION = Path(__file__).with_name("companion.py")
SAY_EVERY = 0.1  # of the traffic
MEMORY_FULL = "the guest's memory is full, where a run in virtual time keeps its captures; MANET_GUEST_MEMORY=4G gives it more"


def main() -> int:
    parser = argparse.ArgumentParser(prog="testbed.guests.virtual_run", description="started by the testbed itself")
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    with subprocess.Popen([sys.executable, "-I", "-S", COMPANION]) as companion:
        try:
            return carry_out(options)
        finally:
            companion.kill()


def carry_out(options: argparse.Namespace) -> int:
    """The exit status."""
    say = _Say()
    say("begin")
    for file in options.files:
        file.read_bytes()
    from scenarios.scenario import Scenario
    from testbed.errors import UsageError
    from testbed.host.namespace import mount_tmpfs
    from testbed.runs import metadata
    from testbed.runs.record import RunRecord
    from testbed.runs.run import conclude, isolated_run, require

    directory = options.directory
    scenario = Scenario.from_json((directory / "scenario.json").read_text())
    try:
        require(scenario, options.seed)
    except UsageError as problem:
        _print({"refused": str(problem)})
        return problem.exit_status
    mount_tmpfs(directory)
    shutil.copytree(options.out, directory, dirs_exist_ok=True)
    RunRecord.open(directory / "run.json").update(kernel=metadata.kernel(), started=metadata.now())
    outcome = isolated_run("testbed.runs.run", options.seed, directory, say)
    ended = conclude(directory, outcome)
    say("end")
    status, error = ended.status, MEMORY_FULL if ended.error and "disk full" in ended.error else ended.error
    if lost := _copied(directory, options.out):
        status, error = "failed", lost
    _print({"ended": {"status": status, "error": error, "host_late": ended.host_late}})
    return 0


def _copied(directory: Path, out: Path) -> str | None:
    """The results to where they last; what went wrong, in a line. run.json, which has its space already, comes first."""
    try:
        _write(directory / "run.json", out / "run.json")
        shutil.copytree(directory, out, dirs_exist_ok=True, copy_function=_write)
    except shutil.Error as problems:
        (_source, _target, why), *more = problems.args[0]
        return _not_kept(directory, f"{why}, {len(more) + 1} files")
    except OSError as problem:
        return _not_kept(directory, problem.strerror)
    return None


def _not_kept(directory: Path, why: str) -> str:
    return f"{directory}: disk full or not to be written ({why}); free space on it, or give another folder with --out"


def _write(source: str | Path, target: str | Path) -> None:
    """Until it stands on the host's disk: what a 9p mount has only taken into its cache (init.sh: cache=mmap) is lost without a
    word when there is no room for it."""
    with Path(source).open("rb") as read, Path(target).open("wb") as written:
        shutil.copyfileobj(read, written)
        written.flush()
        os.fsync(written.fileno())


class _Say:
    """Tells the host of stages; seldom within one, because telling takes the guest's time too."""

    def __init__(self) -> None:
        self._said: tuple[str, float] = ("", 0.0)

    def __call__(self, stage: str, fraction: float | None = None) -> None:
        before, at = self._said
        if stage == before and (fraction or 0.0) < at + SAY_EVERY:
            return
        self._said = (stage, fraction or 0.0)
        up_s, idle_s = (float(word) for word in Path("/proc/uptime").read_text().split())
        _print({"stage": stage, "fraction": fraction, "guest_s": time.monotonic(), "busy_s": up_s - idle_s})


def _print(message: dict) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main())
