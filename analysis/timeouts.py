"""Timeouts of a TCP connection, and how many of them were spurious.

A timeout is spurious if waiting longer for an acknowledgement would have avoided it (RFC 3522, section 1). Eifel and F-RTO (RFC
5682) infer that at the sender; the captures of both ends show it: the first ACK of new data that arrives after the timeout had
left the receiver before the segment that the timeout sent again arrived there, so an earlier copy caused it. If all such ACKs
were lost, the timeout was needed.

Packets are recognised by their IP identification, which the kernel gives anew to each retransmission. IPv6 has none.
"""

import polars as pl

from analysis.connections import Connection
from analysis.sequence import MODULUS

SLACK_NS = 1_000_000  # by so much a segment's capture may be earlier than the row of tcp.csv of the timeout that sent it


def timeouts_of(
    rows: pl.DataFrame, at_sender: pl.DataFrame, at_receiver: pl.DataFrame, connection: Connection, begin_ns: int, end_ns: int
) -> dict[str, int | None]:
    """`timeouts` in [begin_ns, end_ns), and of them `spurious_timeouts`. `rows`: the connection's of tcp.csv."""
    if rows.is_empty():
        return {"timeouts": None, "spurious_timeouts": None}
    found = rows.filter((pl.col("event") == "timeout") & pl.col("t_ns").is_between(begin_ns, end_ns, closed="left"))
    data = connection.forward(at_sender).filter(pl.col("payload_bytes") > 0).sort("t_ns")
    if not found.is_empty() and not data["identification"].drop_nulls().len():
        return {"timeouts": len(found), "spurious_timeouts": None}
    acks = connection.backward(at_sender).drop_nulls("acknowledgement").sort("t_ns")
    arrived_ns = _first_ns(connection.forward(at_receiver), "sequence")
    left_ns = _first_ns(connection.backward(at_receiver), "acknowledgement")
    spurious = 0
    for t_ns, una in found.select("t_ns", "snd_una").iter_rows():
        newer = (pl.col("acknowledgement") - una) % MODULUS
        ack = _first(acks.filter((pl.col("t_ns") >= t_ns) & newer.is_between(1, MODULUS // 2)), "acknowledgement")
        again = _first(data.filter((pl.col("t_ns") >= t_ns - SLACK_NS) & (pl.col("sequence") == una)), "sequence")
        if ack in left_ns:
            spurious += again not in arrived_ns or left_ns[ack] < arrived_ns[again]
    return {"timeouts": len(found), "spurious_timeouts": spurious}


def _first(packets: pl.DataFrame, number: str) -> tuple[int, int] | None:
    """What the first of the packets is recognised by."""
    return packets.select("identification", number).row(0) if len(packets) else None


def _first_ns(packets: pl.DataFrame, number: str) -> dict[tuple[int, int] | None, int]:
    """When a packet was first captured."""
    firsts = packets.group_by("identification", number).agg(pl.col("t_ns").min())
    return {(identification, value): t_ns for identification, value, t_ns in firsts.iter_rows()}
