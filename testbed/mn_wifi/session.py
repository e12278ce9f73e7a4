"""The run that a script is executed in, and the networks it builds there, one after the other.

Each network is a run directory like any other (formats/results.md): the script's own folder, of later networks `network2`,
`network3` ... in it.
"""

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from scenarios.scenario import Scenario
from testbed.errors import ManetError, RunError, UsageError
from testbed.programs import BUILT, Programs
from testbed.runs import preflight
from testbed.runs.ids import own_cgroup
from testbed.runs.run import prepare, write_end
from testbed.runs.standing import standing
from testbed.runs.verdict import add_programs, verdict_of
from testbed.runs.waits import Waits
from testbed.stages.routing import Network, Protocol
from testbed.stages.site import Site

EXPERIMENT = "script"
LOOK_S = 0.25  # a window of Waits is a second


@dataclass
class Standing:
    """One network of a script, from build() to stop()."""

    site: Site
    network: Network
    protocol: Protocol
    stages: ExitStack
    watch: "Watch"

    def stop(self, outcome: dict) -> None:
        """Take it down, whatever `outcome` says of the script, and write into run.json how it ended."""
        self.watch.end()
        try:
            self.stages.close()
            if (self.site.directory / "verdict.json").exists():
                add_programs(self.site.directory, self.watch.waits.summary)
        except RunError as problem:
            if outcome["status"] == "complete":
                outcome = {"status": "failed", "error": str(problem)}
                raise
        finally:
            write_end(self.site.directory, outcome)


class Watch:
    """Looks, as a run does during its traffic, at how long the programs wait for a processor: a script's last as long as its
    network stands."""

    def __init__(self, waits: Waits) -> None:
        self.waits, self._over = waits, threading.Event()
        waits.begin()
        self._thread = threading.Thread(target=self._look, name="waits", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            self.waits.tick()

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        self.waits.end()


@dataclass
class Session:
    """`overrides` are the --set of the command line; `say` reports a stage to `manet`."""

    script: Path
    directory: Path
    seed: int
    overrides: tuple[str, ...] = ()
    programs: Programs = BUILT
    say: Callable[..., None] = lambda *_stage, **_more: None
    standing: Standing | None = None
    built: list[Path] = field(default_factory=list)

    def up(self, scenario: Scenario) -> Standing:
        """Check what only programs and the machine can judge, then bring the network up; UsageError or RunError."""
        if self.standing is not None:
            raise UsageError("a network of this script stands already; call its stop() before the next one's build()")
        if scenario.clock == "virtual":
            raise UsageError('clock = "virtual": a script runs in real time; leave --set clock=virtual out')
        preflight.check(scenario, self.seed, self.programs, self.script.name)
        number = len(self.built) + 1
        directory = self.directory if number == 1 else self.directory / f"network{number}"
        directory.mkdir(parents=True, exist_ok=True)
        prepare(scenario, self.seed, directory, {"experiment": EXPERIMENT, "script": str(self.script)})
        self.built.append(directory)
        site = Site(scenario, self.seed, directory, own_cgroup(), self.programs)
        stages = ExitStack()
        try:
            network, protocol = stages.enter_context(standing(site, self.say))
        except BaseException as problem:
            write_end(directory, outcome_of(problem))
            raise
        self.standing = Standing(site, network, protocol, stages, Watch(Waits(site.cgroup)))
        return self.standing

    def void(self) -> list[Path]:
        """Those of its networks that the verdict calls void."""
        return [directory for directory in self.built if verdict_of(directory) == "void"]

    def down(self, outcome: dict | None = None) -> Standing | None:
        """The standing network's end, if one stands."""
        ended, self.standing = self.standing, None
        if ended is not None:
            ended.stop(outcome or {"status": "complete", "error": None})
        return ended


def outcome_of(problem: BaseException | None) -> dict:
    """How run.json calls the end of a script by an exception."""
    if problem is None or (isinstance(problem, SystemExit) and problem.code in (0, None)):
        return {"status": "complete", "error": None}
    if isinstance(problem, SystemExit):
        return {"status": "failed", "error": f"the script ended with status {problem.code}"}
    if isinstance(problem, ManetError):
        return {"status": "failed", "error": str(problem)}
    if isinstance(problem, Exception):
        return {"status": "failed", "error": f"the script ended by {type(problem).__name__}: {problem}"}
    return {"status": "interrupted", "error": "interrupted; what was captured is kept"}


# The API of scripts has no argument for it: Mininet_wifi() finds the run that it is in here. Set once, by launch.inside.
_here: list[Session] = []


def begin(session: Session) -> Session:
    _here[:] = [session]
    return session


def current() -> Session:
    if not _here:
        name = Path(sys.argv[0]).name or "FILE.py"
        raise UsageError(f"a network is made in a run of its own: start the script by `./manet script {name}`")
    return _here[0]
