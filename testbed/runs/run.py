"""One run of one scenario with one seed: a directory in, the same directory filled (formats/results.md).

`run_scenario` runs in the parent: it refuses a scenario that cannot run, claims the directory, starts the isolated process
(testbed.runs.isolation), forwards progress and returns the outcome. `inside` runs in the new namespaces: a `with` block of
stages, which are entered from top to bottom and undone from bottom to top.
"""

import errno
import hashlib
import os
import secrets
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record import manifest
from record.errors import RecordError, RunFileError
from record.files import write_atomic
from record.folder_lock import lock
from record.run_file import RunFile
from scenarios.scenario import Scenario
from testbed.errors import HostLateError, ManetError, UsageError
from testbed.host import cgroup
from testbed.host.requirements import require_for_runs
from testbed.programs import BUILT, Programs
from testbed.runs import metadata, preflight
from testbed.runs.background import in_background
from testbed.runs.init import ReportPipe
from testbed.runs.isolation import Isolated
from testbed.runs.outputs import RESERVE_BYTES, ROOM
from testbed.runs.verdict import TrafficStart, verdict_of
from testbed.stages import kernel_tcp
from testbed.stages.site import Site

Progress = Callable[[str, float | None], None]

ROUTES_LEAD_S = 0.1  # per station: the routes are read so long before traffic_at, which takes a tenth of it on an idle machine
KILLED = "the run's own process was killed, or ended unasked (log/run.log); what it had captured is kept; run it again"


@dataclass(frozen=True)
class RunResult:
    """`status` is run.json's, `verdict` verdict.json's (None if the medium never wrote one), `error` one line with the remedy."""

    status: str
    verdict: str | None
    directory: Path
    error: str | None
    host_late: bool = False  # the only reason of the failure: a rerun may succeed


def run_scenario(
    scenario: Scenario,
    seed: int,
    directory: Path,
    *,
    progress: Progress = lambda _stage, _fraction: None,
    cancel: threading.Event | None = None,
    programs: Programs = BUILT,
    allow_internet: bool = False,
    **record: object,
) -> RunResult:
    """Run `scenario` into `directory`; blocks until everything is torn down. Safe from several threads at once.

    A scenario whose hosts reach the real network is refused unless `allow_internet`. `record` is written into run.json as it is
    (experiment, cell, variant, axes). A directory that holds a run is refused (UsageError); a run that fails is a result.
    KeyboardInterrupt ends the run in order and is raised again; `cancel` does the same for a call in another thread, which then
    returns with status "interrupted".
    """
    require(scenario, seed, programs, allow_internet=allow_internet)
    directory = directory.resolve()
    with claimed(directory):
        prepare(scenario, seed, directory, record)
        reach = scenario.reaches_internet
        outcome = isolated_run("testbed.runs.run", seed, directory, progress, cancel, programs=programs, reach_outside=reach)
        return conclude(directory, outcome)


def require(scenario: Scenario, seed: int, programs: Programs = BUILT, *, allow_internet: bool = False) -> None:
    """UsageError for the first requirement that this machine lacks, or the first setting that a program would refuse."""
    require_for_runs(programs=programs)
    preflight.check(scenario, seed, programs, allow_internet=allow_internet)


@contextmanager
def claimed(directory: Path) -> Iterator[None]:
    """Make the directory, and lock it against a second run until the block ends. UsageError if it is in use, holds a
    run already, or its disk is full."""
    descriptor = lock(directory, "another run is writing there now; wait for it, or give another folder with --out")
    try:
        if (directory / "run.json").exists():
            raise UsageError(f"{directory}: holds a run already; remove it, or give another folder with --out")
        free = shutil.disk_usage(directory).free
        if free < 2 * RESERVE_BYTES:
            raise UsageError(f"{directory}: disk full ({free >> 10} KiB free); {ROOM}")
        yield
    finally:
        os.close(descriptor)


def isolated_run(
    module: str,
    seed: int,
    directory: Path,
    progress: Progress,
    cancel: threading.Event | None = None,
    *,
    programs: Programs = BUILT,
    terminal: bool = False,
    reach_outside: bool = False,
    requests: int | None = None,
    **more: object,
) -> dict[str, Any]:
    """Run `module.inside` in its own namespaces and return the outcome that it reported, empty if it was killed; `more` is added
    to its arguments. `reach_outside`: it may enter this process's network namespace. `requests`: as of Isolated."""
    arguments = {"seed": seed, "directory": str(directory), "programs": programs.as_arguments(), **more}
    outcome: dict[str, Any] = {}
    run_id = _new_run_id(directory)
    with Isolated(
        run_id, directory, module, arguments, terminal=terminal, reach_outside=reach_outside, requests=requests
    ) as isolated:
        with _cancelling(isolated, cancel):
            for message in isolated.reports():
                if "stage" in message:
                    progress(message["stage"], message.get("fraction"))
                else:
                    outcome = message
        isolated.wait()
    return outcome


def _new_run_id(directory: Path) -> str:
    """A name of letters, digits and `-`, unique on this machine, for a file under /run/manet and a cgroup."""
    digest = hashlib.sha256(os.fsencode(directory)).hexdigest()[:8]
    return f"run-{digest}-{os.getpid()}-{secrets.token_hex(3)}"


@contextmanager
def _cancelling(isolated: Isolated, cancel: threading.Event | None) -> Iterator[None]:
    """Interrupt the run as soon as `cancel` is set."""
    if cancel is None:
        yield
        return

    def follow(over: threading.Event) -> None:
        while not over.is_set():
            if cancel.wait(0.2):
                isolated.let_go()
                return

    with in_background("cancel", follow):
        yield


def prepare(scenario: Scenario, seed: int, directory: Path, record: Mapping[str, object]) -> None:
    """Write scenario.json and run.json into the run's directory."""
    write_atomic(directory / "scenario.json", scenario.to_json())
    # the id is that of the results, unique on all machines: two directories with the same id are copies
    judged = kernel_tcp.without_root(scenario) if scenario.clock == "real" else None
    fields = {"id": secrets.token_hex(8), "experiment": None, "cell": None, "variant": "", "axes": {}, **record}
    RunFile.create(
        directory / "run.json",
        len(scenario.station_names()) + len(scenario.host_names()),
        **fields,
        seed=seed,
        started=metadata.now(),
        ended=None,
        epoch_ns=None,
        routing_ns=None,
        traffic_ns=None,
        commit=metadata.commit(),
        kernel=metadata.kernel(),
        tcp={name: tcp.in_full for name, tcp in scenario.tcp_of_flows().items()},
        versions=metadata.versions(scenario.routing.protocol, scenario.routing.DESCRIPTION),
        mss=scenario.mss,
        mtu={},
        sysctls={},
        argv=sys.argv,
        host=metadata.host(),
        clock={"kind": scenario.clock},
        **({} if judged is None else {"without_root": judged.report()}),
    )


def conclude(directory: Path, outcome: dict[str, Any]) -> RunResult:
    """Write the manifest, and for a killed run the outcome, which any other has written into run.json itself."""
    if not outcome:
        outcome = {"status": "failed", "error": KILLED}
        write_end(directory, outcome)
    try:
        manifest.write(directory)
    except (OSError, RecordError) as problem:
        outcome = {"status": "failed", "error": str(problem)}
        with suppress(OSError):
            write_end(directory, outcome)
    late = outcome.get("host_late", False)
    return RunResult(outcome["status"], verdict_of(directory), directory, outcome["error"], late)


def write_end(directory: Path, outcome: dict[str, Any]) -> None:
    """Add the outcome and the end time to run.json."""
    record = RunFile.open(directory / "run.json")
    record.update(**outcome, ended=metadata.now())
    record.close()


# --- in the run's own namespaces --------------------------------------------------------------------------------------


ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Interrupted(BaseException):
    """`manet` interrupted the run, or the process received a signal."""


def inside(arguments: dict[str, Any], report: ReportPipe) -> int:
    """Called by testbed.runs.init."""
    return report_outcome(Path(arguments["directory"]), report, lambda: _stages(site_of(arguments), report))


def report_outcome(directory: Path, report: ReportPipe, work: Callable[[], None]) -> int:
    """Do the work and report its outcome, also after any error or signal except SIGKILL; returns the exit status."""
    outcome: dict[str, Any] = {"status": "complete", "error": None}
    try:
        try:
            raise_on_signals()
            work()
        finally:
            ignore_signals()  # nothing may interrupt the record of the outcome
    except Interrupted:
        outcome = {"status": "interrupted", "error": "interrupted; what was captured is kept"}
    except (ManetError, RunFileError) as problem:
        outcome = {"status": "failed", "error": str(problem), "host_late": isinstance(problem, HostLateError)}
    except OSError as problem:
        outcome = {"status": "failed", "error": _os_error(problem, directory)}
    except Exception as problem:  # a bug: the record says so, the log has the trace
        traceback.print_exc()
        outcome = {"status": "failed", "error": f"bug in the testbed: {problem!r}; see {directory}/log/run.log"}
    write_end(directory, outcome)
    if outcome["error"]:
        with suppress(OSError), (directory / "log" / "run.log").open("a") as log:
            log.write(f"{outcome['status']}: {outcome['error']}\n")
    report.send(**outcome)
    return 0 if outcome["status"] == "complete" else 1


def raise_on_signals() -> None:
    """The first signal ends the run; later ones are ignored."""

    def interrupt(_number: int, _frame: object) -> None:
        ignore_signals()
        raise Interrupted

    for number in ENDING_SIGNALS:
        signal.signal(number, interrupt)


def ignore_signals() -> None:
    """Ignore ENDING_SIGNALS while stages undo themselves."""
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def site_of(arguments: dict[str, Any]) -> Site:
    """The run that the arguments of the isolated process describe."""
    directory = Path(arguments["directory"])
    scenario = Scenario.from_json((directory / "scenario.json").read_text())
    outside = arguments.get("outside")
    return Site(
        scenario,
        arguments["seed"],
        directory,
        cgroup.own(),
        Programs.from_arguments(arguments["programs"]),
        None if outside is None else Path(f"/proc/{os.getpid()}/fd/{outside}"),
    )


def _stages(site: Site, report: ReportPipe) -> None:
    """The network, its scenario's traffic, and the end."""
    from testbed.runs.live_network import network_running
    from testbed.stages import traffic
    from testbed.stages.actions import Actions, actions_served
    from testbed.stages.added_flows import AddedFlows
    from testbed.stages.events import events_running, wait_for_traffic_at
    from testbed.stages.network import write_routes

    def say(stage: str, fraction: float | None = None) -> None:
        report.send(stage=stage, fraction=fraction)

    with network_running(site, say) as live:
        network, protocol, children = live.network, live.protocol, live.children
        added = AddedFlows(site, network.net, children, live.settings, live.record.update)
        with events_running(site.scenario.events, live.do, children) as events:

            def ready() -> None:
                say("settling")
                wait_for_traffic_at(site, network.medium, children, early_s=ROUTES_LEAD_S * len(network.net.hosts))
                write_routes(network, protocol, "start")
                wait_for_traffic_at(site, network.medium, children)

            def begin(start_s: float) -> None:
                traffic_ns = time.time_ns() - round((time.monotonic() - start_s) * 1e9) - live.epoch_ns
                live.record.update(traffic_ns=traffic_ns)
                if site.scenario.traffic_at is not None:
                    live.traffic_start = TrafficStart(traffic_ns / 1e9 - site.scenario.traffic_at)
                live.count_from(start_s)  # before an event at 0 s
                events.begin(start_s)
                added.begin(start_s)
                live.begin()
                say("traffic", 0.0)  # after `count_from`: what a user does from here on has a time, so a repetition has it too

            def under_way(fraction: float) -> None:
                live.tick()
                say("traffic", fraction)

            with actions_served(Actions(live, added.start)), added.kept(), live.host_blamed():
                traffic.run_flows(site, network.net, children, under_way, begin, ready)
        live.end()
        say("stop")  # tables of many stations take a while
        write_routes(network, protocol, "end")


def _os_error(problem: OSError, directory: Path) -> str:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{directory}: disk full; {ROOM} (what was captured is kept)"
    with suppress(Exception):
        traceback.print_exc()
    return f"{problem.filename or directory}: {problem.strerror or problem}; see {directory}/log/run.log"
