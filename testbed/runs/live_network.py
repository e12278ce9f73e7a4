"""A running network: its stages in one order, the events that anybody requests, their record, and the judgement of the whole.

`manet run` adds traffic (run.py). The prompt, scripts and the meshes of manet_testbed are sessions: the same network without its
scenario's traffic and events, for as long as they last, with commands of the user's at the stations. Each event, of the scenario,
a view, a prompt, a script or a mesh, goes through `do`.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property, partial
from typing import Any

from record.events_file import EXEC, SCENARIO
from record.run_file import RunFile
from scenarios.events import Event, worded
from scenarios.live_events import live_event
from testbed.errors import HostLateError, RunError
from testbed.host import neighbours
from testbed.host.changes import of_own_daemons, of_third_party
from testbed.host.other_load import OtherLoad
from testbed.host.processes import Child, Processes
from testbed.runs import metadata
from testbed.runs.background import in_background
from testbed.runs.outputs import check_logs, check_space, outputs_kept
from testbed.runs.station_changes import StationChanges
from testbed.runs.stopped import StoppedPrograms
from testbed.runs.verdict import BETTER_FIRST, CaptureDrops, Judgement, NeighbourTable, TrafficStart, add_judgements
from testbed.runs.waits import Waits
from testbed.stages import addresses, kernel_tcp
from testbed.stages.actions import Actions, actions_served
from testbed.stages.capture import captures_running
from testbed.stages.commands import EventCommands
from testbed.stages.containers import commands_running
from testbed.stages.entered import EnteredCommand, EnteredCommands
from testbed.stages.event_log import EventLog
from testbed.stages.events import carry_out, lateness_reason, require_before_traffic_at
from testbed.stages.gps import gps_running
from testbed.stages.movement import trace_of
from testbed.stages.network import network_up, write_routes
from testbed.stages.pause import LiveMovement
from testbed.stages.routing import Network, RunningProtocol
from testbed.stages.site import Site

LOST = 1.0  # the error rate of a broken link
TICK_S = 0.25  # of a session's judgement; a window of Waits is a second
Say = Callable[..., None]


class LiveNetwork:
    """A network that is up. From the start of the traffic or of a session on, times of events count (`count_from`) and the run is
    judged (`begin`). `settings` is manet-tcp; `traffic_start` is set by a run with `traffic_at`."""

    settings: Child
    traffic_start: TrafficStart | None = None

    def __init__(self, site: Site, network: Network, protocol: RunningProtocol, waits: Waits, *, session: str | None) -> None:
        """`session`: the source of its user's commands at stations; None: a run, which has no such user."""
        self.site, self.network, self.protocol, self.children = site, network, protocol, network.children
        self.record = RunFile.open(site.directory / "run.json")
        self.log, self.commands = EventLog(site.directory, network.medium), EventCommands(network.children, network.net)
        self.broken: dict[tuple[str, str], float] = {}  # links that `break_link` broke, with their error rates before
        self._waits, self._session = waits, session
        hosts = [host.name for host in network.net.hosts]
        self._stopped = StoppedPrograms(site.cgroup, network.children, without=hosts, only_children=session is not None)
        self._begin_s: float | None = None
        self._refused: list[int | None] = []  # by the kernel's table of neighbours, at the begin and the end
        self._started: list[Event] = []  # the events that started commands
        self._of_user: list[dict[str, Any]] = []  # the commands of a session's user
        self.entered = EnteredCommands(network.net)  # those of `manet exec`
        self._naming = threading.Lock()
        self._daemons = {name: threading.Lock() for name in hosts}
        self.of_user: set[str] = set()  # stations whose settings are the user's
        self._acted: list[tuple[str, float]] = []  # stations whose daemon an event has ended or started, and when that was done
        self._acting: Counter[str] = Counter()  # the same, of events under way

    @cached_property
    def movement(self) -> LiveMovement:
        """The movement under way, which can be interrupted and replaced."""
        scenario = self.site.scenario
        trace = trace_of(scenario, self.site.seed) if scenario.mobility.moving else None
        return LiveMovement(self.network.medium, trace, scenario.area)

    # --- events ---------------------------------------------------------------------------------------------------

    def do(self, wanted: Event | Mapping[str, Any], source: str, named: Mapping[str, str] | None = None) -> tuple[str, str]:
        """Carry out and record an event: the scenario's own, or the keys of one without `at`, which are checked as in a file
        (`named`: as of live_event). Returns station and detail of events.csv. Raises UsageError for a wrong one, RunError if it
        fails."""
        now_s = self.now_s()
        event = wanted if isinstance(wanted, Event) else self._checked(wanted, named)
        station, detail = self._of_process(event) if event.kind in ("daemon", "command") else self._of_medium(event)
        self.log.write(event.at if source == SCENARIO else now_s, event.kind, station, detail, source)
        return station, detail

    def now_s(self) -> float | None:
        """Seconds since the start of the traffic or of the session; None before it."""
        return None if self._begin_s is None else round(time.monotonic() - self._begin_s, 3)

    def break_link(self, one: str, other: str, source: str) -> tuple[str, str]:
        """From now on no data frame arrives between two stations. Like `do`."""
        before = {(link["from"], link["to"]): link["error_rate"] for link in self.network.medium.ask("links")["links"]}
        before |= self.broken
        done = self.do({"link": [one, other], "error_rate": LOST}, source)
        self.broken |= {ends: before[ends] for ends in ((one, other), (other, one))}
        return done

    def restore_link(self, one: str, other: str, source: str) -> tuple[str, str]:
        """Give a link the error rates that it had before `break_link`, else none. Like `do`; the row has the rate from `one`."""
        there, back = (self.broken.get(ends, 0.0) for ends in ((one, other), (other, one)))
        done = self.do({"link": [one, other], "error_rate": there}, source)
        if back != there:
            self.network.medium.ask("link", **{"from": other, "to": one}, error_rate=back)
        return done

    def _checked(self, keys: Mapping[str, Any], named: Mapping[str, str] | None) -> Event:
        scenario = self.site.scenario
        without = None if self.protocol.has_daemons else scenario.routing.protocol
        return live_event(scenario, keys, named, before=self._started, without_daemon=without)

    def _of_medium(self, event: Event) -> tuple[str, str]:
        if event.link is not None:
            one, other = event.link
            for ends in ((one, other), (other, one)):
                self.broken.pop(ends, None)
        return carry_out(self.network.medium, event, self._waits.starved)

    def _of_process(self, event: Event) -> tuple[str, str]:
        """Carry out an event of a daemon or a command; meanwhile, and a moment after it, it may change the station's settings."""
        station = str(event.station)
        self._acting[station] += 1
        try:
            if event.words:
                self.commands.start(str(event.name), station, event.words)
                self._started.append(event.model_copy(update={"at": 0.0}))  # before whatever comes
            elif event.daemon is None:
                return self.commands.act(event)
            else:
                self._act_on_daemon(station, event.daemon)
            return worded(event, event.name)
        finally:
            self._acted.append((station, time.monotonic()))
            self._acting[station] -= 1

    def _act_on_daemon(self, name: str, action: str) -> None:
        station = self.network.net[name]
        with self._daemons[name]:  # a view and the scenario may act at once
            if action != "start":
                self.protocol.end_daemon(station, kill=action == "kill")
            if action in ("start", "restart"):
                self.protocol.start_daemon(station)

    def _may_change(self, station: str, since_s: float) -> bool:
        """Whether an event of a daemon or a command acted on the station's settings since a monotonic instant, or may now; or the
        user of a session, whose commands may go on in the background."""
        by_event = self._acting[station] > 0 or any(name == station and done_s >= since_s for name, done_s in self._acted)
        by_command = self.commands.ran_at(station, since_s) or self.entered.ran_at(station, since_s)
        return by_event or by_command or station in self.of_user

    def _note_command(self, station: str, argv: list[str]) -> None:
        """Record a command of the session's user, who alone knows its end."""
        now_s, end = self.now_s(), {"ended_s": None, "exit_status": None, "ended_by": "session"}
        with self._naming:  # a script's threads may start commands at once
            name = f"{self._session}{len(self._of_user) + 1}"
            self._of_user.append({"name": name, "station": station, "argv": argv, "started_s": now_s, **end})
        self.of_user.add(station)
        with suppress(RunError):  # after a failure of the network, which is reported by itself, commands still work
            self.log.write(now_s, "command", station, f"{name} started", str(self._session))

    def enter(self, station: str, argv: list[str], streams: list[int], term: str | None) -> EnteredCommand:
        """Start and record a command of `manet exec` (testbed/stages/entered.py). Raises UsageError, RunError."""
        command = self.entered.start(station, argv, streams, term, self.now_s())
        self.log.write(command.started_s, "command", station, f"{command.name} started", EXEC)
        return command

    def wait_for(self, command: EnteredCommand) -> int:
        """Wait for its end; returns its status, negative for a signal."""
        return self.entered.wait(command, self._begin_s)

    # --- the judgement --------------------------------------------------------------------------------------------

    def note_settings(self) -> None:
        """Record the settings of the stations, which may not change from now on."""
        scenario, net = self.site.scenario, self.network.net
        names = sorted({*metadata.SYSCTLS, *kernel_tcp.sysctls(scenario)})
        sysctls = kernel_tcp.read_sysctls(net, names)
        self.epoch_ns = self.network.medium.ask("status")["epoch_ns"]
        self.record.update(
            epoch_ns=self.epoch_ns, routing_ns=self.protocol.began_ns, mtu=addresses.mtus(net), sysctls=sysctls,
        )  # fmt: skip
        self._changes = StationChanges(
            {host.name: host.netns for host in net.hosts},
            of_own_daemons() if scenario.routing.DESCRIPTION is None else of_third_party(),
            sysctls, partial(kernel_tcp.read_sysctls, net, names), self._may_change,
        )  # fmt: skip
        self._watches = (self._waits, self._stopped, self._changes)

    def count_from(self, start_s: float) -> None:
        """Times of events and commands count from the monotonic instant `start_s`."""
        self._begin_s = self.commands.begin_s = start_s

    def begin(self) -> None:
        """The traffic or the session begins: it is judged from now on."""
        for host in self.network.net.hosts if self._session else ():
            host.on_command = self._note_command
        # earlier changes are the testbed's; in a session, which does not wait for them, third-party daemons may go on to set up
        settling = self._session is not None and self.site.scenario.routing.DESCRIPTION is not None
        self.of_user = {host.name for host in self.network.net.hosts} if settling else set()
        self._refused.append(neighbours.refused())
        for watch in self._watches:
            watch.begin()

    def tick(self) -> None:
        """Look at the programs and settings of the stations; to be called regularly after `begin`."""
        for watch in self._watches:
            watch.tick()

    def end(self) -> None:
        """The traffic or the session is over: look a last time, and end the commands."""
        for watch in self._watches:
            watch.end()
        self._refused.append(neighbours.refused())
        self.end_commands()

    def end_commands(self) -> None:
        """End the commands of events, and record all commands."""
        if not self.commands.over:
            self.commands.end_all()
            self.entered.end_all()
            if entries := [*self.commands.entries(), *self._of_user, *self.entered.entries()]:
                self.record.update(commands=entries)

    @contextmanager
    def host_blamed(self) -> Iterator[None]:
        """A failure in the block is the host's (HostLateError) if the host has made the run void by then."""
        try:
            yield
        except RunError as problem:
            busy = self._waits.summary.void_reason()
            with suppress(RunError):  # the medium may be what failed
                busy = busy or lateness_reason(self.network.medium.ask("status"))
            if busy is None or isinstance(problem, HostLateError):
                raise
            raise HostLateError(f"{problem}; the host was too busy ({busy})") from problem

    def judgements(self) -> dict[str, Judgement | None]:
        """What the run adds to the medium's verdict (formats/air.md)."""
        counts = [count for count in self._refused if count is not None]
        refused = NeighbourTable(counts[-1] - counts[0]) if len(counts) == 2 else None
        return {
            "programs": self._waits.summary, "traffic_start": self.traffic_start, "neighbours_refused": refused,
            "stopped": self._stopped.summary, "changed": self._changes.summary,
            "without_root": kernel_tcp.without_root(self.site.scenario),
        }  # fmt: skip

    def verdict_so_far(self) -> tuple[str, list[str]]:
        """The verdict until now, and its reasons."""
        status = self.network.medium.ask("status")
        verdict: str = status["verdict"]
        late_ms = status["lateness"].get("max_us", 0) / 1000
        reasons = [] if verdict == "valid" else [f"the medium was up to {late_ms:.0f} ms late or lost frames of the host"]
        for part in filter(None, self.judgements().values()):
            judged, more = part.judgement()
            verdict, reasons = max(verdict, judged, key=BETTER_FIRST.index), reasons + more
        return verdict, reasons


@contextmanager
def network_running(site: Site, say: Say, session: str | None = None) -> Iterator[LiveNetwork]:
    """Bring a network up; after the block take it down in the opposite order, and complete its verdict. `say` reports stages.
    `session`: as of LiveNetwork."""
    waits, others = Waits(site.cgroup, without=site.limited_groups), OtherLoad(site.cgroup)
    with ExitStack() as stages:
        stages.enter_context(outputs_kept(site))
        children = stages.enter_context(Processes(site.log))
        children.checks += [partial(check_space, site.directory), partial(check_logs, site.directory)]
        network, protocol = stages.enter_context(network_up(site, children, say, shells_are_users=session is not None))
        live = LiveNetwork(site, network, protocol, waits, session=session)
        say("kernel-tcp")
        live.settings = stages.enter_context(kernel_tcp.kernel_tcp_running(site, network.net, children, protocol.hops()))
        say("captures")
        captures = stages.enter_context(captures_running(site, network.net, children))
        stages.enter_context(commands_running(network.net, children))
        stages.enter_context(gps_running(site.scenario.gps, network.net, network.medium))
        if session is None:
            protocol.before_traffic(say)
            require_before_traffic_at(site, network.medium, others.seconds())
        live.note_settings()
        stages.callback(live.end_commands)
        yield live
    drops = captures.dropped()
    add_judgements(site.directory, **live.judgements(), capture_drops=CaptureDrops(drops))
    live.record.update(capture_drops=sum(drops.values()))


@contextmanager
def session_running(site: Site, say: Say, source: str) -> Iterator[LiveNetwork]:
    """A network without its scenario's traffic, which takes the actions of views. `source`: of its user's commands."""
    with network_running(site, say, source) as live, actions_served(Actions(live)):
        yield live


@contextmanager
def judged_session(live: LiveNetwork) -> Iterator[None]:
    """The session itself, in which its user may do anything: recorded and judged as the traffic of a run."""
    wrong: list[Exception] = []

    def follow(over: threading.Event) -> None:
        try:
            while not over.wait(TICK_S):
                live.tick()
        except Exception as problem:  # the judgement is incomplete from now on: an error of the session, as it is of a run
            wrong.append(problem)

    write_routes(live.network, live.protocol, "start")
    live.record.update(session_s=0.0)
    live.count_from(time.monotonic())
    live.begin()
    try:
        with in_background("judgement", follow):
            yield
    finally:
        live.record.update(session_s=live.now_s())
    if wrong:
        raise RunError(f"the session could not be judged to its end: {wrong[0]}") from wrong[0]
    live.end()
    live.children.check()
    write_routes(live.network, live.protocol, "end")
