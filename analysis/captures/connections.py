"""The packets of a flow in a capture: its connection (four-tuple) and its two directions."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from analysis.captures.plain_frames import SYN
from analysis.captures.sequence import MODULUS


@dataclass(frozen=True)
class Connection:
    """A TCP connection or UDP flow, named from the side that sends the data."""

    protocol: str  # tcp | udp
    source: str
    source_port: int
    destination: str
    destination_port: int

    @property
    def is_of(self) -> pl.Expr:
        """Whether a packet goes from the data's source to its destination."""
        return _goes(self.protocol, self.source, self.source_port, self.destination, self.destination_port)

    def forward(self, packets: pl.DataFrame) -> pl.DataFrame:
        """The packets from the data's source to its destination."""
        return packets.filter(self.is_of)

    def backward(self, packets: pl.DataFrame) -> pl.DataFrame:
        """The packets in the other direction, which carry the acknowledgements."""
        return packets.filter(self.reversed().is_of)

    def reversed(self) -> "Connection":
        """The same connection, named from the side that acknowledges."""
        return Connection(self.protocol, self.destination, self.destination_port, self.source, self.source_port)

    def start_ns(self, packets: pl.DataFrame) -> int | None:
        """Time at which the flow's first packet left (TCP: the first SYN, or the first captured packet); None without packets."""
        first_ns: int | None = self.forward(packets).select(pl.min("t_ns")).item()
        return first_ns

    def initial_sequence(self, *captures: pl.DataFrame) -> int | None:
        """The sequence number of the flow's SYN; without one the number before the first segment seen."""
        forward = [self.forward(packets) for packets in captures]
        for packets in forward:
            if len(syns := packets.filter(is_syn(packets))):
                return syns["sequence"][0]
        return next(((packets["sequence"][0] - 1) % MODULUS for packets in forward if len(packets)), None)


@lru_cache(maxsize=256)
def _goes(protocol: str, source: str, source_port: int, destination: str, port: int) -> pl.Expr:
    return (
        (pl.col("protocol") == protocol)
        & (pl.col("source") == source)
        & (pl.col("source_port") == source_port)
        & (pl.col("destination") == destination)
        & (pl.col("destination_port") == port)
    )


def find_connections(packets: pl.DataFrame, protocol: str, source: str, destination: str) -> list[Connection]:
    """All flows of one protocol from one address to the other, in descending order of payload.

    For runs whose iperf3 report does not name the ports: iperf3's control connection carries some hundred bytes, so the data
    connection comes first.
    """
    between = packets.filter(
        (pl.col("protocol") == protocol) & (pl.col("source") == source) & (pl.col("destination") == destination)
    )
    totals = (
        between.group_by("source_port", "destination_port")
        .agg(pl.col("payload_bytes").sum(), pl.col("t_ns").min())
        .sort("payload_bytes", "t_ns", descending=[True, False])
    )
    return [
        Connection(protocol, source, row["source_port"], destination, row["destination_port"])
        for row in totals.iter_rows(named=True)
    ]


def has_flag(packets: pl.DataFrame, flag: int) -> np.ndarray:
    """A mask (bool) of the TCP packets that carry the flag."""
    return (packets["flags"].fill_null(0).to_numpy() & flag) != 0


def is_syn(packets: pl.DataFrame) -> pl.Series:
    """A mask of the TCP packets that carry SYN."""
    return pl.Series(has_flag(packets, SYN))


def uses_of(packets: pl.DataFrame, connection: Connection) -> list[tuple[int, tuple[int, pl.DataFrame]]]:
    """The uses of a pair of ports: the sequence number of each SYN, its time, and the packets up to the next other SYN."""
    forward = connection.forward(packets)
    both = pl.concat([forward, connection.backward(packets)]).sort("t_ns", maintain_order=True)
    syns = forward.filter(is_syn(forward))
    begins = syns.unique(subset="sequence", keep="first", maintain_order=True).select("sequence", "t_ns").rows()
    ends = [begin for _, begin in begins[1:]] + [(both.select(pl.max("t_ns")).item() or 0) + 1]
    return [
        (sequence, (begin, both.filter(pl.col("t_ns").is_between(begin, end, closed="left"))))
        for (sequence, begin), end in zip(begins, ends, strict=False)
    ]
