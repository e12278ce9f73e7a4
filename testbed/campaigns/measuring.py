"""metrics.json of many runs, in as many processes as there are cores."""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from testbed.campaigns.side_by_side import usable_cores

IN_PROCESS = 2  # so few runs are not worth the start of a process, which takes a second


def measure_runs(runs: Iterable[Path], done: Callable[[Path], None] = lambda _run: None) -> dict[Path, str]:
    """Analyse the runs; returns the error of each that could not be analysed. `done` is called after each."""
    runs, errors = list(runs), {}
    if len(runs) <= IN_PROCESS:
        for run in runs:
            errors[run] = _measure(run)
            done(run)
    else:
        with ProcessPoolExecutor(min(len(runs), usable_cores()), mp_context=get_context("forkserver")) as pool:
            found = {pool.submit(_measure, run): run for run in runs}
            for future in as_completed(found):
                errors[found[future]] = future.result()
                done(found[future])
    return {run: error for run, error in errors.items() if error}


def _measure(run: Path) -> str:
    """Analyse one run; the error as one line, empty without one."""
    from analysis.errors import AnalysisError, DiskFullError
    from analysis.metrics import analyse_run

    try:
        analyse_run(run)
    except DiskFullError:
        raise
    except (AnalysisError, OSError) as problem:
        return str(problem)
    return ""
