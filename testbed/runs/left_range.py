"""Static routes that moving stations outlive: a remark before the run.

Static routes are those of the start positions (testbed/stages/routing/static.py). Once two stations of a route are out of range
of each other, its flow carries nothing, and nothing says so. By the radio's range and the planned movement it is known before.
"""

import json
import math
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from analysis.metrics.radio_range import range_of
from scenarios.scenario import Scenario
from testbed.stages.medium import planned_config
from testbed.stages.movement import planned_trace
from testbed.stages.routing.static import next_hops
from topologies.connectivity import path

if TYPE_CHECKING:
    from mobility.connectivity import Contact

KEPT = 'routing "static" keeps the routes of the start positions'
REMEDY = "for routes that follow the stations take a protocol, as in --set routing=aodv"


def static_route_notes(scenarios: Iterable[Scenario], seed: int) -> list[str]:
    """A line for the first scenario with static routes that its movement breaks, with the number of the others that differ from
    it in this; none without such a scenario. `seed`: of the movement. Raises UsageError."""
    notes: dict[str, str | None] = {}
    for scenario in scenarios:
        if scenario.routing.protocol == "static" and (scenario.mobility.moving or _moves(scenario)):
            medium = planned_config(scenario, seed)
            key = _decisive(scenario, medium)
            notes[key] = notes[key] if key in notes else _note(scenario, medium, seed)
    said = [note for note in notes.values() if note]
    return [said[0] + (f" ({len(said) - 1} more scenarios have the like)" if len(said) > 1 else "")] if said else []


def _moves(scenario: Scenario) -> list[tuple[Any, ...]]:
    """The events that move a station."""
    return [(event.at, event.move, event.to, event.speed) for event in scenario.events if event.move is not None]


def _decisive(scenario: Scenario, medium: dict[str, Any]) -> str:
    """A text that is equal for scenarios with the same note."""
    ends = [(flow.source, flow.target) for flow in scenario.flows]
    parts = [medium[key] for key in ("radio", "radio_overrides", "propagation", "stations")]
    parts += [medium.get("hwsim"), scenario.mobility.model_dump_json(), scenario.area, scenario.traffic_at]
    return json.dumps([*parts, scenario.traffic_seconds(), _moves(scenario), ends])


def _note(scenario: Scenario, medium: dict[str, Any], seed: int) -> str | None:
    from mobility.connectivity import links  # numpy: only where stations move

    if scenario.propagation.model in ("matrix", "trace"):
        return None  # positions decide nothing
    range_m = range_of(medium)
    if range_m is None:
        return f"{KEPT} while stations move: a flow carries nothing while two stations of its route are out of range; {REMEDY}"
    traffic_s = scenario.traffic_at or 0.0
    end_s = traffic_s + scenario.traffic_seconds()
    broken = _broken(scenario, links(planned_trace(scenario, seed), range_m, 0.0, end_s).contacts, end_s)
    if not broken:
        return None
    at_s, flow, (one, other) = min(broken)
    more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
    where = f"from {max(0.0, at_s - traffic_s):.1f} s of the traffic on {other} is out of range of {one} ({range_m:.0f} m)"
    return f"{KEPT}, and {where}: {flow}{more} then carries nothing; {REMEDY}"


def _broken(scenario: Scenario, contacts: "list[Contact]", end_s: float) -> list[tuple[float, str, tuple[str, str]]]:
    """Of each flow whose route breaks before `end_s` (s), the time, its name and the two stations that part."""
    until = {contact.ends: contact.end_s for contact in contacts if contact.begin_s <= 0.0}
    both = [*until, *(ends[::-1] for ends in until)]
    routes, gateways = next_hops(scenario.station_names(), both), scenario.gateways()
    broken = []
    for name, flow in zip(scenario.flow_names(), scenario.flows, strict=True):
        source, target = (gateways.get(end, end) for end in (flow.source, flow.target))
        hops = pairwise(path(routes, source, target)) if source != target else ()
        parted = [(until.get(hop, until.get(hop[::-1], math.inf)), hop) for hop in hops]
        if parted and min(parted)[0] < end_s:
            broken.append((min(parted)[0], name, min(parted)[1]))
    return broken
