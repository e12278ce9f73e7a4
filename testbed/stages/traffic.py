"""The stage that generates traffic: the programs of each flow's kind (traffic), reports into `traffic/`.

Receivers start first and must be ready; each sender starts at its flow's time. All flows end at the same instant, so that
flows with a late start compete during all of their measured time.
"""

import json
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from record.files import write_atomic
from scenarios.flows import FIRST_PORT, Flow
from testbed.errors import RunError
from testbed.host.processes import Child, Processes, limit_s
from testbed.stages.site import Site
from testbed.stages.station import NamespaceHost, StationNet
from traffic.shared.kind import After, FlowPlan, Kind, Listening, Printed, Program, Readiness

READY_DEADLINE_S = 20.0
END_GRACE_S = 60.0  # for the last segments and iperf3's exchange of results over a slow path
KEPT = "the run's captures and records are kept"
REMEDY = f"{KEPT}; `manet cli` on this scenario lets you ping along the path"
PROGRAM_REMEDY = f"{KEPT}; log/ has what it printed"  # its path is not the cause


@dataclass
class RunningFlow:
    """One flow: its plan, its ends and its programs."""

    plan: FlowPlan[Any]
    flow: Flow
    source: NamespaceHost
    target: NamespaceHost
    receiver: Child | None = None
    receiver_started: float = 0.0  # monotonic
    sender: Child | None = None
    sender_started: float = 0.0  # monotonic

    @property
    def kind(self) -> Kind[Any]:
        """The traffic kind."""
        return self.flow.kind

    @property
    def readiness(self) -> Readiness:
        """The condition for a ready receiver."""
        return self.kind.readiness_of(self.plan.keys)

    @property
    def name(self) -> str:
        """`flow1`, `flow2`, ..."""
        return self.plan.name


def run_flows(
    site: Site,
    net: StationNet,
    children: Processes,
    progress: Callable[[float], None],
    begin: Callable[[float], None] = lambda _start_s: None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Run all flows of the scenario to their end and leave their reports in `traffic/`. `ready` is called when all receivers
    are ready, and may wait; `begin` with the monotonic instant from which the flows' starts count. RunError if a flow fails."""
    flows = [planned(site, net, index) for index in range(len(site.scenario.flows))]
    try:
        for flow in flows:
            start_receiver(flow, children)
        wait_until_ready(flows, children)
        ready()
        _send(site, flows, children, progress, begin)
    except BaseException:
        failed_s = time.monotonic()
        stop_flows(flows, children)
        for flow in flows:
            report_until(flow, failed_s)
        raise
    stop_flows(flows, children)
    for flow in flows:
        finish_flow(flow)


def stop_flows(flows: Sequence[RunningFlow], children: Processes) -> None:
    """End the programs of these flows."""
    children.stop([child for flow in flows for child in (flow.sender, flow.receiver) if child is not None])


def planned(site: Site, net: StationNet, index: int) -> RunningFlow:
    """The flow at this place of the scenario's list, from 0, not yet started."""
    scenario = site.scenario
    name, flow = scenario.flow_names()[index], scenario.flows[index]
    plan: FlowPlan[Any] = FlowPlan(
        name=name,
        keys=flow.own_keys(),
        source=net[flow.source].address(scenario.ip_of(flow)),
        target=net[flow.target].address(scenario.ip_of(flow)),
        port=FIRST_PORT + index,
        seconds=scenario.seconds_of(flow),
        seed=site.seed,
        report=site.folder("traffic") / f"{name}.json",
        log=site.log,
        dscp=flow.dscp,
        source_place=tuple(net[flow.source].words([])),
        target_place=tuple(net[flow.target].words([])),
    )
    return RunningFlow(plan, flow, net[flow.source], net[flow.target])


def _program(flow: RunningFlow, host: NamespaceHost, program: Program) -> dict[str, Any]:
    """How a program of the flow is started. Those of the testbed are outside of the station's pid namespace and container; the
    user's are their children, inside."""
    common = {"argv": program.argv, "netns": host.netns, "remedy": PROGRAM_REMEDY, "explain": program.explain}
    if not flow.kind.own_programs(flow.plan.keys):
        return common
    limits = (lambda: None) if host.container is None else host.container.explain
    return common | {
        "argv": host.parent(program.argv),
        "program": Path(program.argv[0]).name,
        "explain": lambda: limits() or program.explain(),
    }


def start_receiver(flow: RunningFlow, children: Processes) -> None:
    """Start the receiver, if the flow has one. It must not end by itself: its counts would be lost."""
    program = flow.kind.receiver(flow.plan)
    if program is None:
        return
    flow.receiver_started = time.monotonic()
    flow.receiver = children.start(f"{flow.name}-receiver", **_program(flow, flow.target, program))


def wait_until_ready(flows: Sequence[RunningFlow], children: Processes) -> None:
    """Wait for the receivers. RunError after READY_DEADLINE_S, of many flows later."""
    within_s = limit_s(READY_DEADLINE_S, len(flows))
    deadline = time.monotonic() + within_s
    waiting = [flow for flow in flows if flow.receiver is not None]
    while waiting := [flow for flow in waiting if not _ready(flow)]:
        children.check()
        for flow in waiting:
            readiness = flow.readiness
            if not isinstance(readiness, After) and time.monotonic() > deadline:
                text = f"{flow.name}: its receiver {readiness.missing} after {within_s:g} s; {readiness.remedy}"
                raise RunError(text)
        time.sleep(0.005)
    children.check()


def _ready(flow: RunningFlow) -> bool:
    assert flow.receiver is not None
    match flow.readiness:
        case Listening(transport, port):
            transports = ("tcp", "udp") if transport is None else (transport,)
            return any(flow.receiver.listens(each, port or flow.plan.port) for each in transports)
        case Printed(pattern):
            return re.search(pattern, flow.receiver.printed(), re.MULTILINE) is not None
        case After(seconds):
            return time.monotonic() - flow.receiver_started >= seconds


def _send(
    site: Site,
    flows: list[RunningFlow],
    children: Processes,
    progress: Callable[[float], None],
    begin: Callable[[float], None],
) -> None:
    """Start each sender at its time and wait for all of them."""
    start = time.monotonic()
    begin(start)
    length_s = site.scenario.traffic_seconds()

    def tick() -> None:
        progress(min(1.0, (time.monotonic() - start) / length_s))

    for flow in sorted(flows, key=lambda flow: flow.flow.start):
        children.watch(until=start + flow.flow.start, on_tick=tick)
        start_sender(flow, children)
    senders = [flow.sender for flow in flows if flow.sender is not None]
    until = start + length_s + (END_GRACE_S if senders else 0.0)
    if not children.watch(until=until, ended=senders, on_tick=tick) and senders:
        late = next(flow for flow in flows if flow.sender is not None and flow.sender.running())
        raise RunError(f"{late.name}: not ended {END_GRACE_S:g} s after its time; the path may have broken; {REMEDY}")
    if drain_s := max((flow.kind.drain_s for flow in flows), default=0.0):
        children.watch(until=time.monotonic() + drain_s)


def start_sender(flow: RunningFlow, children: Processes) -> None:
    """Start the sender; it ends by itself."""
    flow.sender_started = time.monotonic()
    program = flow.kind.sender(flow.plan, flow.receiver.pid if flow.receiver is not None else 0)
    flow.sender = children.start(f"{flow.name}-sender", **_program(flow, flow.source, program), may_end=True)


def report_until(flow: RunningFlow, failed_s: float) -> None:
    """The report of what the flow's programs had recorded when the run failed, at the monotonic instant `failed_s`."""
    if flow.sender is None or not flow.kind.records_at_once:
        return
    plan = replace(flow.plan, seconds=min(flow.plan.seconds, failed_s - flow.sender_started))
    with suppress(OSError, LookupError, ValueError):  # no record yet, or a damaged one
        report = flow.kind.report(plan)
        if report is not None:
            write_atomic(plan.report, report)


def finish_flow(flow: RunningFlow) -> None:
    """Fail the run for an error in the flow's report; else complete the report."""
    error = flow.kind.error(flow.plan)
    if error is not None:
        raise RunError(f"{flow.name}: {error}; {REMEDY}")
    try:
        report = flow.kind.report(flow.plan)
    except json.JSONDecodeError as problem:
        folder = flow.plan.report.parent
        raise RunError(f"{folder}: a file of {flow.name} is not JSON ({problem}); who changed it? Run it again") from None
    if report is not None:
        write_atomic(flow.plan.report, report)
