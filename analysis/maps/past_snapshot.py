"""The snapshot (snapshot.py) of an ended run or of a movement file: positions, links and paths of flows.

A run records its routes at the start and the end of its traffic only. So the path of a flow is that of the last packet which TCP
sent before the snapshot, from the air log and the captures (journeys.py). Datagrams have no journey and no path here.
There is no snapshot after the end of the run: later rows of a movement were never executed.
Links follow from the radio's range and the positions; a radio without a single range has no links here.
"""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from analysis.captures.rundir import RunDirectory
from analysis.maps.snapshot import FlowPath, Snapshot, azimuths_of, jammers_of
from analysis.metrics.radio_range import RECEIVED, SENSED, range_of_run
from analysis.story.journeys import ICMP_RECEIVED, ICMP_SENT
from analysis.story.story import Story, read_story
from mobility import connectivity
from mobility.trace import Trace
from record.errors import RecordError, RunFileError
from record.found_runs import title_of
from record.scenario import RunFlow

NO_FLOWS = "no flows: the scenario has none, what was sent was a script's own"
RATE_OVER_S = 1.0
UNPLACED = "the stations have no positions: they are drawn on a circle"
OLD_S = 1.0  # the age of a packet is printed from here on


def of_run(run: RunDirectory, at_s: float | None = None) -> Snapshot:
    """The snapshot `at_s` seconds after the start of the traffic, as in `manet story`; after the medium's start if no flow sent.
    None: the middle of the time in which all flows send; if none did, the end of a session, and of a run the medium's start."""
    when, at_s = ("", at_s) if at_s is not None else _unasked(run)
    clock, model_s = _clock(run), at_model_s(run, at_s)
    places = {entry["name"]: (entry["position"][0], entry["position"][1]) for entry in run.medium["stations"]}
    if (moved := run.trace) is not None:
        places |= _places(moved, model_s)
    off = off_at(run, model_s)
    range_m, sense_m = (range_of_run(run.path, run.medium, threshold) for threshold in (RECEIVED, SENSED))
    paths = f"paths: of the last packet that TCP sent before {at_s:g} s"
    note = NO_FLOWS if not run.flows else "" if run.begun_ns is None else paths
    note = "; ".join(filter(None, [note, without_positions(run)]))
    return Snapshot(
        f"{title_of(run.path)}: {at_s:g} s {clock}{when}", places, _links(places, range_m, off), off,
        tuple((wire.station, wire.host) for wire in run.wires),
        tuple(path_of(run, flow, at_s) for flow in run.flows), range_m, sense_m,
        run.scenario.area, note, jammers_of(run.medium, places), azimuths_of(run.medium), walls_of(run),
        links_known=range_m is not None,
    )  # fmt: skip


def walls_of(run: RunDirectory) -> tuple[tuple[tuple[float, float], tuple[float, float]], ...]:
    """The ends (m) of the walls of a run."""
    return tuple((tuple(wall["from"]), tuple(wall["to"])) for wall in run.medium.get("walls", ()))


def without_positions(run: RunDirectory) -> str:
    """A remark if the stations have no positions."""
    return UNPLACED if run.scenario.topology == "unplaced" else ""


def of_movement(made: Trace, at_s: float, range_m: float) -> Snapshot:
    """The snapshot at `at_s` (s, 0 or more) on the file's own clock, without routes and flows. RunFileError for a time after its
    end."""
    end_s = connectivity.end_of(made)
    if at_s > end_s:
        raise RunFileError(f"{made.name}: {at_s:g} s is after the movement's end; give a time of 0 to {_inwards(end_s):.1f} s")
    places = _places(made, at_s)
    return Snapshot(f"{Path(made.name).name}: {at_s:g} s", places, _links(places, range_m, frozenset()), range_m=range_m)


def at_model_s(run: RunDirectory, at_s: float) -> float:
    """The model time (s) of `at_s` seconds after the start of the traffic. RunFileError for a time outside of the run."""
    first_s = _first_s(run)
    last_s = first_s + _length_s(run)  # unknown of a killed run
    if first_s <= at_s <= last_s:
        return at_s - first_s
    if at_s < first_s:
        when, allowed = "before the medium's start", f"{0.0 - _inwards(-first_s):.1f} s or more"
    else:
        when, allowed = "after the run's end", f"{_inwards(last_s):.1f} s or less"
    raise RunFileError(f"{run.path}: {at_s:g} s {_clock(run)} is {when}; give a time of {allowed}")


def _clock(run: RunDirectory) -> str:
    return "of the medium (no traffic)" if run.begun_ns is None else "of the traffic"


def _first_s(run: RunDirectory) -> float:
    """The medium's start on the clock of the traffic: 0 or less."""
    return 0.0 if run.begun_ns is None else (run.epoch_ns - run.begun_ns) / 1e9


def _length_s(run: RunDirectory) -> float:
    try:
        length_ns = run.verdict.get("model_ns")
    except RunFileError:
        length_ns = None
    return math.inf if length_ns is None else length_ns / 1e9


def _unasked(run: RunDirectory) -> tuple[str, float]:
    """The time to show if none is given, in words and in seconds: the middle of the measured time, rounded to 0.1 s; of a run
    that ended early, the middle of the recorded part."""
    if run.begun_ns is None:
        length_s = _length_s(run)
        return (", its end", length_s) if "session_s" in run.run and math.isfinite(length_s) else ("", 0.0)
    begin_s = max((flow.start for flow in run.flows), default=0.0)
    end_s = min(run.scenario.traffic_seconds(), _first_s(run) + _length_s(run))
    return ", its middle", max(0.0, _inwards((min(begin_s, end_s) + end_s) / 2))


def _inwards(last_s: float) -> float:
    """The time rounded down to 0.1 s, so that the time suggested by an error is valid."""
    return math.floor(last_s * 10) / 10


def _places(made: Trace, at_s: float) -> dict[str, tuple[float, float]]:
    return {name: made.position(name, at_s)[:2] for name in made.stations()}


def _links(places: Mapping[str, tuple[float, float]], range_m: float | None, off: frozenset[str]) -> frozenset[tuple[str, str]]:
    if range_m is None:
        return frozenset()
    on = [(name, place) for name, place in places.items() if name not in off]
    return frozenset((a, b) for a, here in on for b, there in on if a != b and math.dist(here, there) <= range_m)


def off_at(run: RunDirectory, model_s: float) -> frozenset[str]:
    """Stations that are switched off at that time, by events.csv."""
    off: set[str] = set()
    for row in run.events:
        if row["event"] in ("power", "cut") and float(row["t_s"]) <= model_s:
            (off.discard if row["detail"] == "on" else off.add)(row["station"])
    return frozenset(off)


def path_of(run: RunDirectory, flow: RunFlow, at_s: float, known: Story | None = None) -> FlowPath:
    """The path of the flow's last packet before `at_s`, seconds of the traffic. `known`: its story, if it was read before."""
    nowhere = partial(FlowPath, flow.name, flow.source, flow.target, (flow.source,))
    try:
        if run.connection(flow) is None:
            return nowhere("nothing sent")
    except RecordError:
        return nowhere("no packet of it is known")
    if flow.protocol != "tcp":
        offered_bps = flow.kind.offered_bps(dict(flow))
        rate = f"{offered_bps / 1e3:.0f} kbit/s offered" if offered_bps else ""
        return nowhere("datagrams, whose path is not recorded", rate=rate)
    try:
        story = known or read_story(run, flow)
    except RecordError:
        return nowhere("no packet of it is known")
    before = [sent.journey for sent in story.data if story.seconds(sent.journey.sent_ns) <= at_s]
    if not before:
        return nowhere("nothing sent yet")
    last = max(before, key=lambda journey: journey.sent_ns)
    nodes = [flow.source]
    for step in last.steps:
        if step.kind not in (ICMP_SENT, ICMP_RECEIVED) and step.node not in nodes:
            nodes.append(step.node)
    ago_s = at_s - story.seconds(last.sent_ns)
    old = f" {ago_s:.1f} s before" if ago_s > OLD_S else ""
    stop = "" if last.received else f"{last.node or nodes[-1]}: {last.fate}{old}"
    return FlowPath(
        flow.name, flow.source, flow.target, tuple(nodes), stop, rate=_acknowledged(story, at_s) + (old if not stop else "")
    )


def _acknowledged(story: Story, at_s: float) -> str:
    """The acknowledged rate over the last RATE_OVER_S."""
    acks = [(story.seconds(ack.journey.at_ns), ack.next_byte) for ack in story.acknowledgements if ack.journey.received]
    before, now = (max((byte for time_s, byte in acks if time_s <= end_s), default=0) for end_s in (at_s - RATE_OVER_S, at_s))
    return f"{8 * (now - before) / RATE_OVER_S / 1e3:.0f} kbit/s acknowledged"
