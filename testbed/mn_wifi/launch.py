"""`manet script`: a Mininet-WiFi script in a run of its own.

`run_script` is the parent's half. `inside` is the half in the new namespaces: it executes the file as Python would, with
`mn_wifi` meaning testbed.mn_wifi, and takes down any network that the script left.
"""

import os
import runpy
import shutil
import signal
import sys
import threading
import traceback
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from mininet.log import lg

from testbed import mn_wifi
from testbed.errors import ManetError, UsageError
from testbed.host.requirements import require_for_runs
from testbed.mn_wifi.session import NeedsGuest, Session, begin, outcome_of
from testbed.programs import INSTALLATION, ROOT, Programs
from testbed.runs.init import ReportPipe
from testbed.runs.run import KILLED, Interrupted, claimed, isolated_run
from testbed.runs.verdict import VOID_REMEDY


@dataclass(frozen=True)
class ScriptEnd:
    """`exit_status` is the script's own, 1 or 2 if it ended by an error, 1 if a network of it was void; `error` is one line, None
    where it was shown already."""

    exit_status: int
    directory: Path
    error: str | None = None
    interrupted: bool = False
    moves_for: str | None = None  # what it asks for that this machine lacks: execute it in a guest


def run_script(
    script: Path, arguments: list[str], *, overrides: tuple[str, ...] = (), seed: int = 1, directory: Path | None = None,
    may_move: bool = False,
) -> ScriptEnd:  # fmt: skip
    """Execute the file; it has the terminal. Results are kept in `directory` (default: results/script/<name>-<time>).
    `may_move`: the caller executes it in a guest if it needs one."""
    if not script.is_file():
        raise UsageError(f"{script}: there is no such file; give the path of a Mininet-WiFi script")
    if script.suffix == ".toml":  # much of TOML is Python, too, and does nothing there
        raise UsageError(
            f"{script}: is a scenario, no script; ./manet run {script} measures it, ./manet cli {script} is a prompt on it"
        )
    require_for_runs()
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    directory = (directory or INSTALLATION.results() / "script" / f"{script.stem}-{stamp}").resolve()
    with claimed(directory):
        end = isolated_run(
            f"{__package__}.launch", seed, directory, _say, terminal=True,
            script=str(script), words=arguments, overrides=list(overrides), may_move=may_move,
            python_path=os.environ.get("PYTHONPATH", ""),  # a run has none but this checkout
        )  # fmt: skip
    if not end:
        return ScriptEnd(1, directory, KILLED)
    if end.get("moves_for"):
        shutil.rmtree(directory)  # no network was up
    return ScriptEnd(end["exit_status"], directory, end["error"], end["interrupted"], end.get("moves_for"))


def _say(stage: str, _fraction: float | None) -> None:
    """Print a stage. Ctrl-C belongs to the script from its first line on, as under Python itself: `manet` ignores it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if stage != STARTED:
        print(f"manet: {stage}", file=sys.stderr, flush=True)


# --- in the run's own namespaces --------------------------------------------------------------------------------------

STARTED = "script"
INSTALL = (
    f"scripts run by {ROOT / '.venv/bin/python'}: apt-get install python3-{{package}}, or {ROOT / '.venv/bin/pip'} install "
    "{package} (packages may be named otherwise), or name its folder in PYTHONPATH"
)


def inside(arguments: dict[str, Any], report: ReportPipe) -> int:
    """Called by testbed.runs.init."""
    script = Path(arguments["script"])
    session = begin(
        Session(
            script, Path(arguments["directory"]), arguments["seed"], tuple(arguments["overrides"]),
            Programs.from_arguments(arguments["programs"]), lambda stage, fraction=None: report.send(stage=stage),
            may_move=arguments["may_move"],
        )
    )  # fmt: skip
    problem: BaseException | None = None
    try:
        _take_signals()
        report.send(stage=STARTED)
        _execute(script, arguments["words"], arguments["python_path"])
    except BaseException as raised:  # whatever it is: the network is taken down first
        problem = raised
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    outcome = outcome_of(problem)
    try:
        session.down(outcome)
    except ManetError as at_the_end:
        problem = at_the_end if outcome["status"] == "complete" else problem  # also after sys.exit(0)
    if isinstance(problem, NeedsGuest):
        sys.stdout.flush()
        report.send(exit_status=0, error=None, interrupted=False, moves_for=problem.what)
        return 0
    exit_status, error = _script_exit(problem, script, bool(session.built))
    if exit_status == 0 and error is None and session.void():
        folders = " and ".join(folder.name for folder in session.void())
        exit_status, error = 1, f"{script.name}: void ({folders}), so that its figures do not count; {VOID_REMEDY}"
    sys.stdout.flush()
    report.send(exit_status=exit_status, error=error, interrupted=isinstance(problem, KeyboardInterrupt | Interrupted))
    return exit_status


def _take_signals() -> None:
    """Ctrl-C raises KeyboardInterrupt; the end of the lifeline (testbed/runs/isolation.py) interrupts the script anywhere."""

    def end(_number: int, _frame: object) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        raise Interrupted

    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def _execute(script: Path, words: list[str], python_path: str) -> None:
    """Execute the file as `python3 FILE WORDS` would, with the caller's PYTHONPATH, also for the stations' programs."""
    os.environ[mn_wifi.IN_A_RUN] = "1"
    os.environ["PYTHONPATH"] = python_path
    sys.argv = [str(script), *words]
    sys.path[:0] = [str(script.resolve().parent), *filter(None, python_path.split(os.pathsep))]
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    lg.handlers[0].setStream(sys.stdout)  # Mininet answers on standard error; an answer belongs on standard output
    runpy.run_path(str(script), run_name="__main__")


def _script_exit(problem: BaseException | None, script: Path, built: bool = True) -> tuple[int, str | None]:
    """Exit status and the error line for the user. An exception of the script itself is printed with its traceback."""
    if problem is None:
        return 0, None if built else f"{script}: the script made no network (it called no net.build()); see examples/adhoc.py"
    if isinstance(problem, SystemExit):
        if problem.code is None or isinstance(problem.code, int):
            return problem.code or 0, None
        return 1, str(problem.code)
    if isinstance(problem, KeyboardInterrupt | Interrupted):
        return 130, None
    if isinstance(problem, ManetError):
        return problem.exit_status, f"{_script_line(problem, script)}{problem}"
    if isinstance(problem, ModuleNotFoundError) and problem.name:
        package = problem.name.partition(".")[0]
        return 1, f"{_script_line(problem, script)}there is no module {problem.name}; {INSTALL.format(package=package)}"
    lines = traceback.TracebackException.from_exception(problem)
    own = [number for number, frame in enumerate(lines.stack) if frame.filename == str(script)]
    lines.stack = traceback.StackSummary.from_list(lines.stack[own[0] :] if own else lines.stack)
    print("".join(lines.format()), end="", file=sys.stderr, flush=True)
    return 1, None


def _script_line(problem: BaseException, script: Path) -> str:
    """The innermost line of the script that led to the exception, as a prefix of the message."""
    frames = traceback.extract_tb(problem.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(script)]
    return f"{script.name}: line {lines[-1]}: " if lines else f"{script.name}: "
