"""A scenario that has not been started, as the page asks about it: positions, ranges, planned movement, events and flows.

The answers have the form of a recorded run's (formats/view.md), with no frame on the air. Times are model time in ns. The traffic
is drawn as if it began at `traffic_at`, or at 0 without it: a run needs some seconds until its network is up.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.metrics.radio_range import RECEIVED, SENSED, radio_of, range_of
from mobility.trace import Trace
from scenarios.events import by_time, command_names, worded
from scenarios.flows import FIRST_PORT
from scenarios.profiles import name_of
from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.stages.medium import planned_config
from testbed.stages.movement import planned_trace
from testbed.view.frames import DROPS, FATES, no_frames
from testbed.view.motion import motion
from topologies.addresses import ip_address

NOTHING: dict[str, dict[str, int]] = {"sent": {}, "drops": {}}


class PlannedRun:
    """The run of a scenario with one seed. Methods raise UsageError, one line each."""

    kind = "planned"

    def __init__(self, title: str, scenario: Scenario, seed: int, directory: Path) -> None:
        self.title, self.scenario, self.seed, self.directory = title, scenario, seed, directory

    @property
    def traffic_s(self) -> float:
        """The planned start of the traffic, s of model time."""
        return self.scenario.traffic_at or 0.0

    def about(self) -> dict[str, Any]:
        """`/api/run`."""
        scenario, medium = self.scenario, planned_config(self.scenario, self.seed)
        return {
            "kind": self.kind, "title": self.title, "directory": str(self.directory), "control": False, "running": False,
            "begin_ns": "0", "end_ns": str(round((self.traffic_s + scenario.traffic_seconds()) * 1e9)),
            "traffic_ns": str(round(self.traffic_s * 1e9)), "verdict": None, "status": None, "error": None, "seed": self.seed,
            "area": scenario.area, "walls": [[*wall.start, *wall.end] for wall in scenario.walls],
            "range_m": range_of(medium, RECEIVED), "sense_m": range_of(medium, SENSED),
            "queue_packets": scenario.queue, "slot_us": (radio_of(medium) or {}).get("slot_us"), "radio": name_of(scenario.radio),
            "routing": scenario.routing.protocol, "events": list(self._events()),
            "stations": [
                {"name": name, "address": ip_address(number)} for number, name in enumerate(scenario.station_names(), start=1)
            ],
            "wires": [[wire.station, wire.host] for wire in scenario.wires], "access_points": [],
            "flows": [
                {"name": name, "source": flow.source, "target": flow.target, "traffic": flow.traffic,
                 "transport": flow.kind.transport, "port": FIRST_PORT + place, "start_s": flow.start,
                 "tcp": scenario.tcp_of(flow).spelled if flow.has_tcp else None}
                for place, (name, flow) in enumerate(zip(scenario.flow_names(), scenario.flows, strict=True))
            ],
        }  # fmt: skip

    def movement(self) -> dict[str, Any]:
        """`/api/movement`: as planned, with the moves and switches of the scenario's events."""
        switches = [
            [round((self.traffic_s + event.at) * 1e9), event.power, event.on]
            for _, event in by_time(self.scenario.events)
            if event.power is not None
        ]
        return {"stations": {name: motion(self._trace, name) for name in self.scenario.station_names()}, "power": switches}

    def window(self, begin_ns: int, end_ns: int, _limit: int) -> tuple[bytes, int]:
        """`/api/frames`: none."""
        if not begin_ns < end_ns:
            raise UsageError(f"from={begin_ns}, to={end_ns}: is an empty time; give a later `to`")
        return no_frames(), 0

    def overview(self, begin_ns: int, end_ns: int, bins: int) -> dict[str, Any]:
        """`/api/overview`: nothing on the air."""
        nothing: dict[str, Any] = {"fates": {name: [] for name in FATES}, "drops": {name: [] for name in DROPS}}
        return {"from": str(begin_ns), "to": str(end_ns), "bins": bins, **nothing}

    def nav(self, _begin_ns: int, _end_ns: int) -> dict[str, Any]:
        """`/api/nav`: nothing is reserved."""
        return {"stations": {}}

    def counts(self) -> dict[str, Any]:
        """`/api/counts`: nothing."""
        return NOTHING

    def drops(self, _begin_ns: int, _end_ns: int, _limit: int) -> dict[str, Any]:
        """`/api/drops`: none."""
        return {"drops": []}

    def queues(self, at_ns: int) -> dict[str, Any]:
        """`/api/queues`: nothing waits."""
        return {"t_ns": str(at_ns), "queues": {}, "jamming": []}

    def lateness(self) -> dict[str, Any]:
        """`/api/lateness`: nothing was late yet."""
        return {name: [] for name in ("t", "p50_us", "p99_us", "max_us", "stalled_ms", "verdict")}

    def series(self, _flow: str, _begin_ns: int, _end_ns: int, _points: int) -> dict[str, Any]:
        """`/api/series`: nothing."""
        return {}

    def routes(self, at_ns: int) -> dict[str, Any]:
        """`/api/routes`: none are known before a run."""
        return {"t_ns": str(at_ns), "paths": []}

    def station(self, name: str, at_ns: int) -> dict[str, Any]:
        """`/api/station/NAME`: whether it is on, by the events."""
        if name not in self.scenario.station_names():
            raise UsageError(f"station {name!r}: is not in this scenario; there are {', '.join(self.scenario.station_names())}")
        switches = [on for t_ns, who, on in self.movement()["power"] if who == name and t_ns <= at_ns]
        on = switches[-1] if switches else True
        return {"name": name, "on": on, "queue": [], "sending": None, "counts": NOTHING, "data": None, "rates": []}

    @cached_property
    def _trace(self) -> Trace:
        return planned_trace(self.scenario, self.seed)

    def _events(self) -> Iterator[dict[str, str]]:
        """The events in the form of events.csv."""
        names, events = command_names(self.scenario.events), self.scenario.events
        stations = {name: str(events[index].station) for index, name in names.items()}
        for index, event in by_time(events):
            station, detail = worded(event, names.get(index))
            station = station or stations.get(event.name or "", "")
            yield {
                "t_s": f"{self.traffic_s + event.at:.6f}", "at_s": f"{event.at:g}", "event": event.kind, "station": station,
                "detail": detail, "source": "scenario",
            }  # fmt: skip
