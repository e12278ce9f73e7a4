"""Cross-checks between captures, iperf3's report, the air log and the medium's counters.

Each check has a name and carries its figures. A tolerance follows from the largest possible difference between the two sources,
and each function explains it; none is a guess at noise.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from analysis.captures.air import Matching
from analysis.captures.connections import Connection
from analysis.captures.iperf import IperfReport
from analysis.captures.pcap import STAMP_BYTES
from analysis.metrics.throughput import ReceiverView, SenderView

NAMED = 3  # at most so many disagreements in one line
EDGE_S = 0.01  # from the capture of a datagram to its receiver's socket, and the signal that ends the receiver

# Columns of counters.json that the air log counts as well: counter -> (event, frame or None, fate or None).
_LOGGED = {
    "delivered_up": ("deliver", None, None),
    "enqueued": ("enqueue", None, None),
    "queue_full": ("drop", None, "queue-full"),
    "codel": ("drop", None, "codel"),
    "overlimit": ("drop", None, "overlimit"),
    "retry_short": ("drop", None, "retry-short"),
    "retry_long": ("drop", None, "retry-long"),
    "purged": ("drop", None, "purged"),
    "no_peer": ("drop", None, "no-peer"),
    "too_long": ("drop", None, "too-long"),
    "off": ("drop", None, "off"),
    "tx_rts": ("tx", "rts", None),
    "tx_cts": ("tx", "cts", None),
    "tx_data": ("tx", "data", None),
    "tx_ack": ("tx", "ack", None),
    "tx_bcast": ("tx", "bcast", None),
    "tx_ba": ("tx", "ba", None),
    "tx_bar": ("tx", "bar", None),
}


@dataclass(frozen=True)
class Check:
    """The result of one cross-check of a run, as metrics.json lists it; `detail` has the compared figures."""

    name: str
    ok: bool
    detail: str

    def as_dict(self) -> dict[str, Any]:
        """`name`, `ok` and `detail`, for metrics.json."""
        return asdict(self)


class Unmeasured(Check):
    """A figure that the run has no data for, which is no contradiction between its sources."""


def named(wrong: Sequence[str], agreement: str) -> str:
    """The detail of a check over many parts: the first disagreements, or `agreement`."""
    more = f"; and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
    return "; ".join(wrong[:NAMED]) + more if wrong else agreement


def capture_complete(flow: str, sender: SenderView, receiver: ReceiverView) -> Check:
    """No tolerance: an acknowledged byte that a capture does not have is a packet that the capturing program lost.

    Throughput stays right (it rests on the ACKs); retransmissions and RTT miss the lost packets.
    """
    detail = f"bytes acknowledged but not captured: {sender.unseen_bytes} at the sender, {receiver.unseen_bytes} at the receiver"
    return Check(f"{flow} capture-complete", sender.unseen_bytes == receiver.unseen_bytes == 0, detail)


def acked_delivered(flow: str, sender: SenderView, receiver: ReceiverView, begin_ns: int, end_ns: int) -> Check:
    """At both edges of the window the receiver is ahead of the sender's knowledge, by one flight at most.

    An ACK cannot arrive before the data that it acknowledges, and data that arrived unacknowledged were in flight.
    """
    leads = [receiver.delivered.before(edge) - sender.acked.before(edge) for edge in (begin_ns, end_ns)]
    ok = all(0 <= lead <= sender.largest_flight_bytes for lead in leads)
    detail = (
        f"receiver ahead of the sender's ACKs by {leads[0]} and {leads[1]} bytes; "
        f"allowed 0 to a flight of {sender.largest_flight_bytes}"
    )
    return Check(f"{flow} acked-delivered", ok, detail)


def application_bytes(receiver: ReceiverView, begin_ns: int, end_ns: int, preamble_bytes: int) -> int:
    """Bytes that the receiver's TCP delivered in order to its application in a window, without those that open the
    connection."""
    ready = [max(0, receiver.delivered.before(edge) - preamble_bytes) for edge in (begin_ns, end_ns)]
    return ready[1] - ready[0]


def iperf_delivered(flow: str, report: IperfReport, sender: SenderView, receiver: ReceiverView, preamble_bytes: int) -> Check:
    """iperf3's receiver has read at least the bytes that had arrived when the test ended, and at most all bytes that ever
    arrived.

    It counts whole reads only (from 3.16 on whole blocks of 131072 bytes), so that up to one block may be missing; its cookie
    (`preamble_bytes`) is not counted. At 300 kbit/s a block takes three and a half seconds, so this figure cannot measure a
    window. A test whose set-up took long is interrupted before its time is over, as is a server that could not exchange results:
    the figure is then of the seconds that the server reported, from the accepted connection on.
    """
    if not sender.segments.t_ns.size:
        detail = f"iperf3's receiver read {report.received_bytes} bytes; no segment captured"
        return Check(f"{flow} iperf3-capture", report.received_bytes == 0, detail)
    counted_s = min(report.test_s, report.received_s) if report.remark else report.test_s
    test_end_ns = int(sender.segments.t_ns[0]) + round(counted_s * 1e9)
    min_bytes = receiver.delivered.before(test_end_ns) - preamble_bytes - report.block_bytes
    max_bytes = receiver.delivered.total - preamble_bytes
    detail = f"iperf3's receiver read {report.received_bytes} bytes; the capture allows {max(min_bytes, 0)} to {max_bytes}"
    return Check(f"{flow} iperf3-capture", min_bytes <= report.received_bytes <= max_bytes, detail)


# If a layer's gate keeps back a timer retransmission, the kernel retries after TCP_RESOURCE_PROBE_INTERVAL (include/net/tcp.h).
RETRY_S = 0.5


@dataclass(frozen=True)
class LayersPart:
    """Actions of layers on a connection (events of tcp.csv): the probes they sent, and how long they kept it silent."""

    probes: int = 0
    stand_bys_s: tuple[float, ...] = ()

    @property
    def kept_back(self) -> int:
        """Upper bound of the retransmissions that the kernel counted and a gate kept back."""
        return sum(int(seconds / RETRY_S) + 2 for seconds in self.stand_bys_s)


def iperf_retransmissions(
    flow: str, report: IperfReport, sender: SenderView, unsent: int = 0, layers: LayersPart | None = None, off: int = 0
) -> Check:
    """The kernel's count lies between the retransmissions captured until the end of the test and all captured retransmissions.

    `unsent`: segments that the sender's routing daemon gave up because it had no route, or that were too big for its tunnel; the
    radio may never have had them. One more is allowed for a retransmitted SYN, which the kernel counts and the segments do not
    include, and one less for a segment retransmitted while iperf3 made the report. Segments that left their daemon after later
    ones may be no retransmissions (`Segments.late`). `layers`: the kernel does not count probes of layers nor a routing daemon's
    copies of them, but counts the retransmissions that they kept back. `off`: at most so many were counted while the sender's
    radio was off, and are in no capture.
    """
    layers = layers or LayersPart()
    if report.retransmissions is None and report.remark:
        return Check(f"{flow} iperf3-retransmissions", True, f"not compared: {report.remark}")
    if report.retransmissions is None:
        return Check(f"{flow} iperf3-retransmissions", False, "iperf3's report has no retransmissions")
    repeated = sender.segments.t_ns[sender.segments.repeated]
    first_ns = int(sender.segments.t_ns[0]) if sender.segments.t_ns.size else 0
    until_end = int((repeated < first_ns + round(report.test_s * 1e9)).sum())
    late = sender.segments.late
    copies = int((sender.segments.repeated & sender.segments.unnumbered).sum()) if layers.probes else 0
    probes = max(layers.probes, copies)
    max_count = len(repeated) + unsent + layers.kept_back + off + 1
    ok = until_end - late - probes - 1 <= report.retransmissions <= max_count
    detail = f"iperf3 {report.retransmissions}; captured {until_end} until the test ended, {len(repeated)} in all"
    detail += f"; {late} of them held until later ones had left" if late else ""
    detail += f"; {unsent} given up by the routing daemon" if unsent else ""
    detail += (
        f"; {probes} probes and copies of them, up to {layers.kept_back} kept back in stand-by" if layers.stand_bys_s else ""
    )
    detail += f"; up to {off} while the sender was off" if off else ""
    return Check(f"{flow} iperf3-retransmissions", ok, detail)


def iperf_datagrams(flow: str, report: IperfReport, receiver: pl.DataFrame, connection: Connection) -> Check:
    """The receiver counts each datagram once, until it ends. The counts must be equal, except for datagrams that arrive within
    EDGE_S of its end. A lower count means that its socket dropped some."""
    stamped = connection.forward(receiver).filter(pl.col("payload_bytes") >= STAMP_BYTES)
    arrived = stamped.sort("t_ns").unique(subset="stamp", keep="first")
    ended_s, looked_s = report.content.get("end", {}).get("sum_received", {}).get("until_s") or (math.inf, math.inf)
    limits_s = (ended_s - EDGE_S, looked_s + EDGE_S)
    min_bytes, max_bytes = (int(arrived.filter(pl.col("t_ns") / 1e9 <= at_s)["payload_bytes"].sum()) for at_s in limits_s)
    detail = f"the receiver read {report.received_bytes} bytes; {max_bytes} arrived"
    return Check(f"{flow} iperf3-capture", min_bytes <= report.received_bytes <= max_bytes, detail)


def report_without_error(name: str, report: IperfReport) -> Check:
    """The report must hold no error."""
    return Check(name, report.error is None, report.error or report.remark or "complete")


def window_covered(flow: str, report: IperfReport, needed_s: float) -> Check:
    """The test must last to the end of the window, to the microsecond of its times; otherwise the last part would count as
    silence."""
    detail = f"iperf3 ran {report.test_s:g} s, the window ends at {needed_s:g} s"
    return Check(f"{flow} window-covered", round(report.test_s - needed_s, 6) >= 0, detail)


def air_capture(flow: str, station: str, matching: Matching) -> Check:
    """The capture at the destination has every frame that the medium delivered there in the window, and no other."""
    lag_ms = (matching.matched.select(pl.max("lag_ns")).item() or 0) / 1e6
    detail = (
        f"{station}: {len(matching.matched)} frames in both, {matching.only_air} only in the air log, "
        f"{matching.only_capture} only captured; captured at most {lag_ms:.1f} ms after delivery"
    )
    return Check(f"{flow} air-capture", not (matching.only_air or matching.only_capture), detail)


def air_counters(air: pl.DataFrame, counters: dict[str, dict[str, int]]) -> list[Check]:
    """Whole run, exact: the same event in the medium writes both. One check for all stations."""
    wrong = []
    # lazy: else polars copies the four columns
    kinds = list(air.lazy().group_by("station", "event", "frame", "fate").len().collect().iter_rows())
    for counter, (event, frame, fate) in _LOGGED.items():
        logged: Counter[str] = Counter()
        for station, of_event, of_frame, of_fate, count in kinds:
            if of_event == event and frame in (None, of_frame) and fate in (None, of_fate):
                logged[station] += count
        for station, counted in counters.items():
            if logged[station] != counted.get(counter, 0):
                wrong.append(f"{station} {counter}: log {logged[station]}, counter {counted.get(counter, 0)}")
    detail = "; ".join(wrong[:5]) + (f"; and {len(wrong) - 5} more" if len(wrong) > 5 else "")
    return [Check("air-counters", not wrong, detail or f"{len(counters)} stations agree")]
