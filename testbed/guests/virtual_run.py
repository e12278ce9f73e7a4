"""In a guest in virtual time: one run, of the scenario.json and run.json in its directory (virtual_time.py).

A file system in memory covers the directory at the same path; its content is copied to `--out` after the run. Writing to the
host's files during the run would take the host's time, on which a run in virtual time must not depend. For the same reason
`companion.py` runs, and the programs' files are read beforehand. Output: one JSON object a line, {"stage", "fraction",
"guest_s", "busy_s"}, then {"ended": outcome} or {"refused": message}.
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
REPORT_STEP = 0.1  # of the traffic, between two reports
MEMORY_FULL = "the guest's memory is full, where a run in virtual time keeps its captures; MANET_GUEST_MEMORY=4G gives it more"


def main() -> int:
    """Parse the command line that virtual_time.py writes, start companion.py, run the scenario."""
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
    """Run the scenario and report its end. The exit status: 0, or that of a refusal."""
    report = _Progress()
    report("begin")
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
    outcome = isolated_run("testbed.runs.run", options.seed, directory, report)
    ended = conclude(directory, outcome)
    report("end")
    status, error = ended.status, MEMORY_FULL if ended.error and "disk full" in ended.error else ended.error
    if lost := _copy_results(directory, options.out):
        status, error = "failed", lost
    _print({"ended": {"status": status, "error": error, "host_late": ended.host_late}})
    return 0


def _copy_results(directory: Path, out: Path) -> str | None:
    """Copy the results to `out`; return an error line or None. run.json, whose space is reserved, comes first."""
    try:
        _write(directory / "run.json", out / "run.json")
        shutil.copytree(directory, out, dirs_exist_ok=True, copy_function=_write)
    except shutil.Error as problems:
        (_source, _target, why), *more = problems.args[0]
        return _copy_error(directory, f"{why}, {len(more) + 1} files")
    except OSError as problem:
        return _copy_error(directory, problem.strerror)
    return None


def _copy_error(directory: Path, why: str) -> str:
    return f"{directory}: disk full or not to be written ({why}); free space on it, or give another folder with --out"


def _write(source: str | Path, target: str | Path) -> None:
    """Copy a file and wait until it is on the host's disk. Otherwise a 9p mount (init.sh: cache=mmap) keeps it in its cache
    and loses it silently on a full disk."""
    with Path(source).open("rb") as read, Path(target).open("wb") as written:
        shutil.copyfileobj(read, written)
        written.flush()
        os.fsync(written.fileno())


class _Progress:
    """Reports stages to the host; within a stage only each REPORT_STEP, because a report takes the guest's time."""

    def __init__(self) -> None:
        self._reported: tuple[str, float] = ("", 0.0)

    def __call__(self, stage: str, fraction: float | None = None) -> None:
        before, at = self._reported
        if stage == before and (fraction or 0.0) < at + REPORT_STEP:
            return
        self._reported = (stage, fraction or 0.0)
        up_s, idle_s = (float(word) for word in Path("/proc/uptime").read_text().split())
        _print({"stage": stage, "fraction": fraction, "guest_s": time.monotonic(), "busy_s": up_s - idle_s})


def _print(message: dict) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main())
