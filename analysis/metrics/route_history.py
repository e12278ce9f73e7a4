"""Routes of a flow over time, as the daemon of its own end reported them (routing/<station>.jsonl, formats/routing.md).

The station is the flow's source, or its target if the source is a wired host. Its route leads to the other end, or to the
gateway of a wired host: of several gateways to the one that the flow's packets pass (analysis/metrics/gateways.py). If the
station has no route to that one, or no packet was captured, it is the one that the daemon chose (note `gateway`), or the nearest.
Third-party daemons leave no notes, and DSR notes a path only when a packet is sent over it.
"""

from dataclasses import dataclass

from analysis.captures.routing_notes import Note, notes_path, read_notes
from analysis.captures.rundir import RunDirectory
from analysis.metrics.gateways import gateways_used
from record.errors import RecordError
from record.scenario import RunFlow
from traffic.shared.kind import Metric

ROUTES = (
    Metric("hop_changes", "changes", "how often the hop count of the route from the flow's station to the other end changed in "
           "the window, by the notes of our own daemons ([below](#definitions))", always=False),
    Metric("route_changes", "changes", "how often the hop count or the next hop of that route changed", always=False),
)  # fmt: skip
PASSED = "passed"  # beside the daemon's notes: the flow's packets pass this gateway


@dataclass(frozen=True)
class Taken:
    """A route to the address `to` from `t_ns` (model time) on; all but the time are None while there is none."""

    t_ns: int
    hops: int | None
    via: str | None
    to: str | None


def route_history(run: RunDirectory, flow: RunFlow) -> list[Taken] | None:
    """The flow's routes in the order of time, each different from the one before; None if no station of the flow has notes."""
    hosts = {wire.host for wire in run.wires}
    station, other = (flow.target, flow.source) if flow.source in hosts else (flow.source, flow.target)
    if station in hosts or not notes_path(run.path, station).exists():
        return None
    gateways = run.gateways_of(other)
    if station in gateways:
        return None
    notes, addresses = read_notes(run.path, station), [run.address(gateway) for gateway in gateways]
    if len(gateways) == 1:
        return _history(notes, addresses)
    try:
        used = gateways_used(run, flow)
    except RecordError:  # a capture is missing: the notes remain
        used = []
    passed = [{"t_ns": t_ns - run.epoch_ns, "event": PASSED, "about": run.address(gateway)} for t_ns, gateway in used]
    if passed:
        passed[0]["t_ns"] = 0  # the first packet takes what was there before
    return _history(sorted(notes + passed, key=lambda note: note["t_ns"]), addresses)


def route_metrics(run: RunDirectory, flow: RunFlow, begin_ns: int, end_ns: int) -> dict[str, int]:
    """`hop_changes` and `route_changes` between two instants (CLOCK_REALTIME, ns); empty without notes. The first route of all is
    no change; another gateway is a change of route."""
    taken = route_history(run, flow)
    if taken is None:
        return {}
    begin_ns, end_ns = begin_ns - run.epoch_ns, end_ns - run.epoch_ns
    hops = routes = 0
    known: int | None = None
    for route in taken:
        if route.t_ns >= end_ns:
            break
        if route.hops is None:
            continue
        if known is not None and route.t_ns >= begin_ns:
            routes += 1
            hops += route.hops != known
        known = route.hops
    return {"hop_changes": hops, "route_changes": routes}


def _history(notes: list[Note], destinations: list[str]) -> list[Taken]:
    routes: dict[str, tuple[int, str]] = {}
    passed: str | None = None
    chosen: str | None = None
    found: list[Taken] = []
    for note in notes:
        about = note.get("about")
        if note["event"] == "started":
            routes, chosen = {}, None
        elif about not in destinations or note.get("prefix", 32) != 32:
            continue
        elif note["event"] == "route":
            routes[about] = (note["value"], note.get("via") or about)
        elif note["event"] == "lost":
            routes.pop(about, None)
        elif note["event"] == "gateway":
            chosen = about if note["value"] else None
        elif note["event"] == PASSED:
            passed = about
        else:
            continue
        in_use = next((gateway for gateway in (passed, chosen) if gateway in routes), None)
        to = in_use or min(routes, key=lambda gateway: routes[gateway], default=None)
        hops, via = routes[to] if to else (None, None)
        if not found or (found[-1].hops, found[-1].via, found[-1].to) != (hops, via, to):
            found.append(Taken(note["t_ns"], hops, via, to))
    return [route for number, route in enumerate(found) if number or route.hops is not None]
