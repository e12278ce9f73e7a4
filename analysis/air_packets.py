"""Which packet of the air log each captured frame is, and what became of a packet on the air.

A station's TAP keeps the order of frames, so that frames to one neighbour of one size meet the log's `enqueue` rows in step (the
frames it sent), and those from one neighbour its `deliver` rows (the frames that arrived). The medium is later than the capture
in the first case and earlier in the second; a row that would be the wrong way round, or a second away, has no partner. What a
host answers at once enters the medium at the instant of its cause (docs/verdict.md): before the capture, by as much as the medium
was late.
"""

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from analysis.air import MATCH_TOLERANCE_NS
from analysis.rundir import Captured, RunDirectory

# How far a capture's clock may seem to run the wrong way beside the medium's: both are one host's, read at different moments.
EARLY_NS = 5_000_000
_ARP_BYTES = 28
OUT, IN = "out", "in"


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
    power_dbm: float | None = None  # at which it was received last; None where the log does not say


def paired_capture(run: RunDirectory, captured: Captured) -> pl.DataFrame:
    """The capture with `way` (out: the node sent it, in: it was sent to the node, else null) and `air_packet` (or null)."""
    packets = run.capture(captured.file)
    way = pl.when(pl.col("eth_src") == captured.mac).then(pl.lit(OUT)).when(pl.col("eth_dst") == captured.mac).then(pl.lit(IN))
    packets = packets.with_columns(way=way.otherwise(None))
    numbers: list[int | None] = [None] * len(packets)
    if captured.radio:
        _pair(run, captured.node, packets, numbers, OUT)
        _pair(run, captured.node, packets, numbers, IN)
    return packets.with_columns(air_packet=pl.Series(numbers, dtype=pl.Int64))


def _pair(run: RunDirectory, station: str, packets: pl.DataFrame, numbers: list[int | None], way: str) -> None:
    """Fill in the numbers of the frames that went this way."""
    names = {entry.mac: entry.node for entry in run.captured if entry.radio}
    waiting = _log_rows(run, station, "enqueue" if way == OUT else "deliver")
    other = "eth_dst" if way == OUT else "eth_src"
    earliest, latest = (-EARLY_NS - run.max_lateness_ns, MATCH_TOLERANCE_NS) if way == OUT else (-MATCH_TOLERANCE_NS, EARLY_NS)
    columns = (packets[name].to_list() for name in ("t_ns", "way", other, "ip_bytes", "protocol"))
    for index, (t_ns, went, mac, ip_bytes, protocol) in enumerate(zip(*columns, strict=True)):
        if went != way:
            continue
        queue = waiting[names.get(mac, "?"), _ARP_BYTES if protocol == "arp" else ip_bytes]
        while queue and queue[0][0] - t_ns < earliest:
            queue.popleft()  # the capture has lost its frame
        if queue and queue[0][0] - t_ns <= latest:
            numbers[index] = queue.popleft()[1]


def _log_rows(run: RunDirectory, station: str, event: str) -> dict[tuple[str, int], deque]:
    """Time and number of the station's unicast packets, by the other end and the size."""
    chosen = (pl.col("station") == station) & (pl.col("event") == event) & (pl.col("frame") == "data")
    waiting: dict[tuple[str, int], deque] = defaultdict(deque)
    for t_ns, peer, size, number in run.air.filter(chosen).sort("t_ns").select("t_ns", "peer", "bytes", "packet").iter_rows():
        waiting[peer, size].append((t_ns + run.epoch_ns, number))
    return waiting


def air_packets(run: RunDirectory, numbers: set[int]) -> dict[int, AirPacket]:
    """What the log says of these packets. CTS and ACK have no number: a failed one is a retry of the packet it answered."""
    found: dict[int, AirPacket] = {}
    rows = run.air.filter(pl.col("packet").is_in(sorted(numbers))).sort("packet", "t_ns", maintain_order=True)
    columns = ("t_ns", "station", "event", "frame", "peer", "packet", "attempt", "fate", "power_dbm")
    enqueued = rows.filter(pl.col("event") == "enqueue")
    for t_ns, station, _, _, peer, number, *_ in enqueued.select(columns).iter_rows():
        found[number] = AirPacket(number, station, peer, t_ns + run.epoch_ns)
    for t_ns, station, event, frame, _, number, attempt, fate, power_dbm in rows.select(columns).iter_rows():
        packet, at_ns = found.get(number), t_ns + run.epoch_ns
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
