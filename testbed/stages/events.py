"""The stage that carries out a scenario's events while the traffic runs, each at its time: `at` counts from its start.

events.csv lists each action and the model time right after it: a `cut` determines the station only when it is carried out. Events
of daemons and commands take time: each has a thread of its own, so that no later event waits for it, except one of the same
daemon or command. An event that cannot be carried out ends the run (by the check in every stage's `watch`).
"""

import csv
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from record.events_file import SCENARIO
from scenarios.events import Event, by_time, command_names, worded
from testbed.errors import HostLateError, ManetError, RunError
from testbed.host.processes import Processes
from testbed.stages.control import MediumControl
from testbed.stages.medium import Medium
from testbed.stages.site import Site

IN_USE_S = 1.0  # a relay is in use if it received frames within this time
Starved = Callable[[], str | None]  # the message if the stations' programs get no processor time (testbed/runs/waits.py)
AIR_ROWS = 1000  # the maximum that the medium keeps for its socket (formats/sockets.md)


class Events:
    """The events of one run; `begin` sets the start of the traffic. `do` carries one out and records it, with its source."""

    def __init__(self, events: Sequence[Event], do: Callable[[Event, str], object]) -> None:
        names = command_names(events)
        self.events = [event.model_copy(update={"name": names.get(index, event.name)}) for index, event in by_time(events)]
        self._do = do
        self._start_s = 0.0
        self._go, self._stop = threading.Event(), threading.Event()
        self._problem: ManetError | None = None
        self._thread = threading.Thread(target=self._work, name="events", daemon=True)
        self._aside: dict[str, threading.Thread] = {}  # the last thread of each daemon and command

    def begin(self, start_s: float) -> None:
        """The traffic starts at the monotonic instant `start_s`."""
        self._start_s = start_s
        self._go.set()

    def check(self) -> None:
        """Raise the error of an event that could not be carried out."""
        if self._problem is not None:
            raise self._problem

    def start(self) -> None:
        """Start the thread; it waits for `begin`."""
        self._thread.start()

    def end(self) -> None:
        """End the thread, and wait for it."""
        self._stop.set()
        self._go.set()
        self._thread.join()

    def _work(self) -> None:
        self._go.wait()
        for event in self.events:
            if self._stop.wait(max(0.0, self._start_s + event.at - time.monotonic())) or self._problem is not None:
                break
            if event.kind in ("daemon", "command"):
                self._begin_aside(event)
            else:
                self._carry_out(event)
        for thread in self._aside.values():
            thread.join()

    def _begin_aside(self, event: Event) -> None:
        """Carry out an event of a daemon or a command in a thread, after the last one of the same daemon or command."""
        target = f"daemon {event.station}" if event.daemon else f"command {event.name}"
        thread = threading.Thread(
            target=self._carry_out, args=(event, self._aside.get(target)), name=f"event of {target}", daemon=True
        )
        self._aside[target] = thread
        thread.start()

    def _carry_out(self, event: Event, before: threading.Thread | None = None) -> None:
        """Carry an event out, after the thread `before`; the first problem is kept, and ends the run."""
        if before is not None:
            before.join()
        try:
            if self._problem is None:
                self._do(event, SCENARIO)
        except ManetError as problem:
            self._problem = self._problem or problem
        except OSError as problem:
            self._problem = self._problem or RunError(f"events: {event.kind} at {event.at:g} s: {problem.strerror}; see log/")


@contextmanager
def events_running(events: Sequence[Event], do: Callable[[Event, str], object], children: Processes) -> Iterator[Events]:
    """Carry out the scenario's events after `begin`, each by `do`. Raises the error of a failed event."""
    running = Events(events, do)
    if not events:
        yield running
        return
    running.start()
    children.checks.append(running.check)
    try:
        yield running
    finally:
        children.checks.remove(running.check)
        running.end()
    running.check()


def carry_out(control: MediumControl | Medium, event: Event, starved: Starved = lambda: None) -> tuple[str, str]:
    """Carry out an event of the medium; returns station and detail as events.csv lists them."""
    match event.kind:
        case "power":
            control.ask("power", station=event.power, on=event.on)
            return worded(event)
        case "link":
            one, other = event.link or ("", "")
            for ends in ((one, other), (other, one)):
                control.ask("link", **dict(zip(("from", "to"), ends, strict=True)), error_rate=event.error_rate)
            return worded(event)
        case "wire":
            one, other = event.wire or ("", "")
            control.ask("wire", **{"from": one, "to": other}, stalled=event.stalled)
            return worded(event)
        case "move":
            to = [float(value) for value in event.to or ()]
            speed = {} if event.speed is None else {"speed_mps": event.speed}
            control.ask("move", station=event.move, position=[*to, 0.0][:3], **speed)
            return worded(event)
        case _:
            relay = relay_in_use(control, str(event.source), str(event.to), starved)
            control.ask("power", station=relay, on=False)
            return relay, worded(event)[1]


def relay_in_use(control: MediumControl | Medium, source: str, target: str, starved: Starved = lambda: None) -> str:
    """The neighbour that recently relayed most bytes of `source`.

    Taken from the air log instead of a route table: this works for every protocol, also with source routes, and shows actual use.
    RunError without a relay; HostLateError instead on a loaded host, because the run is void then and the scenario may be right.
    """
    status = control.ask("status")
    model_ns = status["model_ns"]
    answer = control.ask("air", last=AIR_ROWS)
    relayed: Counter[str] = Counter()
    for row in csv.DictReader([answer["header"], *answer["rows"]]):
        is_relayed = row["event"] == "deliver" and row["frame"] == "data" and row["peer"] == source
        if is_relayed and row["station"] != target and int(row["t_ns"]) > model_ns - IN_USE_S * 1e9:
            relayed[row["station"]] += int(row["bytes"])
    if not relayed:
        none = f"events: cut: no station relayed frames of {source} within the last {IN_USE_S:g} s"
        busy = lateness_reason(status) or starved()
        if busy is not None:
            raise HostLateError(f"{none}: the host was too busy ({busy}); run it again with fewer --jobs or on an idle machine")
        raise RunError(f"{none}; is there a route to {target} over a relay, and traffic, at that time?")
    return relayed.most_common(1)[0][0]


def lateness_reason(status: Mapping[str, Any]) -> str | None:
    """The reason if the medium's verdict is void by now; None otherwise."""
    if status.get("verdict") != "void":
        return None
    return f"the medium was up to {status.get('lateness', {}).get('max_us', 0) / 1000:.0f} ms late"


def require_before_traffic_at(site: Site, medium: Medium, others_s: float) -> None:
    """RunError if the scenario's `traffic_at` has passed before the network is ready. `others_s`: processor time that other
    programs have taken meanwhile. They cannot have delayed the start for longer: HostLateError, after which the run is repeated,
    only if it might have been in time without them."""
    late_s, at_s = -_left_s(site, medium), site.scenario.traffic_at
    if late_s <= 0:
        return
    text = f"the network was ready {late_s:.1f} s after traffic_at = {at_s:g} s"
    if late_s <= others_s:
        raise HostLateError(f"{text}; give a later one, or leave it out")
    slow = f"other programs took {others_s:.1f} s: the {len(site.scenario.station_names())} stations need longer here"
    raise RunError(f"{text}, and {slow}; give a later one, or leave it out")


def wait_for_traffic_at(site: Site, medium: Medium, children: Processes, early_s: float = 0.0) -> None:
    """Wait until `early_s` before the scenario's `traffic_at`, if it is set and still to come."""
    children.watch(until=time.monotonic() + _left_s(site, medium) - early_s)


def _left_s(site: Site, medium: Medium) -> float:
    """Seconds until `traffic_at`, negative after it; 0 without it."""
    at_s = site.scenario.traffic_at
    return 0.0 if at_s is None else at_s - medium.ask("status")["model_ns"] / 1e9
