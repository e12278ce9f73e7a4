"""Metrics of a UDP flow: delivered rate, loss, distribution of the latency, jitter; and the record of each datagram.

A datagram counts from the instant at which the application wrote it: what the source's routing daemon holds, or drops for want of
a route, was offered. The generator writes that instant and a counter into the first bytes of the payload; a datagram that is in
no capture was written by the generator's schedule. Generator and captures use the same clock (one host), so the one-way delay
needs no synchronisation. There are two jitters: the standard deviation of the delay, as in the studies of multimedia traffic, and
the interarrival jitter of RFC 3550, 6.4.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import polars as pl

from analysis.captures.connections import Connection
from analysis.captures.pcap import STAMP_BYTES
from record.files import atomic_file
from traffic.programs.datagrams import HEADERS_BYTES, STAMP

SILENT_S = 0.5  # several datagrams of any flow whose silence matters; contention loses one or two
QUANTILES = {"p5": 0.05, "p50": 0.5, "p95": 0.95, "p99": 0.99}
JITTER_GAIN = 1 / 16  # RFC 3550, 6.4.1
FOLDER = "datagrams"  # of a run, with the records of each flow


@dataclass(frozen=True)
class Schedule:
    """The generator's: burst k begins at `first_ns` + k * `interval_s` (CLOCK_REALTIME), and its `at_once` datagrams are written
    then; `count` in all."""

    first_ns: int
    interval_s: float
    count: int
    at_once: int = 1

    def written_ns(self, number: int) -> int:
        """The instant of datagram `number`."""
        return self.first_ns + round(number // self.at_once * self.interval_s * 1e9)


@dataclass(frozen=True)
class DatagramMetrics:
    """Metrics of one window. The delays are of datagrams written in the window; None if none arrived."""

    sent: int  # written by the application, whether they left the station or not
    received: int  # of those written in the window, at any time of arrival
    delivered_bytes: int  # payload that arrived in the window
    latency_ms: dict[str, float | None]  # mean, QUANTILES and max
    jitter_ms: float | None
    jitter_rfc3550_ms: float | None  # after the last arrival
    jitter_rfc3550_ms_mean: float | None  # over the arrivals from the second on
    marks_ns: list[int]  # the arrivals in the window, between its ends

    @property
    def loss(self) -> float | None:
        """Lost share of the sent datagrams, 0 to 1; None when none was sent."""
        return (self.sent - self.received) / self.sent if self.sent else None

    @property
    def delivery(self) -> float | None:
        """Delivered share of the sent datagrams, 0 to 1; None when none was sent."""
        return self.received / self.sent if self.sent else None


def datagrams_of(
    sender: pl.DataFrame, receiver: pl.DataFrame, connection: Connection, schedule: Schedule | None = None
) -> pl.DataFrame:
    """The datagrams of a flow in the order of writing: `number`, `bytes` of the IP packet, `written_ns`, `sent_ns` (null: it
    never left the source), `received_ns` (null: lost). Without a schedule, only those in the sender's capture. Datagrams shorter
    than a stamp (iperf3's greeting) are not data."""
    left, arrived = _datagrams(sender, connection), _datagrams(receiver, connection)
    headers = HEADERS_BYTES[6 if ":" in connection.source else 4]
    both = left.select("stamp", pl.col("payload_bytes") + headers, pl.col("t_ns").alias("sent_ns")).join(
        arrived.select("stamp", pl.col("t_ns").alias("received_ns")), on="stamp", how="left", maintain_order="left"
    )  # fmt: skip
    stamps = [STAMP.unpack(stamp) for stamp in both["stamp"]]
    captured = both.select(
        pl.Series("number", [number for _, number in stamps], dtype=pl.Int64),
        pl.col("payload_bytes").cast(pl.Int64).alias("bytes"),
        pl.Series("written_ns", [t_ns for t_ns, _ in stamps], dtype=pl.Int64),
        pl.col("sent_ns").cast(pl.Int64),
        pl.col("received_ns").cast(pl.Int64),
    )
    if schedule is None:
        return captured
    seen = set(captured["number"])
    unseen = [number for number in range(schedule.count) if number not in seen]
    times_ns = [schedule.written_ns(number) for number in unseen]
    never_left = pl.DataFrame({"number": unseen, "written_ns": times_ns}, schema={"number": pl.Int64, "written_ns": pl.Int64})
    return pl.concat([captured, never_left], how="diagonal").sort("number")


def datagram_metrics(
    datagrams: pl.DataFrame, receiver: pl.DataFrame, connection: Connection, begin_ns: int, end_ns: int
) -> DatagramMetrics:
    """The metrics of the window from the `datagrams` (datagrams_of) and the capture at the receiver."""
    arrivals = _datagrams(receiver, connection).filter(pl.col("t_ns").is_between(begin_ns, end_ns, closed="left"))
    sent = datagrams.filter(pl.col("written_ns").is_between(begin_ns, end_ns, closed="left"))
    received = sent.drop_nulls("received_ns").with_columns(
        ((pl.col("received_ns") - pl.col("written_ns")) / 1e6).alias("delay_ms")
    )
    delay_ms = pl.col("delay_ms")
    jitters_ms = interarrival_jitters_ms(received.sort("received_ns", maintain_order=True)["delay_ms"].to_list())
    quantiles = {name: delay_ms.quantile(share, interpolation="linear") for name, share in QUANTILES.items()}
    return DatagramMetrics(
        sent=len(sent),
        received=len(received),
        delivered_bytes=int(arrivals["payload_bytes"].sum()),
        latency_ms=received.select(mean=delay_ms.mean(), **quantiles, max=delay_ms.max()).row(0, named=True),
        jitter_ms=received.select(delay_ms.std()).item(),
        jitter_rfc3550_ms=jitters_ms[-1] if jitters_ms else None,
        jitter_rfc3550_ms_mean=sum(jitters_ms) / len(jitters_ms) if jitters_ms else None,
        marks_ns=[begin_ns, *arrivals["t_ns"], end_ns],
    )


def interarrival_jitters_ms(delays_ms: Sequence[float]) -> list[float]:
    """RFC 3550's jitter after each arrival from the second on, from the delays in the order of arrival:
    J(i) = J(i-1) + (|D(i-1,i)| - J(i-1)) / 16. D(i-1,i) = (R(i) - R(i-1)) - (S(i) - S(i-1)) is the difference of two delays."""
    jitter_ms, jitters_ms = 0.0, []
    for earlier, later in pairwise(delays_ms):
        jitter_ms += (abs(later - earlier) - jitter_ms) * JITTER_GAIN
        jitters_ms.append(jitter_ms)
    return jitters_ms


def write_records(path: Path, datagrams: pl.DataFrame, begin_ns: int, end_ns: int) -> None:
    """The file of a flow's datagrams, one in each row (formats/results.md)."""
    rows = datagrams.select(
        "number",
        "bytes",
        "written_ns",
        "sent_ns",
        "received_ns",
        ((pl.col("received_ns") - pl.col("written_ns")) / 1e6).alias("latency_ms"),
        pl.col("received_ns").is_null().cast(pl.Int8).alias("lost"),
        pl.col("written_ns").is_between(begin_ns, end_ns, closed="left").cast(pl.Int8).alias("in_window"),
    )
    path.parent.mkdir(exist_ok=True)
    with atomic_file(path) as file:
        file.write(rows.write_csv(float_precision=6))


def silence_s(marks_ns: Sequence[int]) -> float:
    """The sum of the gaps longer than SILENT_S."""
    return sum(gap_ns for gap_ns in _gaps_ns(marks_ns) if gap_ns > SILENT_S * 1e9) / 1e9


def longest_silence_s(marks_ns: Sequence[int]) -> float:
    """The longest gap."""
    return max(_gaps_ns(marks_ns), default=0) / 1e9


def _gaps_ns(marks_ns: Sequence[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(marks_ns)]


def _datagrams(packets: pl.DataFrame, connection: Connection) -> pl.DataFrame:
    """Each datagram once (the first copy), in order of time."""
    return (
        connection.forward(packets)
        .filter(pl.col("payload_bytes") >= STAMP_BYTES)
        .unique(subset="stamp", keep="first", maintain_order=True)
    )
