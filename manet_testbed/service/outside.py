"""The process between a test process and a run: checks the scenario, makes the run, cleans up after both.

Standard input: one line of JSON, the request, then nothing; its end means that the test process has let go or has died. (A child
of the test process may hold the pipe; so the end of the test process itself is watched, too.) Standard output: one line of JSON,
the end. The requests to the run itself go over a socket that this process only hands on.
"""

import json
import os
import select
import shutil
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any

from scenarios import toml_file
from scenarios.definition import scenario_of
from scenarios.keys import Keys
from scenarios.overrides import Change
from scenarios.scenario import Scenario
from testbed.errors import ManetError, UsageError
from testbed.host.protocols import require_protocol
from testbed.host.requirements import require_for_runs
from testbed.host.state import enter_user_namespace
from testbed.programs import BUILT
from testbed.runs import preflight
from testbed.runs.run import claimed, conclude, isolated_run, prepare
from testbed.runs.verdict import reasons_of

INSIDE = "manet_testbed.service.inside"
EXPERIMENT = "mesh"


def main() -> int:
    """Make the run that the request describes, and report its end."""
    enter_user_namespace()  # while this process has one thread
    request = json.loads(sys.stdin.buffer.readline())
    cancel = threading.Event()
    threading.Thread(target=_follow, args=(request["owner"], cancel), name="owner", daemon=True).start()
    end = _end(request, cancel)
    sys.stdout.write(json.dumps(end) + "\n")
    sys.stdout.flush()
    return 0


def _follow(owner: int, cancel: threading.Event) -> None:
    """Set `cancel` as soon as standard input or the process `owner` has ended."""
    if os.getppid() == owner:
        poll = select.poll()
        poll.register(os.pidfd_open(owner), select.POLLIN)
        poll.register(sys.stdin.fileno(), select.POLLIN)
        poll.poll()
    cancel.set()


def _end(request: dict[str, Any], cancel: threading.Event) -> dict[str, Any]:
    temporary = request["directory"] is None
    directory = Path(tempfile.mkdtemp(prefix="manet-mesh-") if temporary else request["directory"])
    try:
        return _run(request, directory, cancel)
    except ManetError as problem:
        text = str(problem).replace("with --out", "with directory=")  # the remedy of `manet run`
        return {"error": text, "kind": "wrong" if isinstance(problem, UsageError) else "failed"}
    except Exception as problem:
        traceback.print_exc()
        return {"error": f"bug in the testbed: {problem!r}", "kind": "failed"}
    finally:
        if temporary:
            shutil.rmtree(directory, ignore_errors=True)


def _run(request: dict[str, Any], directory: Path, cancel: threading.Event) -> dict[str, Any]:
    if (missing := _missing_of_machine()) is not None:
        return {"error": missing, "kind": "missing"}
    scenario, seed = _scenario(request), request["seed"]
    if (missing := _missing_of_routing(scenario)) is not None:
        return {"error": missing, "kind": "missing"}
    preflight.check(scenario, seed, BUILT, request["name"])
    with claimed(directory):
        prepare(scenario, seed, directory, {"experiment": EXPERIMENT})
        outcome = isolated_run(INSIDE, seed, directory, _ignore, cancel, requests=request["requests"])
        result = conclude(directory, outcome)
    return {
        "error": None if result.status == "complete" else result.error,
        "kind": result.status,
        "verdict": result.verdict,
        "reasons": reasons_of(directory),
    }


def _ignore(_stage: str, _fraction: float | None) -> None:
    """The test process learns from the run itself when it is ready."""


def _scenario(request: dict[str, Any]) -> Scenario:
    """The checked scenario. Raises UsageError that names the file and line, or the call and key."""
    file = request["file"]
    if file is None:
        scenario = scenario_of(Keys.of_script(request["keys"], request["name"]))
    else:
        document = toml_file.read(Path(file))
        if document.is_experiment:
            raise UsageError(f"{file}: is an experiment, which has several scenarios; give a scenario file")
        keys = Keys.of_file(document)
        for key, value in request["keys"].items():
            keys = keys.changed(Change(key, value, f"{request['name']}: {key}"))
        scenario = scenario_of(keys)
    if scenario.clock == "virtual":
        raise UsageError(f'{request["name"]}: key "clock": a mesh runs in real time; leave "virtual" out')
    if scenario.reaches_internet:
        raise UsageError(f'{request["name"]}: key "wires": a mesh does not reach the real network; leave "nat" out')
    return scenario


def _missing_of_machine() -> str | None:
    try:
        require_for_runs()
    except UsageError as problem:
        return str(problem)
    return None


def _missing_of_routing(scenario: Scenario) -> str | None:
    try:
        require_protocol(scenario.routing.protocol)
    except UsageError as problem:
        return str(problem)
    return None


if __name__ == "__main__":
    sys.exit(main())
