"""Flows that a view starts during the traffic of a run: started, captured, sampled and reported as the scenario's own.

They end with the traffic at the latest. `flows.json` has them, each with its actual start: the analysis reads them after the
scenario's flows, and `manet run DIR` repeats them.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from record.added_flows import ADDED_FLOWS, ADDED_FORMAT
from record.files import write_atomic
from scenarios.refusal import validated
from scenarios.scenario import Scenario
from scenarios.sending import MIN_DURATION_S
from testbed.errors import RunError, UsageError
from testbed.host.processes import Child, Processes
from testbed.stages import kernel_tcp, traffic
from testbed.stages.site import Site
from testbed.stages.station import StationNet
from traffic import DEFAULT_KIND, kinds

KINDS = tuple(name for name, kind in kinds().items() if kind.measured == "tcp")  # one connection from source to target
MIN_LEFT_S = 1.0  # a flow that begins later than this before the end of the traffic has hardly connected
KEYS = {"from", "to", "traffic", "tcp", "size", "seconds"}


class AddedFlows:
    """The added flows of one run: one thread starts them, another waits for their end. `record` gets the fields of run.json."""

    def __init__(self, site: Site, net: StationNet, children: Processes, settings: Child, record: Callable[..., Any]) -> None:
        self._net, self._children, self._settings, self._record = net, children, settings, record
        self._site = site  # with the scenario and all flows so far
        self._length_s = site.scenario.traffic_seconds()
        self._own = len(site.scenario.flows)
        self._begin_s: float | None = None
        self._turn = threading.Lock()  # held while a flow starts, and while it is decided that no further one may
        self._closed = False
        self._running: list[traffic.RunningFlow] = []

    def begin(self, start_s: float) -> None:
        """The traffic starts at the monotonic instant `start_s`."""
        self._begin_s = start_s

    def start(self, wanted: Mapping[str, Any]) -> tuple[str, str]:
        """Start the flow of a request; returns its name, and what it is as text. UsageError if it is refused."""
        with self._turn:
            if self._closed:
                raise UsageError("the traffic of the run has ended; start the flow in another run")
            return self._start(wanted)

    def _start(self, wanted: Mapping[str, Any]) -> tuple[str, str]:
        self._refuse_unsupported(wanted)
        site = self._with_flow(wanted)
        kernel_tcp.take_flow(self._site, site, self._net, self._settings)
        flow = traffic.planned(site, self._net, len(site.scenario.flows) - 1)
        try:
            traffic.start_receiver(flow, self._children)
            traffic.wait_until_ready([flow], self._children)
            site = self._with_flow(wanted)  # its time counts from now
            flow.plan = traffic.planned(site, self._net, len(site.scenario.flows) - 1).plan
            traffic.start_sender(flow, self._children)
        except BaseException:
            traffic.stop_flows([flow], self._children)
            kernel_tcp.leave_flow(site, self._settings)  # the next flow gets the same port
            raise
        self._site = site
        self._running.append(flow)
        self._write()
        return flow.name, _text(self._site.scenario)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """At the end of the block wait for the flows that send, and complete their reports; after a failure keep what they have
        recorded. Raises RunError."""
        try:
            yield
            self._end()
        except BaseException:
            failed_s = time.monotonic()
            with self._turn:
                self._closed = True
            traffic.stop_flows(self._running, self._children)
            for flow in self._running:
                traffic.report_until(flow, failed_s)
            raise

    def _end(self) -> None:
        until = (self._begin_s or 0.0) + self._length_s + traffic.END_GRACE_S
        while senders := self._sending():  # while they are awaited, further ones may start
            if not self._children.watch(until=until, ended=senders):
                late = next(flow for flow in self._running if flow.sender is not None and flow.sender.running())
                raise RunError(f"{late.name}: not ended {traffic.END_GRACE_S:g} s after its time; {traffic.REMEDY}")
        self._children.check()
        if drain_s := max((flow.kind.drain_s for flow in self._running), default=0.0):
            self._children.watch(until=time.monotonic() + drain_s)
        traffic.stop_flows(self._running, self._children)
        for flow in self._running:
            traffic.finish_flow(flow)

    def _sending(self) -> list[Child]:
        """The senders that have not ended; once there is none, further flows are refused."""
        with self._turn:
            senders = [flow.sender for flow in self._running if flow.sender is not None and flow.sender.running()]
            self._closed = not senders
            return senders

    def _refuse_unsupported(self, wanted: Mapping[str, Any]) -> None:
        unknown = sorted(wanted.keys() - KEYS - {"op"})
        if unknown:
            raise UsageError(f"{unknown[0][:40]}: is no key of a flow; use {', '.join(sorted(KEYS))}")
        if wanted.get("traffic", DEFAULT_KIND) not in KINDS:
            raise UsageError(f"traffic: a view starts {' or '.join(KINDS)}; put any other flow into the scenario")
        if self._begin_s is None:
            raise UsageError("the traffic of the run has not begun; start the flow when it has")
        if self._left_s() < MIN_LEFT_S:
            raise UsageError(f"the traffic of the run ends in less than {MIN_LEFT_S:g} s; start the flow in another run")
        seconds = wanted.get("seconds")
        if seconds is None:
            return
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not MIN_DURATION_S <= seconds <= self._length_s:
            raise UsageError(f"seconds: give a number of {MIN_DURATION_S:g} to {self._length_s:g}, or leave it out")
        if seconds > self._left_s():
            raise UsageError(f"seconds: the traffic of the run ends in {self._left_s():.1f} s; give less, or leave it out")

    def _left_s(self) -> float:
        assert self._begin_s is not None
        return self._begin_s + self._length_s - time.monotonic()

    def _with_flow(self, wanted: Mapping[str, Any]) -> Site:
        """The site with the present scenario and this flow, which starts now. UsageError."""
        start_s = round(self._length_s - self._left_s(), 3)
        seconds = wanted.get("seconds")
        stop_s = self._length_s if seconds is None else min(self._length_s, round(start_s + seconds, 3))
        keys = {key: wanted[key] for key in ("from", "to", "traffic", "size", "tcp") if wanted.get(key) is not None}
        entry = {**keys, "start": start_s, "stop": stop_s, "warmup": 0}
        scenario = self._site.scenario
        tables = scenario.model_dump(by_alias=True, mode="json")
        extended = validated(Scenario, {**tables, "flows": [*tables["flows"], entry]}, _refusal)
        if extended.flows[-1].tcp == scenario.tcp:  # needs no settings of its own
            extended = validated(Scenario, {**tables, "flows": [*tables["flows"], {**entry, "tcp": None}]}, _refusal)
        return replace(self._site, scenario=extended)

    def _write(self) -> None:
        scenario = self._site.scenario
        flows = scenario.model_dump(by_alias=True, mode="json")["flows"][self._own :]
        text = json.dumps({"format": ADDED_FORMAT, "flows": flows}, indent=1) + "\n"
        write_atomic(self._site.directory / ADDED_FLOWS, text)
        self._record(tcp={name: tcp.in_full for name, tcp in scenario.tcp_of_flows().items()})


def _text(scenario: Scenario) -> str:
    flow = scenario.flows[-1]
    size_bytes = getattr(flow, "size", None)  # a key of its kind
    size = "" if size_bytes is None else f" of {size_bytes} bytes"
    return f"{flow.traffic}{size}, {scenario.tcp_of(flow).spelled}, {scenario.seconds_of(flow):g} s"


def _refusal(path: tuple[str | int, ...], text: str) -> UsageError:
    """The error for a key of the last flow, or of the whole scenario with it."""
    name = ".".join(str(part) for part in (path[2:] if path[:1] == ("flows",) else path))
    return UsageError(f"{name}: {text}" if name else text)
