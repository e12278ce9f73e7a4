"""Timeouts of a TCP connection, and how many of them were spurious.

A timeout is spurious if waiting longer for an acknowledgement would have avoided it (RFC 3522, section 1). Eifel and F-RTO (RFC
5682) infer that at the sender; the captures of both ends show it: the first ACK of new data that arrives after the timeout had
left the receiver before any copy that the timeout or a later one sent arrived there, so an earlier copy caused it. If all such
ACKs were lost, the timeout was needed.

Packets are recognised by their IP identification, which a socket of Linux counts up with each packet, retransmissions included.
It also gives their order where a routing daemon or ARP holds the first copy beyond the timeout. IPv6 has none.
"""

import numpy as np
import polars as pl

from analysis.captures.connections import Connection
from analysis.captures.sequence import MODULUS, unwrap

SLACK_NS = 1_000_000  # by so much a segment's capture may be earlier than the row of tcp.csv of the timeout that sent it
IDENTIFICATIONS = 1 << 16


def timeouts_of(
    rows: pl.DataFrame, at_sender: pl.DataFrame, at_receiver: pl.DataFrame, connection: Connection, begin_ns: int, end_ns: int
) -> dict[str, int | None]:
    """`timeouts` in [begin_ns, end_ns), and of them `spurious_timeouts`. `rows`: the connection's of tcp.csv."""
    if rows.is_empty():
        return {"timeouts": None, "spurious_timeouts": None}
    timeouts = rows.filter(pl.col("event") == "timeout")
    inside = timeouts["t_ns"].is_between(begin_ns, end_ns, closed="left").to_list()
    sent = connection.forward(at_sender).sort("t_ns")
    numbered = not timeouts["snd_una"].null_count()  # not so for connections older than `manet-tcp sample`
    if any(inside) and not (numbered and sent["identification"].drop_nulls().len()):
        return {"timeouts": sum(inside), "spurious_timeouts": None}
    acks = connection.backward(at_sender).drop_nulls("acknowledgement").sort("t_ns")
    arrived_ns = _first_ns(connection.forward(at_receiver), "sequence")
    left_ns = _first_ns(connection.backward(at_receiver), "acknowledgement")
    spurious = []
    for t_ns, una, again in _sent_again(timeouts.drop_nulls("snd_una"), sent):
        newer = (pl.col("acknowledgement") - una) % MODULUS
        new = acks.filter((pl.col("t_ns") >= t_ns) & newer.is_between(1, MODULUS // 2))
        ack = new.select("identification", "acknowledgement").row(0) if len(new) else None
        later_ns = [arrived_ns[copy] for copy in again if copy in arrived_ns]
        spurious.append(ack in left_ns and all(left_ns[ack] < arrival_ns for arrival_ns in later_ns))
    return {"timeouts": sum(inside), "spurious_timeouts": sum(map(bool.__and__, inside, spurious))}


def _sent_again(timeouts: pl.DataFrame, sent: pl.DataFrame) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Of each timeout its time, the first unacknowledged byte, and the marks of the segments from that byte that were made after
    all that was made before the timeout: the one that it sent, and those of later timeouts."""
    order, sequences = _unwrapped(sent["identification"]), sent["sequence"].to_numpy()
    new = _new_data(sent, order)
    fresh, starts = order[new], sequences[new]
    times_ns, data = sent["t_ns"].to_numpy(), sent["payload_bytes"].to_numpy() > 0
    repeats, last = [], -(1 << 62)
    for t_ns, una, nxt in timeouts.select("t_ns", "snd_una", "snd_nxt").iter_rows():
        outstanding = fresh[(starts - una) % MODULUS < (nxt - una) % MODULUS]
        last = max(last, *order[times_ns < t_ns - SLACK_NS].tolist(), *outstanding.tolist())
        again = order[data & (sequences == una) & (order > last)]
        last = max(last, again.min()) if again.size else last
        repeats.append((t_ns, una, [(number, una) for number in (again % IDENTIFICATIONS).tolist()]))
    return repeats


def _unwrapped(identifications: pl.Series) -> np.ndarray:
    """In the order in which the socket made the packets; they were captured nearly in that order."""
    half = IDENTIFICATIONS // 2
    numbers = identifications.fill_null(0).to_numpy().astype(np.int64)
    steps = np.diff(numbers, prepend=numbers[:1])
    return numbers[:1].sum() + np.cumsum((steps + half) % IDENTIFICATIONS - half)


def _new_data(sent: pl.DataFrame, order: np.ndarray) -> np.ndarray:
    """The places of the packets that have bytes after all made before."""
    places = np.argsort(order, kind="stable")
    ends = unwrap((sent["sequence"] + sent["payload_bytes"]).to_numpy()[places] % MODULUS, 0)
    before = np.concatenate([[-(1 << 62)], np.maximum.accumulate(ends)[:-1]]) if ends.size else ends
    return places[(ends > before) & (sent["payload_bytes"].to_numpy()[places] > 0)]


def _first_ns(packets: pl.DataFrame, number: str) -> dict[tuple[int, int] | None, int]:
    """When a packet was first captured."""
    firsts = packets.group_by("identification", number).agg(pl.col("t_ns").min())
    return {(identification, value): t_ns for identification, value, t_ns in firsts.iter_rows()}
