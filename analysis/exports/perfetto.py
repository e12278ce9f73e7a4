"""A run as a trace for Perfetto (https://ui.perfetto.dev): a track for each station, with its frames on the air and the segments
in its queue as slices; arrows lead from station to station through the story of a segment; windows and RTTs are counters.

Times are model time (ns since the start of the medium).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import IO, Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from analysis.captures.rundir import RunDirectory
from analysis.story.journeys import ARRIVED, FORWARDED, HELD, RESENT, SENT, Journey
from analysis.story.story import Story, read_story
from record.files import atomic_file

SUFFIX = ".pftrace"
SEQUENCE = 1  # the one writer of the trace
END_NS = 1_000  # shown length of the end of a packet, which has none
WAITS = (SENT, RESENT, FORWARDED, HELD)
DETAILS = ("peer", "packet", "attempt", "bytes", "rate_bps", "backoff_slots", "fate", "receivers", "power_dbm")


@dataclass
class Slice:
    """A bar on a track, in ns of model time; `flows` are the arrows that lead through it, `ends` those that end here."""

    begin_ns: int
    end_ns: int
    name: str
    details: dict[str, Any] = field(default_factory=dict)
    flows: tuple[int, ...] = ()
    ends: bool = False


def write(run: RunDirectory, out: Path) -> None:
    """Write the trace of a run."""
    with atomic_file(out, "wb") as file:
        _write(run, file)


def _write(run: RunDirectory, file: IO[bytes]) -> None:
    stories = [read_story(run, flow) for flow in run.flows if flow.protocol == "tcp" and run.connection(flow) is not None]
    arrows = {number: arrow for story in stories for number, arrow in _arrows_of_packets(story)}
    trace = _Trace(file)
    nodes = list(dict.fromkeys(entry.node for entry in run.captured))
    own = {node: trace.track(node) for node in nodes}
    frames = _frames(run, arrows)
    for node in nodes:
        trace.slices(trace.track("air", own[node]), frames.get(node, []))
        for story in stories:
            for lane in lanes(_segments(story, node)):
                trace.slices(trace.track(f"{story.flow.name} queue", own[node]), lane)
    for story in stories:
        _counters(trace, story, own[story.flow.source])


def lanes(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Distribute slices over as few tracks as possible, without overlaps: a track shows nested slices only."""
    found: list[list[Slice]] = []
    free: list[tuple[int, int]] = []  # end of the last slice of a lane, number of the lane
    for one in sorted(slices, key=lambda one: (one.begin_ns, one.end_ns)):
        if free and free[0][0] <= one.begin_ns:
            _, number = heappop(free)
        else:
            number = len(found)
            found.append([])
        found[number].append(one)
        heappush(free, (one.end_ns, number))
    return found


def _frames(run: RunDirectory, arrows: dict[int, int]) -> dict[str, list[Slice]]:
    """The frames that each station sent, and the packets that it dropped."""
    found: dict[str, list[Slice]] = {}
    for row in run.air.filter(run.air["event"].is_in(["tx", "drop"])).iter_rows(named=True):
        sent = row["event"] == "tx"
        lost = row["fate"] not in ("", "delivered")
        name = f"{row['frame']} {row['fate']}" if sent and lost else row["frame"] if sent else f"drop {row['fate']}"
        details = {key: row[key] for key in DETAILS if row[key] not in (None, "")}
        end_ns = row["t_ns"] + max(row["airtime_ns"] or 0, END_NS)
        flow = arrows.get(row["packet"]) if sent else None
        found.setdefault(row["station"], []).append(Slice(row["t_ns"], end_ns, name, details, () if flow is None else (flow,)))
    return found


def _journeys(story: Story) -> Iterator[tuple[int, str, Journey]]:
    """Every packet of a flow, with the number of its arrow and its name."""
    first = int(story.flow.name.removeprefix("flow")) << 32
    sent = [(one.name + ("" if one.kind == "first" else f" {one.kind}"), one.journey) for one in story.transmissions]
    sent += [(f"ack {one.segment}", one.journey) for one in story.acknowledgements]
    for number, (name, journey) in enumerate(sent, start=1):
        yield first + number, name, journey


def _arrows_of_packets(story: Story) -> Iterator[tuple[int, int]]:
    for arrow, _, journey in _journeys(story):
        for step in journey.steps:
            if step.air is not None:
                yield step.air.number, arrow


def _segments(story: Story, node: str) -> Iterator[Slice]:
    """The time that each packet of the flow spent at a node: from the step that brought it into a queue to the next step."""
    for arrow, name, journey in _journeys(story):
        for number, step in enumerate(journey.steps):
            if step.node != node:
                continue
            last = number == len(journey.steps) - 1
            begin_ns = step.t_ns - story.run.epoch_ns
            details = {"step": step.kind, "fate": journey.fate, "sequence": journey.sequence, "bytes": journey.payload_bytes}
            if step.reason:
                details["reason"] = step.reason
            if step.kind in WAITS and not last:
                yield Slice(
                    begin_ns, max(journey.steps[number + 1].t_ns - story.run.epoch_ns, begin_ns + 1), name, details, (arrow,)
                )
            elif last or step.kind not in (*WAITS, ARRIVED):
                yield Slice(begin_ns, begin_ns + END_NS, f"{name} {step.kind}", details, (arrow,), ends=last)


def _counters(trace: "_Trace", story: Story, parent: int) -> None:
    """Window and RTT of the sender's TCP over time, and its events."""
    name, epoch_ns = story.flow.name, story.run.epoch_ns
    samples = story.samples.select("t_ns", "snd_cwnd", "srtt_us").drop_nulls()
    window, rtt = (trace.track(f"{name} {what}", parent, counter=unit) for what, unit in (("cwnd", "segments"), ("srtt", "ms")))
    for t_ns, cwnd, srtt_us in samples.iter_rows():
        trace.count(window, t_ns - epoch_ns, cwnd)
        trace.count(rtt, t_ns - epoch_ns, srtt_us / 1e3)
    events = trace.track(f"{name} events", parent)
    for event in sorted([*story.tcp_events, *story.scenario_events], key=lambda event: event.t_ns):
        trace.instant(events, event.t_ns - epoch_ns, f"{event.event} {event.detail}".strip())


class _Trace:
    """Writes packets of Perfetto's trace format; tracks are numbered in the order of their creation."""

    def __init__(self, file: IO[bytes]) -> None:
        self._builder, self._tracks = StreamingTraceProtoBuilder(file), 0

    def track(self, name: str, parent: int | None = None, *, counter: str = "") -> int:
        """A new track; tracks of one name below one parent are shown as one."""
        self._tracks += 1
        packet = self._builder.create_packet()
        descriptor = packet.track_descriptor
        descriptor.uuid, descriptor.name = self._tracks, name
        if parent is not None:
            descriptor.parent_uuid = parent
        if counter:
            descriptor.counter.unit_name = counter
        self._builder.write_packet(packet)
        return self._tracks

    def slices(self, track: int, slices: list[Slice]) -> None:
        """Slices of one track that do not overlap, in any order."""
        for one in sorted(slices, key=lambda one: one.begin_ns):
            event = self._event(track, one.begin_ns, TrackEvent.TYPE_SLICE_BEGIN, one.name)
            (event.track_event.terminating_flow_ids if one.ends else event.track_event.flow_ids).extend(one.flows)
            for key, value in one.details.items():
                note = event.track_event.debug_annotations.add()
                note.name = key
                if isinstance(value, str):
                    note.string_value = value
                elif isinstance(value, float):
                    note.double_value = value
                else:
                    note.int_value = value
            self._builder.write_packet(event)
            self._builder.write_packet(self._event(track, one.end_ns, TrackEvent.TYPE_SLICE_END))

    def instant(self, track: int, t_ns: int, name: str) -> None:
        """A mark."""
        self._builder.write_packet(self._event(track, t_ns, TrackEvent.TYPE_INSTANT, name))

    def count(self, track: int, t_ns: int, value: float) -> None:
        """A value of a counter, which holds until the next."""
        packet = self._event(track, t_ns, TrackEvent.TYPE_COUNTER)
        packet.track_event.double_counter_value = value
        self._builder.write_packet(packet)

    def _event(self, track: int, t_ns: int, kind: int, name: str = "") -> Any:
        packet = self._builder.create_packet()
        packet.timestamp = max(t_ns, 0)  # before the medium's start nothing is on the air
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.track_event.type, packet.track_event.track_uuid = kind, track
        if name:
            packet.track_event.name = name
        return packet
