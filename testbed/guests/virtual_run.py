"""In a guest in virtual time: one run, of the scenario.json in `--inputs` (virtual_time.py).

The run's directory is RUN, in memory; its content is copied to `--out` after the run. Until then nothing is written to the
host's files, because that would take the host's time, on which a run in virtual time must not depend. A guest that has its files
in memory (`--mount`) also reads none of the host's, and mounts `--out` only then. In any other guest `companion.py` runs, and the
programs' files are read beforehand. RUN has the same name for each run, and the guest's record of the run only what the guest
knows: names and dates of other lengths would take other times.

Output: one JSON object a line, {"stage", "fraction", "guest_s", "busy_s"}, then {"ended": outcome, "record": fields of run.json}
or {"refused": message}.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

RUN = Path("/manet/run")
MOUNT = "trans=virtio,version=9p2000.L,msize=500000,cache=mmap"  # for whole files, each of which is synced
COMPANION = Path(__file__).with_name("companion.py")
REPORT_STEP = 0.1  # of the traffic, between two reports
OF_THE_HOST = ("format", "status", "error", "ended")  # fields of run.json that the host writes itself
MEMORY_FULL = "the guest's memory is full, where a run in virtual time keeps its captures; MANET_GUEST_MEMORY=4G gives it more"


def main() -> int:
    """Parse the command line that virtual_time.py writes, start companion.py, run the scenario."""
    parser = argparse.ArgumentParser(prog="testbed.guests.virtual_run", description="started by the testbed itself")
    parser.add_argument("--inputs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--mount", metavar="TAG", help="mount this 9p export at --out after the run")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    if options.mount:
        return carry_out(options)
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
    from record.run_file import RunFile
    from scenarios.scenario import Scenario
    from testbed.errors import UsageError
    from testbed.host.namespace import mount_tmpfs
    from testbed.runs import metadata
    from testbed.runs.run import conclude, isolated_run, require

    scenario = Scenario.from_json((options.inputs / "scenario.json").read_text())
    try:
        require(scenario, options.seed)
    except UsageError as problem:
        _print({"refused": str(problem)})
        return problem.exit_status
    RUN.mkdir(parents=True, exist_ok=True)
    mount_tmpfs(RUN)
    shutil.copyfile(options.inputs / "scenario.json", RUN / "scenario.json")
    nodes = len(scenario.station_names()) + len(scenario.host_names())
    RunFile.create(RUN / "run.json", nodes, kernel=metadata.kernel())
    outcome = isolated_run("testbed.runs.run", options.seed, RUN, report)
    ended = conclude(RUN, outcome)
    report("end")
    status, error = ended.status, MEMORY_FULL if ended.error and "disk full" in ended.error else ended.error
    if options.mount:
        options.out.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "9p", "-o", MOUNT, options.mount, options.out], check=True)
    if lost := copy_results(RUN, options.out):
        status, error = "failed", lost
    record = {key: value for key, value in RunFile.open(RUN / "run.json").fields.items() if key not in OF_THE_HOST}
    _print({"ended": {"status": status, "error": error, "host_late": ended.host_late}, "record": record})
    return 0


def copy_results(directory: Path, out: Path) -> str | None:
    """Copy the results to `out`, except the record; return an error line or None."""
    lost = []
    for path in sorted(directory.rglob("*")):
        target = out / path.relative_to(directory)
        try:
            if path.is_dir():
                target.mkdir(exist_ok=True)
            elif path != directory / "run.json":
                _write(path, target)
        except OSError as problem:
            lost.append(problem.strerror)
    if not lost:
        return None
    why = f"{lost[0]}, {len(lost)} files"
    return f"{directory}: disk full or not to be written ({why}); free space on it, or give another folder with --out"


def _write(source: Path, target: Path) -> None:
    """Copy a file and wait until it is on the host's disk. Otherwise a 9p mount (MOUNT) keeps it in its cache and loses it
    silently on a full disk."""
    with source.open("rb") as read, target.open("wb") as written:
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


def _print(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main())
