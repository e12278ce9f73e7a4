"""What a UDP flow (CBR) achieved: delivered rate, loss, latency and jitter.

A datagram is recognised at the receiver by the first bytes of its payload, in which the generator writes its
sending time and a counter. Both captures count from the same clock (one host), so that the one-way delay needs
no synchronisation. Jitter is the standard deviation of the delay, as in the studies of multimedia traffic.
"""

from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from analysis.captures import STAMP_BYTES
from analysis.connections import Connection

SILENT_S = 0.5  # several datagrams of any flow whose silence means something; contention takes one or two


@dataclass(frozen=True)
class DatagramMetrics:
    """Over one window; the delays are those of datagrams sent in it, None where none arrived."""

    sent: int
    received: int  # of those sent in the window, whenever they arrived
    delivered_bytes: int  # payload that arrived in the window
    latency_ms_mean: float | None
    latency_ms_p95: float | None
    jitter_ms: float | None
    silence_s: float  # in which none arrived, of the times longer than SILENT_S

    @property
    def loss(self) -> float | None:
        """Lost share of the sent datagrams, 0 to 1; None when none was sent."""
        return (self.sent - self.received) / self.sent if self.sent else None


def datagram_metrics(
    sender: pl.DataFrame, receiver: pl.DataFrame, connection: Connection, begin_ns: int, end_ns: int
) -> DatagramMetrics:
    """Match the datagrams of both captures. Shorter ones than a stamp (iperf3's greeting) are no data."""
    left = _datagrams(sender, connection)
    arrived = _datagrams(receiver, connection)
    in_window = pl.col("t_ns").is_between(begin_ns, end_ns, closed="left")
    sent = left.filter(in_window)
    delays_ms = (
        sent.join(arrived, on="stamp", how="inner", suffix="_arrived")
        .select((pl.col("t_ns_arrived") - pl.col("t_ns")) / 1e6)
        .to_series()
    )
    return DatagramMetrics(
        sent=len(sent),
        received=len(delays_ms),
        delivered_bytes=int(arrived.filter(in_window)["payload_bytes"].sum()),
        latency_ms_mean=delays_ms.mean(),
        latency_ms_p95=delays_ms.quantile(0.95, interpolation="linear"),
        jitter_ms=delays_ms.std(),
        silence_s=silence_s([begin_ns, *arrived.filter(in_window)["t_ns"], end_ns]),
    )


def silence_s(marks_ns: list[int]) -> float:
    """The sum of the gaps longer than SILENT_S."""
    gaps_ns = [later - earlier for earlier, later in pairwise(marks_ns)]
    return sum(gap_ns for gap_ns in gaps_ns if gap_ns > SILENT_S * 1e9) / 1e9


def _datagrams(packets: pl.DataFrame, connection: Connection) -> pl.DataFrame:
    """Each datagram once (the first copy), in order of time."""
    return (
        connection.forward(packets)
        .filter(pl.col("payload_bytes") >= STAMP_BYTES)
        .unique(subset="stamp", keep="first", maintain_order=True)
    )
