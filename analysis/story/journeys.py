"""The path of each packet of a TCP connection, one direction at a time: from its source through queues, attempts and hops to its
end, reconstructed from all captures, the air log, the notes of the routing daemons and the ICMP errors.

A packet is identified by its IP identification and its sequence numbers: the kernel gives each retransmission a new
identification, while a routing daemon resends the same packet after a broken link returned it. IPv6 has no identification, and no
daemon resends its packets: each that leaves its source is new. No interface capture has a packet
that a daemon holds; the daemon's capture of held packets, its event log and its notes have it (formats/routing.md).

A packet without evidence of its fate has the fate `no record`; nothing is guessed. Invisible are packets that a station's kernel
drops before its interface (no route and no own daemon, the gate of a TCP layer, ARP at the source), and packets that are still
held, never sent, when the run ends.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import polars as pl

from analysis.captures import icmp
from analysis.captures.air_packets import IN, OUT, AirPacket, AirPackets
from analysis.captures.connections import Connection
from analysis.captures.held_packets import GIVEN_UP
from analysis.captures.icmp import HOLDING, IcmpError, errors_about
from analysis.captures.routing_notes import DISPLACED, FROM_KERNEL, RESOLVING, UNREACHABLE, Note, Records, read_records
from analysis.captures.rundir import RunDirectory

# RESOLVING of the notes: a routing daemon's own ARP asks for the link address of the packet's next hop
SENT, RESENT, FORWARDED, ARRIVED, RECEIVED, DROPPED, GAVE_UP, ICMP_SENT, ICMP_RECEIVED, HELD = (
    "sent", "resent", "forwarded", "arrived", "received", "dropped", "gave up", "said", "told", "held",
)  # fmt: skip
NO_RECORD, NO_ROUTE, NO_NEIGHBOUR, HELD_AT_END, PUSHED_OUT = "no record", "no-route", "no-neighbour", "held-at-end", "held-full"
_REASONS = {UNREACHABLE: NO_ROUTE, DISPLACED: DISPLACED}  # of a daemon's notes
# A packet that routing kept for less than this was forwarded, not held: DSR handles every packet.
PASSED_ON_NS = 5_000_000
# Between a probe's event and its captured frame, from two programs: below 1 ms on an idle host, tens of ms on a loaded one.
PROBE_NS = 50_000_000
BROADCAST = "ff:ff:ff:ff:ff:ff"
NEIGHBOUR_SOLICITATION, IPV6_MULTICAST = 135, "33:33:"  # RFC 4861, 4.3; RFC 2464, 7
# Linux drops packets for an unresolved neighbour after mcast_solicit 3 times retrans_time_ms 1 s (net/core/neighbour.c), and a
# fourth second for the host's delay.
ARP_GIVES_UP_NS = 4_000_000_000


class Step(NamedTuple):
    """Something that happened to a packet at a node.

    `reason`: why, of DROPPED and GAVE_UP; the name of the ICMP message, of ICMP_SENT and ICMP_RECEIVED; of RESOLVING the next
    hop.
    """

    t_ns: int  # CLOCK_REALTIME
    kind: str
    node: str
    reason: str = ""
    air: AirPacket | None = None  # of SENT, RESENT, FORWARDED over the radio


@dataclass(slots=True)
class Journey:
    """One packet as TCP sent it once. Sequence numbers are raw; `identification` is None where no capture has the packet."""

    source: str
    sequence: int
    payload_bytes: int
    acknowledgement: int | None
    flags: int
    identification: int | None
    steps: list[Step] = field(default_factory=list)
    fate: str = NO_RECORD  # RECEIVED, or why it was lost
    node: str = ""  # where it was received or lost
    at_ns: int = 0
    # locations of its copies: a node, or between nodes the number of the packet in the air log
    places: dict[object, Step] = field(default_factory=dict)

    @property
    def sent_ns(self) -> int:
        """Time of its first step, ns since the Unix epoch."""
        return self.steps[0].t_ns

    @property
    def received(self) -> bool:
        """Whether it reached its destination."""
        return self.fate == RECEIVED

    @property
    def captured(self) -> bool:
        """False: the packet never reached the radio; only its station's routing daemon has a record of it."""
        return any(step.kind == SENT for step in self.steps)

    @property
    def left_ns(self) -> int | None:
        """Time at which it first left its source, ns since the Unix epoch; None if it never left."""
        return next((step.t_ns for step in self.steps if step.kind == SENT), None)

    @property
    def time_known(self) -> bool:
        """False: the time of sending is unknown, and `sent_ns` is the time at which it was given up."""
        return self.steps[0].kind != GAVE_UP

    @property
    def fates_of_attempts(self) -> list[str]:
        """The fate of every frame sent for it, in order."""
        return [fate for step in self.steps if step.air for fate in step.air.fates]


# What tells a packet from others: identification, sequence number, payload, acknowledgement and flags
_Key = tuple[int | None, int, int, int | None, int]


class _Row(NamedTuple):
    """A packet of the connection that a routing daemon held."""

    t_ns: int
    node: str
    key: _Key


_KEY = ("identification", "sequence", "payload_bytes", "acknowledgement", "flags")
# Of a table of captured frames; `node` is a place in the list of all captures.
_COLUMNS = ("t_ns", "node", "direction", "air_packet", *_KEY)


@dataclass
class Traces:
    """Everything that the captures hold of a connection, in both directions."""

    run: RunDirectory
    frames: dict[Connection, pl.DataFrame]  # of _COLUMNS, in order of time; of one instant in the order of the captures
    errors: dict[Connection, list[tuple[str, bool, IcmpError]]]  # the node with the capture, whether it sent the error, the error
    requests_ns: dict[str, list[int]]  # when each node asked for the link address of another
    records: dict[str, dict[Connection, Records]]  # of the routing daemon of each station


def read_traces(run: RunDirectory, connection: Connection) -> Traces:
    """Read every capture and record once, and keep of it only the connection's packets."""
    ways = (connection, connection.reversed())
    frames: dict[Connection, list[pl.DataFrame]] = {way: [] for way in ways}
    errors: dict[Connection, list[tuple[str, bool, IcmpError]]] = {way: [] for way in ways}
    requests_ns: dict[str, list[int]] = defaultdict(list)
    for captured, packets in run.paired(ways[0].is_of | ways[1].is_of):
        requests_ns[captured.node] += packets.filter(_IS_REQUEST & (pl.col("direction") == OUT))["t_ns"].to_list()
        own = run.addresses(captured.node)
        for way in ways:
            forward = way.forward(packets).filter(pl.col("direction").is_not_null())
            forward = forward.with_columns(node=pl.lit(len(frames[way])))
            frames[way].append(forward.select(_COLUMNS))
            errors[way] += [(captured.node, error.sender in own, error) for error in errors_about(packets, way)]
        del packets  # before the next capture is read
    in_order = {way: pl.concat(each).sort("t_ns", maintain_order=True) for way, each in frames.items()}
    stations = [captured.node for captured in run.captured if captured.radio]
    records = {station: read_records(run.path, station, ways, run.epoch_ns) for station in stations}
    return Traces(run, in_order, errors, requests_ns, records)


_IS_REQUEST = ((pl.col("protocol") == "arp") & (pl.col("eth_dst") == BROADCAST)) | (
    (pl.col("protocol") == "icmp")
    & (pl.col("icmp_type") == NEIGHBOUR_SOLICITATION)
    & pl.col("eth_dst").str.starts_with(IPV6_MULTICAST)
)


def journeys(traces: Traces, connection: Connection, source: str, target: str, probes_ns: Iterable[int] = ()) -> list[Journey]:
    """All packets of the connection's direction, in the order sent, each with its fate.

    `probes_ns`: when a layer of TCP sent a copy of a packet itself; it may carry the identification of the original.
    """
    run, frames = traces.run, traces.frames[connection]
    packets = AirPackets(run.packet_rows, run.epoch_ns, frames["air_packet"])
    frames = frames.with_columns(place=packets.places_of(frames["air_packet"]))
    walk = _Walk(source, target, packets, sorted(probes_ns))
    others: list[tuple[int, Callable[[int], None]]] = [
        (t_ns, partial(walk.air, *end)) for t_ns, end in _air_ends(frames, packets)
    ]
    handles = {UNREACHABLE: walk.note, DISPLACED: walk.note, RESOLVING: walk.resolving}
    for node, records in traces.records.items():
        notes, tables = records[connection]
        kept = {name: _rows(table, node) for name, table in tables.items()}
        others += [(row.t_ns, partial(walk.held, row)) for row in _held(kept)]
        others += [
            (note["t_ns"] + run.epoch_ns, partial(handles[note["event"]], node, note))
            for note in notes
            if note["event"] in handles
        ]
        others += [(row.t_ns, partial(walk.pushed_out, row)) for row in kept[GIVEN_UP]]
    others += [(error.t_ns, partial(walk.error, node, is_sender, error)) for node, is_sender, error in traces.errors[connection]]
    walk.all_of(frames, [captured.node for captured in run.captured], sorted(others, key=itemgetter(0)))
    walk.complete()
    evidence = _Evidence(run, traces.requests_ns)
    for journey in walk.journeys:
        _judge(journey, evidence)
        journey.steps = _without_passing(journey.steps)
        journey.places = {}
    return sorted(walk.journeys, key=lambda journey: journey.steps[0][0])


def _held(kept: dict[str, list[_Row]]) -> list[_Row]:
    """Packets that the station's daemon received from its kernel (event log), and packets that it began to hold for another
    reason: without an event log all of them, with one those that a broken link returned. A packet of both kinds is listed
    once."""
    known_ns = defaultdict(list)
    for row in kept[FROM_KERNEL]:
        known_ns[row.key].append(row.t_ns)
    others = (row for row in kept[HELD] if not any(0 <= row.t_ns - at_ns < PROBE_NS for at_ns in known_ns[row.key]))
    return [*kept[FROM_KERNEL], *others]


def _rows(packets: pl.DataFrame, node: str) -> list[_Row]:
    return [_Row(t_ns, node, (*key,)) for t_ns, *key in packets.select("t_ns", *_KEY).iter_rows()]


def _air_ends(frames: pl.DataFrame, packets: AirPackets) -> Iterable[tuple[int, tuple[int, str, str, str]]]:
    """Drops, and deliveries without a captured frame; none before the sent frame was captured."""
    arrived = frames.filter(pl.col("direction") == IN)["place"].drop_nulls()
    sent = frames.filter(pl.col("direction") == OUT).select("t_ns", "place").join(packets.ended(), "place", maintain_order="left")
    ended = sent.with_columns(captured=pl.col("place").is_in(arrived.unique().implode()))
    for t_ns, place, _, _, captured in ended.filter(pl.col("lost") | ~pl.col("captured")).iter_rows():
        packet = packets.at(place)
        if dropped := packet.dropped:
            yield max(t_ns, dropped[0]), (packet.number, DROPPED, *dropped[1:])
        if not captured:
            for at_ns, station in packet.delivered:
                yield max(t_ns, at_ns), (packet.number, ARRIVED, station, "")


class _Walk:
    """Builds journeys from entries in order of time."""

    def __init__(self, source: str, target: str, packets: AirPackets, probes_ns: Sequence[int]) -> None:
        self.journeys: list[Journey] = []
        self._source, self._target, self._packets, self._probes_ns = source, target, packets, probes_ns
        self._by_key: dict[_Key, list[Journey]] = defaultdict(list)
        self._by_packet: dict[int, Journey] = {}
        self._by_sequence: dict[int, list[Journey]] = defaultdict(list)
        self._asked: dict[tuple[str, int], Step] = {}  # RESOLVING, of packets that no record has before

    def all_of(self, frames: pl.DataFrame, nodes: Sequence[str], others: Sequence[tuple[int, Callable[[int], None]]]) -> None:
        """Take all frames and other entries in order of time; of one instant the frames first."""
        place, count = 0, len(others)
        next_ns = others[0][0] if others else None
        for t_ns, node, direction, air_packet, *key, packet in frames.iter_rows():
            while next_ns is not None and next_ns < t_ns:
                others[place][1](next_ns)
                place += 1
                next_ns = others[place][0] if place < count else None
            self.frame(t_ns, nodes[node], direction == IN, air_packet, tuple(key), packet)
        for at_ns, handle in others[place:]:
            handle(at_ns)

    def frame(self, t_ns: int, node: str, arrives: bool, air_packet: int | None, key: _Key, place: int | None) -> None:
        """A captured frame. `place`: of its packet, if the log has it."""
        if arrives:
            journey = self._by_packet.get(air_packet) if air_packet is not None else None
            if journey is None and (journey := self._with_key(key, node)) is None:
                journey = self._begin(key)
            self._arrive(journey, t_ns, node, air_packet)
            return
        journey = self._with_key(key, node)
        if journey is None or (node == self._source and self._is_new(t_ns, key[0], journey)):
            journey = self._begin(key)
        self._leave(journey, t_ns, node, None if place is None else self._packets.at(place))

    def held(self, row: _Row, t_ns: int) -> None:
        """The node's routing received a packet without a route from the kernel: TCP's own, or one to forward."""
        node = row.node
        journey = next((journey for journey in self._by_key[row.key] if node in journey.places), None)
        if journey is None or journey.places[node].kind == HELD:
            if node != self._source:
                return
            journey = self._begin(row.key)
        step = journey.places[node] = Step(t_ns, HELD, node)
        journey.steps.append(step)

    def pushed_out(self, row: _Row, t_ns: int) -> None:
        """The node's routing dropped a held packet without a note: its buffer was full."""
        node = row.node
        held = [one for one in self._by_key[row.key] if node in one.places and one.places[node].kind == HELD]
        for journey in held[:1]:
            self._give_up(journey, t_ns, node, PUSHED_OUT)

    def _with_key(self, key: _Key, node: str) -> Journey | None:
        """The oldest such packet at the node, otherwise the newest: resets have no identification, so several may match, as do
        all transmissions of a segment over IPv6. One of these that the radio has dropped is gone."""
        alike = self._by_key.get(key)
        if not alike:
            return None
        for one in alike:
            if node in one.places and (key[0] is not None or one.places[node].kind != DROPPED):
                return one
        return alike[-1]

    def _is_new(self, t_ns: int, identification: int | None, alike: Journey) -> bool:
        """Whether TCP sends a new packet, and not one that a broken link returned. Copies and resets have no identification."""
        if identification is None:
            return True
        if self._source in alike.places and alike.places[self._source].kind == HELD:
            return False
        place = bisect_left(self._probes_ns, t_ns - PROBE_NS + 1)
        if place < len(self._probes_ns) and self._probes_ns[place] < t_ns + PROBE_NS:
            return True
        return not identification and self._source not in alike.places

    def _begin(self, key: _Key) -> Journey:
        identification, sequence, payload_bytes, acknowledgement, flags = key
        journey = self._unknown(Journey(self._source, sequence, payload_bytes, acknowledgement, flags, identification))
        self._by_key[key].append(journey)
        return journey

    def _unknown(self, journey: Journey) -> Journey:
        """A packet that no capture need have."""
        self.journeys.append(journey)
        self._by_sequence[journey.sequence].append(journey)
        return journey

    def _leave(self, journey: Journey, t_ns: int, node: str, packet: AirPacket | None) -> None:
        kind = SENT if node == self._source else FORWARDED
        for step in journey.steps:
            if step[2] == node and step[1] in (SENT, FORWARDED):
                kind = RESENT
                break
        step = Step(t_ns, kind, node, "", packet)
        journey.steps.append(step)
        places = journey.places
        places.pop(node, None)
        if packet is None:
            places["wire", node] = step
        else:
            places[packet.number] = step
            self._by_packet[packet.number] = journey

    def _arrive(self, journey: Journey, t_ns: int, node: str, number: int | None) -> None:
        step = Step(t_ns, RECEIVED if node == self._target else ARRIVED, node)
        journey.steps.append(step)
        places = journey.places
        if places.pop(number, None) is None:
            for place in [place for place in places if isinstance(place, tuple)]:
                del places[place]
        places[node] = step

    def air(self, number: int, kind: str, node: str, reason: str, t_ns: int) -> None:
        """The radio dropped a packet, or delivered it to a station whose capture lost it."""
        journey = self._by_packet[number]
        if kind == ARRIVED:
            return self._arrive(journey, t_ns, node, number)
        journey.places.pop(number, None)
        step = journey.places[node] = Step(t_ns, DROPPED, node, reason)
        journey.steps.append(step)

    def resolving(self, node: str, note: Note, t_ns: int) -> None:
        """A daemon's ARP asks for the next hop of a packet at the node, or of one of its own that may never be sent."""
        sequence = note.get("seq", -1)
        step = Step(t_ns, RESOLVING, node, note.get("via", ""))
        journey = next((journey for journey in self._by_sequence[sequence] if node in journey.places), None)
        if journey is None:
            self._asked[node, sequence] = step
            return
        journey.places[node] = step
        journey.steps.append(step)

    def note(self, node: str, note: Note, t_ns: int) -> None:
        """A daemon dropped a packet: the oldest with this sequence number at the node, or one of its own that was never sent."""
        sequence = note.get("seq", -1)
        same = self._by_sequence[sequence]
        journey = next((journey for journey in same if node in journey.places), None)
        if journey is None:
            if node != self._source:
                return
            known = same[-1] if same else Journey(self._source, sequence, 0, None, 0, None)
            unsent = Journey(self._source, sequence, known.payload_bytes, known.acknowledgement, known.flags, None)
            journey = self._unknown(unsent)
            if note["event"] == DISPLACED and (asked := self._asked.pop((node, sequence), None)):
                journey.steps.append(asked)
        self._give_up(journey, t_ns, node, _REASONS[note["event"]])

    def complete(self) -> None:
        """Take the length of packets that only notes have from another transmission of the same segment."""
        for journey in self.journeys:
            if journey.captured or journey.identification is not None or journey.payload_bytes:
                continue
            known = next((one for one in self._by_sequence[journey.sequence] if one.payload_bytes), journey)
            journey.payload_bytes, journey.flags = known.payload_bytes, known.flags
            journey.acknowledgement = known.acknowledgement

    @staticmethod
    def _give_up(journey: Journey, t_ns: int, node: str, reason: str) -> None:
        journey.places.pop(node, None)
        journey.steps.append(Step(t_ns, GAVE_UP, node, reason))

    def error(self, node: str, is_sender: bool, error: IcmpError, t_ns: int) -> None:
        """An ICMP message about a packet leaves its sender, or reaches the packet's source."""
        same = self._by_sequence[error.sequence]
        about = [journey for journey in same if journey.identification == error.identification] or same
        if not about or not (is_sender or node == self._source):
            return
        journey = about[-1]
        kept = node in journey.places and journey.places[node].kind == HELD  # AODV repairs its route and reports that at once
        if is_sender and error.kind != HOLDING and node in journey.places and not kept:  # the node's own kernel dropped it
            self._give_up(journey, t_ns, node, _dropped_for(error))
        step = Step(t_ns, ICMP_SENT if is_sender else ICMP_RECEIVED, node, error.name)
        if not any(old[1:4] == step[1:4] and t_ns - old.t_ns < PROBE_NS for old in journey.steps):
            journey.steps.append(step)


def _dropped_for(error: IcmpError) -> str:
    return NO_ROUTE if error.name in icmp.NO_ROUTE else error.name.replace(" ", "-")


class _Evidence:
    """Evidence on packets that reached a node and never left it."""

    def __init__(self, run: RunDirectory, requests_ns: dict[str, list[int]]) -> None:
        self._run, self._requests_ns = run, requests_ns

    def of(self, step: Step) -> str:
        """The reason why a packet stayed at the node of its last step, or NO_RECORD."""
        if step.kind == RESOLVING:
            return NO_NEIGHBOUR
        if step.kind == HELD:
            return HELD_AT_END
        if step.kind == ARRIVED:
            if any(0 <= sent_ns - step.t_ns < ARP_GIVES_UP_NS for sent_ns in self._requests_ns[step.node]):
                return NO_NEIGHBOUR
            if self._run.held_at_end(step.node):
                return HELD_AT_END
        return NO_RECORD


def _without_passing(steps: list[Step]) -> list[Step]:
    """The steps without those at which routing only forwarded the packet."""
    if not any(step[1] == HELD for step in steps):
        return steps
    passed = [
        step.kind == HELD and later.kind in (SENT, FORWARDED) and later.t_ns - step.t_ns < PASSED_ON_NS
        for step, later in pairwise([*steps, steps[-1]])
    ]
    return [step for step, gone in zip(steps, passed, strict=True) if not gone]


def _judge(journey: Journey, evidence: _Evidence) -> None:
    """Fill in the fate: received by its target, else the end of the copy with the latest step."""
    arrived = next((step for step in journey.steps if step.kind == RECEIVED), None)
    if arrived is not None:
        journey.fate, journey.node, journey.at_ns = RECEIVED, arrived.node, arrived.t_ns
        return
    open_ends = [step for step in journey.places.values() if step.kind != DROPPED]
    ends = [step for step in journey.steps if step.kind in (DROPPED, GAVE_UP)]
    last = max(open_ends or ends, key=lambda step: step.t_ns)
    journey.fate = evidence.of(last) if open_ends else last.reason
    journey.node, journey.at_ns = last.node, last.t_ns
