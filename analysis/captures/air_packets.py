"""Captured frames matched with packets of the air log, and the history of a packet on the air.

A station's TAP keeps the order of frames. So sent frames of one size to one neighbour match the log's `enqueue` rows in order,
and received frames from one neighbour match its `deliver` rows. An `enqueue` row is later than its frame, a `deliver` row
earlier; a row in the wrong order, or a second away, has no match. A host's immediate answer enters the medium at the instant of
the frame that caused it (docs/verdict.md). This is earlier than the capture by the medium's lateness.
"""

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from analysis.captures.air import MATCH_TOLERANCE_NS
from record.run import Captured

# Largest apparent reversal of capture and medium: both read the clock of one host, at different instants.
EARLY_NS = 5_000_000
_ARP_BYTES = 28
OUT, IN = "out", "in"
Waiting = dict[tuple[str, int], deque[tuple[int, int]]]  # by the other end and the size: time and number of packets


class Attempt(NamedTuple):
    """A frame on the air for a packet: RTS or the data frame itself."""

    t_ns: int
    frame: str
    number: int
    fate: str


@dataclass
class AirPacket:
    """One packet from a station's queue to its end; times are CLOCK_REALTIME."""

    number: int
    station: str
    peer: str
    queued_ns: int
    attempts: list[Attempt] = field(default_factory=list)
    delivered: list[tuple[int, str]] = field(default_factory=list)  # when and to whom
    dropped: tuple[int, str] | None = None  # when and why
    power_dbm: float | None = None  # time of its last reception; None if the log does not say


def paired(
    captures: dict[Captured, pl.DataFrame], air: pl.DataFrame, epoch_ns: int, late_ns: int
) -> dict[Captured, pl.DataFrame]:
    """Each capture with `direction` (out: the node sent it, in: it was sent to the node, else null) and `air_packet` (or null).
    `late_ns`: the medium's maximum lateness."""
    names, found = {captured.mac: captured.node for captured in captures if captured.radio}, {}
    for captured, packets in captures.items():
        sent, received = pl.col("eth_src") == captured.mac, pl.col("eth_dst") == captured.mac
        packets = packets.with_columns(direction=pl.when(sent).then(pl.lit(OUT)).when(received).then(pl.lit(IN)).otherwise(None))
        numbers: list[int | None] = [None] * len(packets)
        if captured.radio:
            queued = _log_rows(air, captured.node, "enqueue", epoch_ns)
            _pair(packets, numbers, OUT, queued, names, (-EARLY_NS - late_ns, MATCH_TOLERANCE_NS))
            delivered = _log_rows(air, captured.node, "deliver", epoch_ns)
            _pair(packets, numbers, IN, delivered, names, (-MATCH_TOLERANCE_NS, EARLY_NS))
        found[captured] = packets.with_columns(air_packet=pl.Series(numbers, dtype=pl.Int64))
    return found


def _pair(
    packets: pl.DataFrame, numbers: list[int | None], direction: str, waiting: Waiting, names: dict[str, str],
    bounds_ns: tuple[int, int],
) -> None:  # fmt: skip
    """Fill in the numbers of the frames of this direction."""
    earliest, latest = bounds_ns
    columns = ("t_ns", "direction", "eth_dst" if direction == OUT else "eth_src", "ip_bytes", "protocol")
    for index, (t_ns, own_direction, mac, ip_bytes, protocol) in enumerate(packets.select(columns).iter_rows()):
        if own_direction != direction:
            continue
        queue = waiting[names.get(mac, "?"), _ARP_BYTES if protocol == "arp" else ip_bytes]
        while queue and queue[0][0] - t_ns < earliest:
            queue.popleft()  # the capture has lost its frame
        if queue and queue[0][0] - t_ns <= latest:
            numbers[index] = queue.popleft()[1]


def _log_rows(air: pl.DataFrame, station: str, event: str, epoch_ns: int) -> Waiting:
    """The station's unicast packets."""
    chosen = (pl.col("station") == station) & (pl.col("event") == event) & (pl.col("frame") == "data")
    waiting: Waiting = defaultdict(deque)
    for t_ns, peer, size, number in air.filter(chosen).sort("t_ns").select("t_ns", "peer", "bytes", "packet").iter_rows():
        waiting[peer, size].append((t_ns + epoch_ns, number))
    return waiting


def air_packets(air: pl.DataFrame, epoch_ns: int, numbers: set[int]) -> dict[int, AirPacket]:
    """The log's history of these packets. CTS and ACK have no number: a lost one is a retry of the packet it answered."""
    found: dict[int, AirPacket] = {}
    rows = air.filter(pl.col("packet").is_in(sorted(numbers))).sort("packet", "t_ns", maintain_order=True)
    columns = ("t_ns", "station", "event", "frame", "peer", "packet", "attempt", "fate", "power_dbm")
    enqueued = rows.filter(pl.col("event") == "enqueue")
    for t_ns, station, _, _, peer, number, *_ in enqueued.select(columns).iter_rows():
        found[number] = AirPacket(number, station, peer, t_ns + epoch_ns)
    for t_ns, station, event, frame, _, number, attempt, fate, power_dbm in rows.select(columns).iter_rows():
        packet, at_ns = found.get(number), t_ns + epoch_ns
        if packet is None:
            continue
        if event == "tx":
            packet.attempts.append(Attempt(at_ns, frame, attempt, fate))
        elif event == "deliver":
            packet.delivered.append((at_ns, station))
            packet.power_dbm = power_dbm
        elif event == "drop":
            packet.dropped = (at_ns, fate)
    return found
