"""The run of a script and the networks that it builds, one after the other.

Each network is a run directory like any other (formats/results.md): the first is the script's folder, later ones are `network2`,
`network3` ... below it.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from record.events_file import SCRIPT
from scenarios.scenario import Scenario
from testbed.errors import ManetError, RunError, UsageError
from testbed.host import cgroup, namespace
from testbed.host.requirements import require_radios
from testbed.programs import BUILT, Programs
from testbed.runs import preflight
from testbed.runs.live_network import LiveNetwork, judged_session, session_running
from testbed.runs.run import prepare, write_end
from testbed.runs.verdict import verdict_of
from testbed.stages import iproute
from testbed.stages.routing import Network
from testbed.stages.site import Site
from testbed.stages.station import NamespaceHost

EXPERIMENT = "script"
Outcome = dict[str, str | None]  # status and error for run.json


@dataclass
class Standing:
    """One network of a script, from build() to stop()."""

    live: LiveNetwork
    stages: ExitStack

    @property
    def site(self) -> Site:
        """Its scenario, seed and folder."""
        return self.live.site

    @property
    def network(self) -> Network:
        """Its stations, their medium and child processes."""
        return self.live.network

    def begin(self, *, settings_change: bool = False) -> None:
        """The network is as declared: what comes is recorded and judged. `settings_change`: of stations that roam."""
        self.stages.enter_context(judged_session(self.live))
        self.live.of_user |= {host.name for host in self.network.net.hosts} if settings_change else set()

    def configure(self, lines: dict[NamespaceHost, list[str]], name: str, sysctls: Mapping[str, object] | None = None) -> None:
        """Set sysctls and execute lines of ip(8) at hosts for the script, whose settings these are; `name`: of the record of the
        lines in log/."""
        self.live.of_user |= {host.name for host in lines}  # first: the session's judgement looks meanwhile
        if sysctls is not None:
            for host in lines:
                namespace.within(host.netns, partial(namespace.write_sysctls, sysctls))
        iproute.batches(lines, name, self.site.log)

    def stop(self, outcome: Outcome) -> None:
        """Take the network down and write `outcome`, how the script ended, into run.json. Raises RunError if it fails."""
        try:
            self.stages.close()
        except (RunError, OSError) as problem:
            if outcome["status"] == "complete":
                outcome = {"status": "failed", "error": str(problem)}
                raise
        finally:
            write_end(self.site.directory, outcome)


class NeedsGuest(BaseException):
    """The script needs `what`, which this kernel lacks, and has to run in a guest. Not an Exception, so that no script
    handles it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass
class Session:
    """The state of a script's run. `overrides` are the --set of the command line; `say` reports a stage to `manet`; `may_move`:
    `manet` would execute the script in a guest."""

    script: Path
    directory: Path
    seed: int
    overrides: tuple[str, ...] = ()
    programs: Programs = BUILT
    say: Callable[..., None] = lambda *_stage, **_more: None
    standing: Standing | None = None
    built: list[Path] = field(default_factory=list)
    may_move: bool = False

    def up(self, scenario: Scenario) -> Standing:
        """Check the scenario against programs and machine, then bring the network up. Raises UsageError or RunError."""
        if self.standing is not None:
            raise UsageError("a network of this script is up already; call its stop() before the next one's build()")
        if scenario.clock == "virtual":
            raise UsageError('clock = "virtual": a script runs in real time; leave --set clock=virtual out')
        if scenario.radio_devices == "hwsim" and self.may_move and not self.built:
            try:
                require_radios("hwsim")
            except UsageError as lacking:
                raise NeedsGuest(str(lacking).partition("; ")[0]) from None
        preflight.check(scenario, self.seed, self.programs, self.script.name)
        number = len(self.built) + 1
        directory = self.directory if number == 1 else self.directory / f"network{number}"
        directory.mkdir(parents=True, exist_ok=True)
        prepare(scenario, self.seed, directory, {"experiment": EXPERIMENT, "script": str(self.script)})
        self.built.append(directory)
        site = Site(scenario, self.seed, directory, cgroup.own(), self.programs)
        stages = ExitStack()
        try:
            live = stages.enter_context(session_running(site, self.say, SCRIPT))
        except BaseException as problem:
            write_end(directory, outcome_of(problem))
            raise
        self.standing = Standing(live, stages)
        return self.standing

    def need_kernel_radios(self, what: str, refusal: str) -> None:
        """Give stations radios of mac80211_hwsim, which `what` needs. If this kernel lacks them: NeedsGuest, or
        UsageError with `refusal` if the script cannot move into a guest any more."""
        try:
            require_radios("hwsim")
        except UsageError:
            self.need_kernel(f"{what}, which TAP radios lack")
            raise UsageError(refusal) from None
        self.overrides = (*self.overrides, "stations=hwsim")

    def need_kernel(self, what: str) -> None:
        """Raise NeedsGuest, for `what`, if the script can still move into a guest."""
        if self.may_move and not self.built:
            raise NeedsGuest(what)

    def void(self) -> list[Path]:
        """The directories of networks whose verdict is void."""
        return [directory for directory in self.built if verdict_of(directory) == "void"]

    def down(self, outcome: Outcome | None = None) -> Standing | None:
        """Take the network down, if one is up, and return it."""
        ended, self.standing = self.standing, None
        if ended is not None:
            ended.stop(outcome or {"status": "complete", "error": None})
        return ended


def outcome_of(problem: BaseException | None) -> Outcome:
    """The outcome of a script that ended by this exception, or by none."""
    if problem is None or (isinstance(problem, SystemExit) and problem.code in (0, None)):
        return {"status": "complete", "error": None}
    if isinstance(problem, SystemExit):
        return {"status": "failed", "error": f"the script ended with status {problem.code}"}
    if isinstance(problem, ManetError):
        return {"status": "failed", "error": str(problem)}
    if isinstance(problem, Exception):
        return {"status": "failed", "error": f"the script ended by {type(problem).__name__}: {problem}"}
    return {"status": "interrupted", "error": "interrupted; what was captured is kept"}


# Mininet_wifi() has no argument for its run and finds it here. launch.inside sets it once.
_current_session: list[Session] = []


def begin(session: Session) -> Session:
    """Make this the session of the process."""
    _current_session[:] = [session]
    return session


def current() -> Session:
    """The session of the process. Raises UsageError outside of `./manet script`."""
    if not _current_session:
        name = Path(sys.argv[0]).name or "FILE.py"
        raise UsageError(f"a network is made in a run of its own: start the script by `./manet script {name}`")
    return _current_session[0]
