"""metrics.json of many runs, in as many processes as there are cores.

The processes are of this module (`python -m`), not of multiprocessing: that would import the program of a caller, who may be a
notebook or a script without `if __name__ == "__main__"`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

from testbed.campaigns.side_by_side import usable_cores
from testbed.programs import python_path

IN_PROCESS = 2  # so few runs are not worth the start of a process, which takes a second


class Processes:
    """The processes that measure, each started when it is needed first. They stay for further calls until the block ends: their
    imports take as long as the measurement of several runs."""

    def __init__(self) -> None:
        self._idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None) -> None:
        with suppress(Empty):
            while True:
                end(self._idle.get_nowait())

    def take(self) -> "subprocess.Popen[str]":
        """An idle process; a new one if there is none."""
        with suppress(Empty):
            while True:
                process = self._idle.get_nowait()
                if process.poll() is None:
                    return process
                end(process)  # it was killed while it was idle
        argv = [sys.executable, "-P", "-m", "testbed.campaigns.measuring"]
        return subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": python_path()},
        )  # fmt: skip

    def give_back(self, process: "subprocess.Popen[str]") -> None:
        """The process is idle."""
        self._idle.put(process)


def measure_runs(runs: Iterable[Path], processes: Processes | None = None) -> dict[Path, str]:
    """Analyse the runs; returns the error of each that could not be analysed. DiskFullError if there is no room. `processes`:
    those of a caller that measures again and again."""
    runs = list(runs)
    if len(runs) <= IN_PROCESS:
        errors = {run: _measure(run) for run in runs}
    else:
        with nullcontext(processes) if processes else Processes() as used:
            errors = _in_processes(runs, used)
    return {run: error for run, error in errors.items() if error}


def _in_processes(runs: list[Path], processes: Processes) -> dict[Path, str]:
    waiting: SimpleQueue[Path] = SimpleQueue()
    for run in runs:
        waiting.put(run)
    errors, count = dict[Path, str](), min(len(runs), usable_cores())
    with ThreadPoolExecutor(count) as pool:
        for part in [pool.submit(_in_a_process, waiting, processes) for _ in range(count)]:
            errors |= part.result()
    return errors


def is_measured(run: Path) -> bool:
    """Whether the run has a readable metrics.json that is not older than run.json."""
    metrics = run / "metrics.json"
    try:
        json.loads(metrics.read_text())
    except (OSError, ValueError):
        return False
    return metrics.stat().st_mtime >= (run / "run.json").stat().st_mtime


def _in_a_process(waiting: "SimpleQueue[Path]", processes: Processes) -> dict[Path, str]:
    """Let one process measure runs until none is waiting."""
    from record.errors import DiskFullError

    errors: dict[Path, str] = {}
    process = processes.take()
    assert process.stdin is not None and process.stdout is not None
    with suppress(Empty):
        while True:
            run = waiting.get_nowait()
            with suppress(BrokenPipeError):
                process.stdin.write(f"{json.dumps(str(run.absolute()))}\n")
                process.stdin.flush()
            answer = process.stdout.readline()
            if not answer:
                errors[run] = f"{run}: the process that measured it ended; see the lines above"
                end(process)
                return errors
            errors[run] = json.loads(answer)["error"]
            if json.loads(answer)["disk_full"]:
                end(process)
                raise DiskFullError(Path(json.loads(answer)["disk_full"]))
    processes.give_back(process)
    return errors


def end(process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    """Close the input of a process with pipes, which ends it, and wait for that."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    process.stdout.close()
    process.wait()


def _measure(run: Path) -> str:
    """Analyse one run; the error as one line, empty without one."""
    from analysis.metrics.analyse import analyse_run
    from record.errors import DiskFullError, RecordError

    try:
        analyse_run(run)
    except DiskFullError:
        raise
    except (RecordError, OSError) as problem:
        return str(problem)
    return ""


def main() -> None:
    """Measure the runs named on standard input, a JSON string on each line; answer with a line of JSON for each."""
    from record.errors import DiskFullError

    for line in sys.stdin:
        answer = {"error": "", "disk_full": ""}
        try:
            answer["error"] = _measure(Path(json.loads(line)))
        except DiskFullError as problem:
            answer["disk_full"] = str(problem.path)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
