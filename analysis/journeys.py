"""The way of each packet of a TCP connection, one direction at a time: from its source through queues, attempts and hops to where
it ended, put together from all captures, the air log, the notes of the routing daemons and the ICMP errors on the way.

A packet is told by its IP identification with its sequence numbers: the kernel numbers each retransmission anew, while a
routing daemon sends again the very packet that a broken link returned. A packet that a daemon holds is in no capture of an
interface; the daemon's capture of held packets, its event log and its notes tell of it (formats/routing.md).

Where nothing says what became of a packet, that is said (`no record`), never guessed. Not seen at all: what a station's own
kernel drops before its interface (no route and none of our own daemons, the gate of a TCP layer, ARP at the source), and what is
held when the run ends without ever having been sent.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from analysis.air_packets import IN, OUT, AirPacket, air_packets, paired_capture
from analysis.connections import Connection
from analysis.held_packets import GIVEN_UP
from analysis.icmp import HOLDING, IcmpError, errors_about
from analysis.routing_notes import given_up, held_capture, taken_over
from analysis.rundir import Captured, RunDirectory

SENT, RESENT, FORWARDED, ARRIVED, RECEIVED, DROPPED, GAVE_UP, SAID, TOLD, HELD = (
    "sent", "resent", "forwarded", "arrived", "received", "dropped", "gave up", "said", "told", "held",
)  # fmt: skip
NO_RECORD, NO_ROUTE, NO_NEIGHBOUR, HELD_AT_END, PUSHED_OUT = "no record", "no-route", "no-neighbour", "held-at-end", "held-full"
# A packet that its station's routing had for less than this was passed on, not held: DSR has each of them for a moment.
PASSED_ON_NS = 5_000_000
# A probe's event and its frame, which another program sends and captures: an idle host needs less than 1 ms, a loaded one tens.
PROBE_NS = 50_000_000
# How long Linux asks for a neighbour before it gives up its packets: mcast_solicit 3 times retrans_time_ms 1 s
# (net/core/neighbour.c), and a fourth second for the host.
BROADCAST = "ff:ff:ff:ff:ff:ff"
ARP_GIVES_UP_NS = 4_000_000_000


class Step(NamedTuple):
    """Something that happened to a packet at a node.

    `reason`: why, of DROPPED and GAVE_UP; the name of the ICMP message, of SAID and TOLD.
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
    # where copies of it are: at a node, or on the way under the number of the air's packet
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
        """False: it never came to the radio, and only its station's routing tells of it."""
        return any(step.kind == SENT for step in self.steps)

    @property
    def left_ns(self) -> int | None:
        """When it left its station for the first time; None: never."""
        return next((step.t_ns for step in self.steps if step.kind == SENT), None)

    @property
    def time_known(self) -> bool:
        """False: nothing says when TCP sent it, but that it was given up at `sent_ns`."""
        return self.steps[0].kind != GAVE_UP

    @property
    def fates_of_attempts(self) -> list[str]:
        """Of every frame on the air for it, in order."""
        return [attempt.fate for step in self.steps if step.air for attempt in step.air.attempts]


class _Row(NamedTuple):
    """A captured frame of the connection."""

    t_ns: int
    captured: Captured
    way: str
    air_packet: int | None
    sequence: int
    payload_bytes: int
    acknowledgement: int | None
    flags: int
    identification: int | None

    @property
    def key(self) -> tuple:
        return self.identification, self.sequence, self.payload_bytes, self.acknowledgement, self.flags


def journeys(run: RunDirectory, connection: Connection, source: str, target: str, probes_ns: Iterable[int] = ()) -> list[Journey]:
    """All packets of the connection's direction, in the order sent, each with its fate.

    `probes_ns`: when a layer of TCP sent a copy of a packet itself; it may carry the identification of the original.
    """
    captures = {captured: paired_capture(run, captured) for captured in run.captured}
    rows = sorted(_rows(captures, connection), key=lambda row: row.t_ns)
    packets = air_packets(run, {row.air_packet for row in rows if row.air_packet is not None})
    walk = _Walk(source, target, packets, tuple(probes_ns))
    happened = [(row.t_ns, walk.frame, row) for row in rows] + [(t_ns, walk.air, end) for t_ns, end in _air_ends(rows, packets)]
    for captured in captures:
        if captured.radio:
            happened += [(row.t_ns, walk.held, row) for row in _held(run, captured, connection)]
            notes = given_up(run.path, captured.node, connection)
            happened += [(note["t_ns"] + run.epoch_ns, walk.note, (captured.node, note.get("seq", -1))) for note in notes]
            gone = _as_held(held_capture(run.path, captured.node, connection, GIVEN_UP))
            happened += [(row.t_ns, walk.pushed_out, row) for row in _rows({captured: gone}, connection)]
    for captured, capture in captures.items():
        said = run.address(captured.node)
        happened += [
            (error.t_ns, walk.error, (captured.node, error.sender == said, error)) for error in errors_about(capture, connection)
        ]
    for t_ns, handle, what in sorted(happened, key=lambda entry: entry[0]):
        handle(t_ns, what)
    evidence = _Evidence(run, captures)
    for journey in walk.journeys:
        _judge(journey, evidence)
        journey.steps = _without_passing(journey.steps)
    return sorted(walk.journeys, key=lambda journey: journey.sent_ns)


def _as_held(packets: pl.DataFrame) -> pl.DataFrame:
    return packets.with_columns(way=pl.lit(HELD), air_packet=None)


def _held(run: RunDirectory, captured: Captured, connection: Connection) -> list[_Row]:
    """What the station's daemon was given by its kernel, as its event log has it, and what else it began to hold: all of it
    without an event log, and what a broken link returned. A packet of both is there once."""
    logged = taken_over(run.path, captured.node, connection).with_columns(pl.col("t_ns") + run.epoch_ns)
    rows = list(_rows({captured: _as_held(logged)}, connection))
    known_ns = defaultdict(list)
    for row in rows:
        known_ns[row.key].append(row.t_ns)
    kept = _rows({captured: _as_held(held_capture(run.path, captured.node, connection))}, connection)
    return rows + [row for row in kept if not any(0 <= row.t_ns - at_ns < PROBE_NS for at_ns in known_ns[row.key])]


def _rows(captures: dict[Captured, pl.DataFrame], connection: Connection) -> Iterable[_Row]:
    names = ("t_ns", "way", "air_packet", "sequence", "payload_bytes", "acknowledgement", "flags", "identification")
    for captured, packets in captures.items():
        own = connection.forward(packets).filter(pl.col("way").is_not_null())
        for t_ns, *rest in own.select(names).iter_rows():
            yield _Row(t_ns, captured, *rest)


def _air_ends(rows: list[_Row], packets: dict[int, AirPacket]) -> Iterable[tuple[int, tuple]]:
    """Drops, and deliveries that no capture shows; none before the frame was captured leaving."""
    arrived = {row.air_packet for row in rows if row.way == IN}
    for row in rows:
        packet = packets.get(row.air_packet) if row.way == OUT else None
        if packet is None:
            continue
        if packet.dropped:
            yield max(row.t_ns, packet.dropped[0]), (packet.number, DROPPED, packet.station, packet.dropped[1])
        if packet.number not in arrived:
            for at_ns, station in packet.delivered:
                yield max(row.t_ns, at_ns), (packet.number, ARRIVED, station, "")


class _Walk:
    """Puts what happened, told in the order of time, into journeys."""

    def __init__(self, source: str, target: str, packets: dict[int, AirPacket], probes_ns: tuple[int, ...]) -> None:
        self.journeys: list[Journey] = []
        self._source, self._target, self._packets, self._probes_ns = source, target, packets, probes_ns
        self._by_key: dict[tuple, list[Journey]] = defaultdict(list)
        self._by_packet: dict[int, Journey] = {}
        self._by_sequence: dict[int, list[Journey]] = defaultdict(list)

    def frame(self, t_ns: int, row: _Row) -> None:
        node = row.captured.node
        journey = self._by_packet.get(row.air_packet) if row.way == IN else None
        journey = journey or self._with_key(row.key, node)
        if journey is None or (row.way == OUT and node == self._source and self._is_new(row, journey)):
            journey = self._begin(Journey(self._source, *row[4:]), row.key)
        if row.way == IN:
            self._arrive(journey, t_ns, node, row.air_packet)
        else:
            self._leave(journey, t_ns, node, self._packets.get(row.air_packet))

    def held(self, t_ns: int, row: _Row) -> None:
        """The node's routing was given a packet that the kernel had no route for: TCP's own, or one that arrived."""
        node = row.captured.node
        journey = next((journey for journey in self._by_key[row.key] if node in journey.places), None)
        if journey is None or journey.places[node].kind == HELD:
            if node != self._source:
                return
            journey = self._begin(Journey(self._source, *row[4:]), row.key)
        step = journey.places[node] = Step(t_ns, HELD, node)
        journey.steps.append(step)

    def pushed_out(self, t_ns: int, row: _Row) -> None:
        """The node's routing gave up a packet that it held, and no note has told so: another one needed its room."""
        node = row.captured.node
        held = [one for one in self._by_key[row.key] if node in one.places and one.places[node].kind == HELD]
        for journey in held[:1]:
            self._give_up(journey, t_ns, node, PUSHED_OUT)

    def _with_key(self, key: tuple, node: str) -> Journey | None:
        """The oldest such packet at the node, else the newest: resets have no identification, so that several look alike."""
        alike = self._by_key[key]
        return next((journey for journey in alike if node in journey.places), alike[-1] if alike else None)

    def _is_new(self, row: _Row, alike: Journey) -> bool:
        """Whether TCP sends this anew, and it is not what a broken link returned. Copies and resets have no identification."""
        if self._source in alike.places and alike.places[self._source].kind == HELD:
            return False
        if any(abs(row.t_ns - probe_ns) < PROBE_NS for probe_ns in self._probes_ns):
            return True
        return not row.identification and self._source not in alike.places

    def _begin(self, journey: Journey, key: tuple | None = None) -> Journey:
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

    def air(self, t_ns: int, end: tuple[int, str, str, str]) -> None:
        """A packet was dropped by the radio that had it, or handed to a station whose capture has lost it."""
        number, kind, node, reason = end
        journey = self._by_packet[number]
        if kind == ARRIVED:
            return self._arrive(journey, t_ns, node, number)
        journey.places.pop(number, None)
        step = journey.places[node] = Step(t_ns, DROPPED, node, reason)
        journey.steps.append(step)

    def note(self, t_ns: int, about: tuple[str, int]) -> None:
        """A daemon gave up a packet: the oldest of this number that is with it, or one of its own that never left."""
        node, sequence = about
        same = self._by_sequence[sequence]
        journey = next((journey for journey in same if node in journey.places), None)
        if journey is None:
            if node != self._source:
                return
            known = same[-1] if same else Journey(self._source, sequence, 0, None, 0, None)
            journey = self._begin(Journey(self._source, sequence, known.payload_bytes, known.acknowledgement, known.flags, None))
        self._give_up(journey, t_ns, node, NO_ROUTE)

    @staticmethod
    def _give_up(journey: Journey, t_ns: int, node: str, reason: str) -> None:
        journey.places.pop(node, None)
        journey.steps.append(Step(t_ns, GAVE_UP, node, reason))

    def error(self, t_ns: int, what: tuple[str, bool, IcmpError]) -> None:
        """An ICMP message about a packet leaves the node that says it, or reaches the packet's source."""
        node, says, error = what
        same = self._by_sequence[error.sequence]
        about = [journey for journey in same if journey.identification == error.identification] or same
        if not about or not (says or node == self._source):
            return
        journey = about[-1]
        kept = node in journey.places and journey.places[node].kind == HELD  # AODV repairs its route, and says so at once
        if says and error.kind != HOLDING and node in journey.places and not kept:  # the node's own kernel dropped it
            self._give_up(journey, t_ns, node, _dropped_for(error))
        step = Step(t_ns, SAID if says else TOLD, node, error.name)
        if not any(old[1:4] == step[1:4] and t_ns - old.t_ns < PROBE_NS for old in journey.steps):
            journey.steps.append(step)


def _dropped_for(error: IcmpError) -> str:
    return NO_ROUTE if error.name in ("network unreachable", "host unreachable") else error.name.replace(" ", "-")


class _Evidence:
    """What a run says of packets that came to a node and never left it."""

    def __init__(self, run: RunDirectory, captures: dict[Captured, pl.DataFrame]) -> None:
        self._run = run
        self._asked_ns: dict[str, list[int]] = defaultdict(list)
        for captured, packets in captures.items():
            asked = packets.filter((pl.col("protocol") == "arp") & (pl.col("way") == OUT) & (pl.col("eth_dst") == BROADCAST))
            self._asked_ns[captured.node] += asked["t_ns"].to_list()

    def of(self, step: Step) -> str:
        """Why a packet stayed at the node of its last step, or NO_RECORD."""
        if step.kind == HELD:
            return HELD_AT_END
        if step.kind == ARRIVED:
            if any(0 <= asked_ns - step.t_ns < ARP_GIVES_UP_NS for asked_ns in self._asked_ns[step.node]):
                return NO_NEIGHBOUR
            if self._run.held_at_end(step.node):
                return HELD_AT_END
        return NO_RECORD


def _without_passing(steps: list[Step]) -> list[Step]:
    """Without the moments at which routing only passed a packet on."""
    passed = [
        step.kind == HELD and later.kind in (SENT, FORWARDED) and later.t_ns - step.t_ns < PASSED_ON_NS
        for step, later in pairwise([*steps, steps[-1]])
    ]
    return [step for step, gone in zip(steps, passed, strict=True) if not gone]


def _judge(journey: Journey, evidence: _Evidence) -> None:
    """Fill in what became of it: received by its target, else what ended the copy that was last heard of."""
    arrived = next((step for step in journey.steps if step.kind == RECEIVED), None)
    if arrived is not None:
        journey.fate, journey.node, journey.at_ns = RECEIVED, arrived.node, arrived.t_ns
        return
    open_ends = [step for step in journey.places.values() if step.kind != DROPPED]
    ends = [step for step in journey.steps if step.kind in (DROPPED, GAVE_UP)]
    last = max(open_ends or ends, key=lambda step: step.t_ns)
    journey.fate = evidence.of(last) if open_ends else last.reason
    journey.node, journey.at_ns = last.node, last.t_ns
