"""The story of a TCP flow: each transmission of each segment from queue to queue until it was received or dropped, the journeys
of its ACKs, and the events of its TCP between them; after the packet traces of Holland and Vaidya (1999), table 1 and figure
6.

Times are seconds from the start of the traffic, from which the scenario's events count too (RunDirectory.traffic_ns). Segments
are numbered from 1 in the order in which their first byte was first sent; a retransmission with other boundaries belongs to the
segment that contains its first byte. The SYN is segment 0. A transmission counts as sent when it was captured leaving its source,
or when the source's routing daemon reports that it gave it up.
"""

import gc
import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import polars as pl

from analysis.captures import tcp_samples
from analysis.captures.connections import Connection
from analysis.captures.plain_frames import FIN, SYN
from analysis.captures.rundir import RunDirectory
from analysis.captures.sequence import unwrap
from analysis.story.journeys import NO_RECORD, PROBE_NS, Journey, journeys, read_traces
from record.errors import RunFileError
from record.scenario import RunFlow
from traffic import kinds_with_tcp

FIRST, AGAIN, PROBE = "first", "again", "probe"


@dataclass
class Transmission:
    """A data segment, SYN or FIN as TCP sent it once; `start` and `end` are bytes from the first after the SYN."""

    segment: int
    start: int
    end: int
    kind: str  # FIRST, AGAIN or PROBE
    journey: Journey
    acked_ns: int | None = None  # time at which an ACK of all its bytes first reached the source
    label: str = ""  # SYN or FIN; empty for data
    outstanding: bool = False  # at the end of the record its bytes are acknowledged by no ACK, not even one for another copy

    @property
    def name(self) -> str:
        """`SYN`, `FIN` or `tcp N` with the number of the segment."""
        return self.label or f"tcp {self.segment}"


@dataclass
class Acknowledgement:
    """An ACK as the target sent it; `next_byte` is the byte that it asks for, `segment` the last one that it covers."""

    segment: int
    next_byte: int
    journey: Journey


class TcpEvent(NamedTuple):
    """An event of a TCP or of the scenario; `t_ns` is ns since the Unix epoch."""

    t_ns: int
    node: str
    event: str
    detail: str


@dataclass
class Story:
    """A flow of one run: its transmissions and ACKs with their fates, and its events."""

    run: RunDirectory
    flow: RunFlow
    connection: Connection
    transmissions: list[Transmission]
    acknowledgements: list[Acknowledgement]
    tcp_events: list[TcpEvent]
    rows: pl.DataFrame = field(repr=False)  # of the sender in tcp.csv: samples and events

    def seconds(self, t_ns: int) -> float:
        """Seconds after the start of the traffic."""
        return (t_ns - self.run.traffic_ns) / 1e9

    @cached_property
    def scenario_events(self) -> list[TcpEvent]:
        """The scenario's events as they were executed."""
        timed = ((self.run.epoch_ns + round(float(row["t_s"]) * 1e9), row) for row in self.run.events)
        return [TcpEvent(t_ns, row["station"], row["event"], row["detail"]) for t_ns, row in timed]

    @cached_property
    def stand_bys(self) -> list[tuple[int, int | None]]:
        """Begin and end of each stand-by, ns; None: it never ended."""
        return tcp_samples.stand_bys(self.rows)

    @property
    def samples(self) -> pl.DataFrame:
        """The samples of `rows`, without the events."""
        return tcp_samples.samples(self.rows)

    @property
    def last_s(self) -> float:
        """Time of the last packet or sample, seconds of the traffic."""
        ends = [packet.journey.steps[-1].t_ns for packet in self.packets]
        return self.seconds(max([*ends, *self.samples["t_ns"].to_list()]))

    @property
    def stand_bys_s(self) -> list[tuple[float, float]]:
        """Begin and end of each stand-by, s. One that never ended lasts to the last packet."""
        last_s = self.last_s
        spans = [(self.seconds(begin), last_s if end is None else self.seconds(end)) for begin, end in self.stand_bys]
        return [(begin_s, max(begin_s, end_s)) for begin_s, end_s in spans]

    @property
    def tcp(self) -> str:
        """The TCP as the scenario spells it, with every parameter if the run recorded them."""
        return (self.run.run.get("tcp") or {}).get(self.flow.name) or self.run.scenario.tcp_text(self.flow)

    @property
    def routing(self) -> str:
        """The routing protocol's name."""
        return self.run.scenario.protocol

    @property
    def packets(self) -> list[Transmission | Acknowledgement]:
        """Everything that either end sent."""
        return [*self.transmissions, *self.acknowledgements]

    @property
    def data(self) -> list[Transmission]:
        """Transmissions of data, without SYN and FIN."""
        return [sent for sent in self.transmissions if not sent.label]


def flow_named(run: RunDirectory, number: int) -> RunFlow:
    """Flow `number` of the scenario, from 1; a RunFileError that names the existing flows."""
    if not run.flows:
        raise RunFileError(f"{run.path / 'scenario.json'}: the run has no flows; what its script or prompt sent is in captures/")
    if not 1 <= number <= len(run.flows):
        there = "flow 1" if len(run.flows) == 1 else f"flows 1 to {len(run.flows)}"
        raise RunFileError(f"{run.path / 'scenario.json'}: no flow {number}; there is {there}")
    return run.flows[number - 1]


def read_story(run: RunDirectory, flow: RunFlow) -> Story:
    """Read the story of a TCP flow from the run's files; a RunFileError for a flow of another protocol or without packets."""
    if flow.protocol != "tcp":
        of_tcp = ", ".join(kinds_with_tcp())
        raise RunFileError(f"{run.path / 'scenario.json'}: {flow.name} is {flow.traffic}; only TCP ({of_tcp}) has a story")
    if (tcp := run.tcp(flow)) is None:
        raise RunFileError(f"{run.path / 'captures' / flow.source}.pcap: no packet of {flow.name}; did it start?")
    connection, isn, rows = tcp
    of_events = rows.filter(pl.col("event") != "").select("t_ns", "station", "event", "detail")
    events = [TcpEvent(*row) for row in of_events.iter_rows()]
    probes_ns = [event.t_ns for event in events if event.event == "probe"]
    with _without_collections():
        traces = read_traces(run, connection)
        forward = journeys(traces, connection, flow.source, flow.target, probes_ns)
        backward = journeys(traces, connection.reversed(), flow.target, flow.source)
        sent = [journey for journey in forward if journey.payload_bytes or journey.flags & (SYN | FIN)]
        answers = [journey for journey in backward if not journey.flags & SYN and journey.acknowledgement is not None]
        raw = [journey.sequence for journey in sent], [journey.acknowledgement or 0 for journey in answers]
        starts, next_bytes = (unwrap(numbers, isn + 1).tolist() for numbers in raw)
        transmissions = _transmissions(sent, starts, probes_ns)
        acknowledgements = _acknowledgements(answers, next_bytes, transmissions)
        _mark_acknowledged(transmissions, acknowledgements)
    return Story(run, flow, connection, transmissions, acknowledgements, events, rows)


@contextmanager
def _without_collections() -> Iterator[None]:
    """The packets of a long run are a million objects that all stay, which the collector would visit again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _transmissions(sent: list[Journey], starts: list[int], probes_ns: list[int]) -> list[Transmission]:
    """The packets that take sequence numbers, numbered by segment."""
    numbered = _first_starts([(start, journey) for start, journey in zip(starts, sent, strict=True) if journey.payload_bytes])
    seen: set[tuple[int, str]] = set()
    transmissions = []
    for start, journey in zip(starts, sent, strict=True):
        label = "" if journey.payload_bytes else "SYN" if journey.flags & SYN else "FIN"
        segment = 0 if label == "SYN" else bisect_right(numbered, start) + (label == "FIN")
        kind = AGAIN if (segment, label) in seen else FIRST
        if any(abs(journey.sent_ns - probe_ns) < PROBE_NS for probe_ns in probes_ns) and kind == AGAIN:
            kind = PROBE
        seen.add((segment, label))
        transmissions.append(Transmission(segment, start, start + journey.payload_bytes, kind, journey, label=label))
    return transmissions


def _first_starts(sent: list[tuple[int, Journey]]) -> list[int]:
    """First bytes of the segments: the begin of each transmission that contains bytes beyond all earlier ones."""
    starts, highest = [], 0
    for start, journey in sent:
        if start >= highest:
            starts.append(start)
        highest = max(highest, start + journey.payload_bytes)
    return starts


def _acknowledgements(sent: list[Journey], next_bytes: list[int], transmissions: list[Transmission]) -> list[Acknowledgement]:
    ends = sorted({one.end: one.segment for one in reversed(transmissions) if not one.label}.items())
    acknowledgements = []
    for next_byte, journey in zip(next_bytes, sent, strict=True):
        place = bisect_right(ends, (next_byte, 1 << 62)) - 1
        acknowledgements.append(Acknowledgement(ends[place][1] if place >= 0 else 0, next_byte, journey))
    return acknowledgements


def _mark_acknowledged(transmissions: list[Transmission], acknowledgements: list[Acknowledgement]) -> None:
    """Each transmission gets the first ACK of all its bytes that reached the source after it was sent; those without any are
    outstanding at the end of the record."""
    arrived = sorted((ack.journey.at_ns, ack.next_byte) for ack in acknowledgements if ack.journey.received)
    times_ns, highest = [at_ns for at_ns, _ in arrived], list(accumulate((next_byte for _, next_byte in arrived), max))
    for sent in transmissions:
        place = max(bisect_left(times_ns, sent.journey.sent_ns), bisect_left(highest, sent.end))
        sent.acked_ns = times_ns[place] if place < len(arrived) else None
        sent.outstanding = not highest or sent.end > highest[-1]


def totals(all_sent: list[Journey]) -> dict[str, Any]:
    """Counts of sent, received, dropped (by reason, by node) and unrecorded packets; the last three sum to the first."""
    lost = [journey for journey in all_sent if not journey.received and journey.fate != NO_RECORD]
    dropped: dict[str, dict[str, int]] = {}
    for (reason, node), count in sorted(Counter((journey.fate, journey.node) for journey in lost).items()):
        dropped.setdefault(reason, {})[node] = count
    return {
        "sent": len(all_sent),
        "received": sum(journey.received for journey in all_sent),
        "dropped": dropped,
        "no_record": sum(journey.fate == NO_RECORD for journey in all_sent),
    }


def window_of(story: Story, begin_s: float | None, end_s: float | None) -> tuple[float, float]:
    """Begin and end in seconds of the traffic, the whole flow's for None; a RunFileError for an empty time."""
    first_s = min([0.0, *(story.seconds(sent.journey.sent_ns) for sent in story.transmissions)])
    low, high = first_s if begin_s is None else begin_s, story.last_s if end_s is None else end_s
    place = f"{story.run.path}: {story.flow.name} ends at {story.last_s:.1f} s"
    if not low <= story.last_s:
        raise RunFileError(f"{place}, and there is nothing from {low:g} s on; give an earlier --from")
    if not low < high < math.inf:
        raise RunFileError(f"{place}, and there is nothing from {low:g} to {high:g} s; give a --to that is later than --from")
    return low, high


def sent_between(story: Story, begin_s: float | None, end_s: float | None) -> list[Transmission]:
    """Transmissions sent in [begin, end) seconds of the traffic; None: no bound."""
    low, high = (-1e18 if begin_s is None else begin_s), (1e18 if end_s is None else end_s)
    return [sent for sent in story.transmissions if low <= story.seconds(sent.journey.sent_ns) < high]


def acknowledging(story: Story, chosen: list[Transmission]) -> list[Acknowledgement]:
    """For each of these segments, the ACKs of all its bytes that the target sent after it arrived, up to the first that was
    received."""
    chosen_acks: dict[int, Acknowledgement] = {}
    by_time = sorted(story.acknowledgements, key=lambda ack: ack.journey.sent_ns)
    times_ns = [ack.journey.sent_ns for ack in by_time]
    for sent in chosen:
        if not sent.journey.received or sent.label:
            continue
        for place in range(bisect_left(times_ns, sent.journey.at_ns), len(by_time)):
            ack = by_time[place]
            if ack.next_byte >= sent.end:
                chosen_acks[place] = ack
                if ack.journey.received:
                    break
    return [chosen_acks[place] for place in sorted(chosen_acks)]


def of_segment(story: Story, number: int) -> list[Transmission]:
    """All transmissions of a segment; a RunFileError that names the existing ones."""
    transmissions = [sent for sent in story.transmissions if sent.segment == number]
    if not transmissions:
        last = max((sent.segment for sent in story.transmissions), default=0)
        raise RunFileError(f"{story.run.path}: {story.flow.name} has no segment {number}; there are 0 (the SYN) to {last}")
    return transmissions
