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
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from testbed.campaigns.side_by_side import usable_cores
from testbed.programs import ROOT

IN_PROCESS = 2  # so few runs are not worth the start of a process, which takes a second


def measure_runs(runs: Iterable[Path]) -> dict[Path, str]:
    """Analyse the runs; returns the error of each that could not be analysed. DiskFullError if there is no room."""
    runs = list(runs)
    if len(runs) <= IN_PROCESS:
        errors = {run: _measure(run) for run in runs}
    else:
        waiting: SimpleQueue[Path] = SimpleQueue()
        for run in runs:
            waiting.put(run)
        errors, processes = {}, min(len(runs), usable_cores())
        with ThreadPoolExecutor(processes) as pool:
            for part in [pool.submit(_in_a_process, waiting) for _ in range(processes)]:
                errors |= part.result()
    return {run: error for run, error in errors.items() if error}


def is_measured(run: Path) -> bool:
    """Whether the run has a readable metrics.json that is not older than run.json."""
    metrics = run / "metrics.json"
    try:
        json.loads(metrics.read_text())
    except (OSError, ValueError):
        return False
    return metrics.stat().st_mtime >= (run / "run.json").stat().st_mtime


def _in_a_process(waiting: "SimpleQueue[Path]") -> dict[Path, str]:
    """Let one process measure runs until none is waiting."""
    from record.errors import DiskFullError

    errors: dict[Path, str] = {}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    argv = [sys.executable, "-P", "-m", "testbed.campaigns.measuring"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
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
                    break
                errors[run] = json.loads(answer)["error"]
                if json.loads(answer)["disk_full"]:
                    raise DiskFullError(Path(json.loads(answer)["disk_full"]))
        with suppress(BrokenPipeError):
            process.stdin.close()
    return errors


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
