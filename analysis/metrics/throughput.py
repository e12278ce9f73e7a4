"""Throughput and retransmissions of a TCP flow, from the captures of its two ends.

Acknowledged: the increase of the highest cumulative ACK seen at the sender, the measure of ns-2 and of the papers. Delivered: the
increase of the in-order bytes at the receiver. Round-trip times: round_trip_times.py.

Byte 0 is the first byte after the SYN. Windows are half-open: [begin_ns, end_ns).
"""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from analysis.captures.connections import Connection, has_flag
from analysis.captures.plain_frames import FIN, SYN
from analysis.captures.sequence import Coverage, unwrap


@dataclass
class Staircase:
    """A count that only rises: values[i] holds from times_ns[i] on."""

    times_ns: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    values: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def before(self, t_ns: int) -> int:
        """The count just before an instant; 0 before the first step."""
        index = int(np.searchsorted(self.times_ns, t_ns, side="left"))
        return int(self.values[index - 1]) if index else 0

    def rise(self, begin_ns: int, end_ns: int) -> int:
        """Increase of the count from `begin_ns` (included) to `end_ns` (excluded)."""
        return self.before(end_ns) - self.before(begin_ns)

    @property
    def total(self) -> int:
        """The last count; 0 without steps."""
        return int(self.values[-1]) if self.values.size else 0

    def rises_ns(self, begin_ns: int, end_ns: int) -> list[int]:
        """The instants in [begin_ns, end_ns) at which it rose."""
        rising = np.diff(self.values, prepend=0) > 0
        times_ns = self.times_ns[rising]
        return times_ns[(times_ns >= begin_ns) & (times_ns < end_ns)].tolist()


@dataclass
class Segments:
    """Data segments in the order captured; `start` and `end` are unwrapped byte numbers."""

    t_ns: np.ndarray
    start: np.ndarray
    end: np.ndarray
    repeated: np.ndarray  # it begins below the highest byte sent before: a retransmission
    unnumbered: np.ndarray  # without an IP identification: a layer's probe, a routing daemon's copy of one, or IPv6

    @property
    def late(self) -> int:
        """Number of `repeated` segments of which no byte was captured before: a routing daemon held them, and later ones left
        first; or it gave up their first copy."""
        places = np.flatnonzero(self.repeated)
        return sum(not np.any((self.start[:at] < self.end[at]) & (self.end[:at] > self.start[at])) for at in places)

    def within(self, begin_ns: int, end_ns: int) -> np.ndarray:
        """A mask (bool, one per segment) of those captured in [begin_ns, end_ns)."""
        return (self.t_ns >= begin_ns) & (self.t_ns < end_ns)


@dataclass
class SenderView:
    """The flow as seen in the sender's capture."""

    segments: Segments
    acked: Staircase
    unseen_bytes: int  # acknowledged, but missing in the capture at the sender
    largest_flight_bytes: int
    routing_resends: int  # segments that the routing daemon sent again after a broken link


@dataclass
class ReceiverView:
    """The flow as seen in the receiver's capture."""

    segments: Segments
    delivered: Staircase
    closed_ns: int | None  # the first FIN that arrived
    unseen_bytes: int  # acknowledged by this host, but missing in its capture


def sender_view(packets: pl.DataFrame, connection: Connection, isn: int) -> SenderView:
    """Acknowledged bytes, segments and losses of the capture at the sender."""
    captured = connection.forward(packets)
    forward = _sent_by_tcp(captured)
    segments = _segments(forward, isn)
    times, acks = _acknowledgements(connection.backward(packets), isn, _last_byte(forward, isn))
    acked = Staircase(times, np.maximum.accumulate(acks))
    resends = len(captured) - len(forward)
    return SenderView(segments, acked, _unseen(segments, acked), _largest_flight(segments, acked), resends)


def receiver_view(packets: pl.DataFrame, connection: Connection, isn: int) -> ReceiverView:
    """In-order bytes and losses of the capture at the receiver.

    The receiver's own ACKs give its in-order bytes even if the capture lost a segment.
    """
    forward = connection.forward(packets)
    segments = _segments(forward, isn)
    times, acks = _acknowledgements(connection.backward(packets), isn, _last_byte(forward, isn))
    acked = Staircase(times, np.maximum.accumulate(acks))
    coverage, unseen, steps, prefixes = Coverage(), 0, [], []
    for t_ns, start, end in in_time_order(segments, acked):
        if start is None:
            unseen += coverage.skip_to(end)
        else:
            coverage.add(start, end)
        steps.append(t_ns)
        prefixes.append(coverage.prefix)
    delivered = Staircase(np.array(steps, dtype=np.int64), np.array(prefixes, dtype=np.int64))
    closing_ns = forward["t_ns"].to_numpy()[has_flag(forward, FIN)]
    closed_ns = int(closing_ns.min()) if closing_ns.size else None
    return ReceiverView(segments, delivered, closed_ns, unseen)


def in_time_order(segments: Segments, acked: Staircase) -> list[tuple[int, int | None, int]]:
    """Segments as (time, start, end) and ACKs as (time, None, value); at the same instant, the segment comes first."""
    sent = zip(segments.t_ns.tolist(), segments.start.tolist(), segments.end.tolist(), strict=True)
    acks = zip(acked.times_ns.tolist(), acked.values.tolist(), strict=True)
    events = [(t, 0, start, end) for t, start, end in sent] + [(t, 1, None, value) for t, value in acks]
    return [(t, start, end) for t, _, start, end in sorted(events, key=lambda event: event[:2])]


def _sent_by_tcp(forward: pl.DataFrame) -> pl.DataFrame:
    """Without the packets that a broken link returned to the routing daemon, which sent them again without TCP.

    They are the same packets, with the same IP identification, while the kernel gives each retransmission a new one.
    """
    numbered = pl.col("identification").fill_null(0) != 0
    again = ~pl.struct("identification", "sequence", "payload_bytes", "acknowledgement", "flags").is_first_distinct()
    return forward.filter(~(numbered & again))


def _segments(forward: pl.DataFrame, isn: int) -> Segments:
    payload_bytes = forward["payload_bytes"].to_numpy()
    data = (payload_bytes > 0) & ~has_flag(forward, SYN)
    start = unwrap(forward["sequence"].to_numpy()[data], isn + 1)
    end = start + payload_bytes[data].astype(np.int64)
    sent_before = np.concatenate([[0], np.maximum.accumulate(end)[:-1]]) if end.size else end
    unnumbered = forward["identification"].fill_null(0).to_numpy()[data] == 0
    return Segments(forward["t_ns"].to_numpy()[data], start, end, start < sent_before, unnumbered)


def _acknowledgements(backward: pl.DataFrame, isn: int, last_byte: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Times and unwrapped values of the ACKs; the one that acknowledges the FIN counts no byte for it."""
    known = backward["acknowledgement"].is_not_null().to_numpy()
    values = unwrap(backward["acknowledgement"].fill_null(0).to_numpy()[known], isn + 1)
    return backward["t_ns"].to_numpy()[known], values if last_byte is None else np.minimum(values, last_byte)


def _last_byte(forward: pl.DataFrame, isn: int) -> int | None:
    """The number of bytes of the flow, known once its FIN was seen."""
    positions = unwrap(forward["sequence"].to_numpy(), isn + 1) + forward["payload_bytes"].to_numpy()
    closing = positions[has_flag(forward, FIN)]
    return int(closing.max()) if closing.size else None


def _unseen(segments: Segments, acked: Staircase) -> int:
    coverage, unseen = Coverage(), 0
    for _, start, end in in_time_order(segments, acked):
        if start is None:
            unseen += coverage.skip_to(end)
        else:
            coverage.add(start, end)
    return unseen


def _largest_flight(segments: Segments, acked: Staircase) -> int:
    if not segments.end.size:
        return 0
    outstanding = np.maximum.accumulate(segments.end) - np.array([acked.before(t) for t in segments.t_ns])
    return int(outstanding.max())
