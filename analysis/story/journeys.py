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

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from analysis.captures import icmp
from analysis.captures.air_packets import IN, OUT, AirPacket, air_packets
from analysis.captures.connections import Connection
from analysis.captures.held_packets import GIVEN_UP
from analysis.captures.icmp import HOLDING, IcmpError, errors_about
from analysis.captures.routing_notes import DISPLACED, FROM_KERNEL, RESOLVING, UNREACHABLE, Note, read_records
from analysis.captures.rundir import RunDirectory
from record.run import Captured

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


@dataclass
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
        return [attempt.fate for step in self.steps if step.air for attempt in step.air.attempts]


# What tells a packet from others: identification, sequence number, payload, acknowledgement and flags
_Key = tuple[int | None, int, int, int | None, int]


class _Row(NamedTuple):
    """A captured frame of the connection."""

    t_ns: int
    captured: Captured
    direction: str
    air_packet: int | None
    sequence: int
    payload_bytes: int
    acknowledgement: int | None
    flags: int
    identification: int | None

    @property
    def key(self) -> _Key:
        return self.identification, self.sequence, self.payload_bytes, self.acknowledgement, self.flags


def journeys(run: RunDirectory, connection: Connection, source: str, target: str, probes_ns: Iterable[int] = ()) -> list[Journey]:
    """All packets of the connection's direction, in the order sent, each with its fate.

    `probes_ns`: when a layer of TCP sent a copy of a packet itself; it may carry the identification of the original.
    """
    captures = run.paired
    rows = sorted(_rows(captures, connection), key=lambda row: row.t_ns)
    packets = air_packets(run.air, run.epoch_ns, {row.air_packet for row in rows if row.air_packet is not None})
    walk = _Walk(source, target, packets, tuple(probes_ns))
    entries: list[tuple[int, Callable[[int], None]]] = [(row.t_ns, partial(walk.frame, row)) for row in rows]
    entries += [(t_ns, partial(walk.air, *end)) for t_ns, end in _air_ends(rows, packets)]
    for captured in captures:
        if captured.radio:
            notes, tables = read_records(run.path, captured.node, connection, run.epoch_ns)
            kept = {name: list(_rows({captured: _as_held(table)}, connection)) for name, table in tables.items()}
            entries += [(row.t_ns, partial(walk.held, row)) for row in _held(kept)]
            handles = {UNREACHABLE: walk.note, DISPLACED: walk.note, RESOLVING: walk.resolving}
            entries += [
                (note["t_ns"] + run.epoch_ns, partial(handles[note["event"]], captured.node, note))
                for note in notes
                if note["event"] in handles
            ]
            entries += [(row.t_ns, partial(walk.pushed_out, row)) for row in kept[GIVEN_UP]]
    for captured, capture in captures.items():
        own = run.addresses(captured.node)
        for error in errors_about(capture, connection):
            entries.append((error.t_ns, partial(walk.error, captured.node, error.sender in own, error)))
    for t_ns, handle in sorted(entries, key=lambda entry: entry[0]):
        handle(t_ns)
    walk.complete()
    evidence = _Evidence(run, captures)
    for journey in walk.journeys:
        _judge(journey, evidence)
        journey.steps = _without_passing(journey.steps)
    return sorted(walk.journeys, key=lambda journey: journey.sent_ns)


def _as_held(packets: pl.DataFrame) -> pl.DataFrame:
    return packets.with_columns(direction=pl.lit(HELD), air_packet=None)


def _held(kept: dict[str, list[_Row]]) -> list[_Row]:
    """Packets that the station's daemon received from its kernel (event log), and packets that it began to hold for another
    reason: without an event log all of them, with one those that a broken link returned. A packet of both kinds is listed
    once."""
    known_ns = defaultdict(list)
    for row in kept[FROM_KERNEL]:
        known_ns[row.key].append(row.t_ns)
    others = (row for row in kept[HELD] if not any(0 <= row.t_ns - at_ns < PROBE_NS for at_ns in known_ns[row.key]))
    return [*kept[FROM_KERNEL], *others]


def _rows(captures: dict[Captured, pl.DataFrame], connection: Connection) -> Iterable[_Row]:
    names = ("t_ns", "direction", "air_packet", "sequence", "payload_bytes", "acknowledgement", "flags", "identification")
    for captured, packets in captures.items():
        own = connection.forward(packets).filter(pl.col("direction").is_not_null())
        for t_ns, *rest in own.select(names).iter_rows():
            yield _Row(t_ns, captured, *rest)


def _air_ends(rows: list[_Row], packets: dict[int, AirPacket]) -> Iterable[tuple[int, tuple[int, str, str, str]]]:
    """Drops, and deliveries without a captured frame; none before the sent frame was captured."""
    arrived = {row.air_packet for row in rows if row.direction == IN}
    for row in rows:
        if row.direction != OUT or row.air_packet not in packets:
            continue
        packet = packets[row.air_packet]
        if packet.dropped:
            yield max(row.t_ns, packet.dropped[0]), (packet.number, DROPPED, packet.station, packet.dropped[1])
        if packet.number not in arrived:
            for at_ns, station in packet.delivered:
                yield max(row.t_ns, at_ns), (packet.number, ARRIVED, station, "")


class _Walk:
    """Builds journeys from entries in order of time."""

    def __init__(self, source: str, target: str, packets: dict[int, AirPacket], probes_ns: tuple[int, ...]) -> None:
        self.journeys: list[Journey] = []
        self._source, self._target, self._packets, self._probes_ns = source, target, packets, probes_ns
        self._by_key: dict[_Key, list[Journey]] = defaultdict(list)
        self._by_packet: dict[int, Journey] = {}
        self._by_sequence: dict[int, list[Journey]] = defaultdict(list)
        self._asked: dict[tuple[str, int], Step] = {}  # RESOLVING, of packets that no record has before

    def frame(self, row: _Row, t_ns: int) -> None:
        node = row.captured.node
        number = row.air_packet if row.direction == IN else None
        journey = self._by_packet[number] if number in self._by_packet else self._with_key(row.key, node)
        if journey is None or (row.direction == OUT and node == self._source and self._is_new(row, journey)):
            journey = self._begin(Journey(self._source, *row[4:]), row.key)
        if row.direction == IN:
            self._arrive(journey, t_ns, node, row.air_packet)
        else:
            self._leave(journey, t_ns, node, None if row.air_packet is None else self._packets.get(row.air_packet))

    def held(self, row: _Row, t_ns: int) -> None:
        """The node's routing received a packet without a route from the kernel: TCP's own, or one to forward."""
        node = row.captured.node
        journey = next((journey for journey in self._by_key[row.key] if node in journey.places), None)
        if journey is None or journey.places[node].kind == HELD:
            if node != self._source:
                return
            journey = self._begin(Journey(self._source, *row[4:]), row.key)
        step = journey.places[node] = Step(t_ns, HELD, node)
        journey.steps.append(step)

    def pushed_out(self, row: _Row, t_ns: int) -> None:
        """The node's routing dropped a held packet without a note: its buffer was full."""
        node = row.captured.node
        held = [one for one in self._by_key[row.key] if node in one.places and one.places[node].kind == HELD]
        for journey in held[:1]:
            self._give_up(journey, t_ns, node, PUSHED_OUT)

    def _with_key(self, key: _Key, node: str) -> Journey | None:
        """The oldest such packet at the node, otherwise the newest: resets have no identification, so several may match, as do
        all transmissions of a segment over IPv6. One of these that the radio has dropped is gone."""
        alike = self._by_key[key]
        there = (one for one in alike if node in one.places and (key[0] is not None or one.places[node].kind != DROPPED))
        return next(there, alike[-1] if alike else None)

    def _is_new(self, row: _Row, alike: Journey) -> bool:
        """Whether TCP sends a new packet, and not one that a broken link returned. Copies and resets have no identification."""
        if row.identification is None:
            return True
        if self._source in alike.places and alike.places[self._source].kind == HELD:
            return False
        if any(abs(row.t_ns - probe_ns) < PROBE_NS for probe_ns in self._probes_ns):
            return True
        return not row.identification and self._source not in alike.places

    def _begin(self, journey: Journey, key: _Key | None = None) -> Journey:
        self.journeys.append(journey)
        self._by_sequence[journey.sequence].append(journey)
        if key is not None:
            self._by_key[key].append(journey)
        return journey

    def _leave(self, journey: Journey, t_ns: int, node: str, packet: AirPacket | None) -> None:
        before = any(step.node == node and step.kind in (SENT, FORWARDED) for step in journey.steps)
        kind = RESENT if before else SENT if node == self._source else FORWARDED
        step = Step(t_ns, kind, node, air=packet)
        journey.steps.append(step)
        journey.places.pop(node, None)
        journey.places[packet.number if packet else ("wire", node)] = step
        if packet:
            self._by_packet[packet.number] = journey

    def _arrive(self, journey: Journey, t_ns: int, node: str, number: int | None) -> None:
        step = Step(t_ns, RECEIVED if node == self._target else ARRIVED, node)
        journey.steps.append(step)
        for place in [number] if number in journey.places else [p for p in journey.places if isinstance(p, tuple)]:
            del journey.places[place]
        journey.places[node] = step

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
            journey = self._begin(Journey(self._source, sequence, known.payload_bytes, known.acknowledgement, known.flags, None))
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

    def __init__(self, run: RunDirectory, captures: dict[Captured, pl.DataFrame]) -> None:
        self._run = run
        self._requests_ns: dict[str, list[int]] = defaultdict(list)
        for captured, packets in captures.items():
            arp = (pl.col("protocol") == "arp") & (pl.col("eth_dst") == BROADCAST)
            solicited = (pl.col("protocol") == "icmp") & (pl.col("icmp_type") == NEIGHBOUR_SOLICITATION)
            solicited &= pl.col("eth_dst").str.starts_with(IPV6_MULTICAST)
            is_request = (arp | solicited) & (pl.col("direction") == OUT)
            self._requests_ns[captured.node] += packets.filter(is_request)["t_ns"].to_list()

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
