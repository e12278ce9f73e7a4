"""ICMP errors in a capture, and the TCP segment that each quotes (RFC 792, of IPv6 RFC 4443).

An error quotes the packet as it was dropped: a DSR header or the header of a half tunnel in it is decoded
(analysis/captures/encapsulation.py). Type 253 is this project's own (RFC 4727, experimental): a routing daemon holds a packet
whose route broke, has a route again, or sends a Route Error about the packet's link (formats/routing.md).
"""

import socket
from typing import NamedTuple

import polars as pl

from analysis.captures.connections import Connection
from analysis.captures.encapsulation import inside_ip

UNREACHABLE, TIME_EXCEEDED, HOLDING = 3, 11, 253
UNREACHABLE6, TOO_BIG6, TIME_EXCEEDED6 = 1, 2, 3  # RFC 4443, 3
_NAMES = {
    (UNREACHABLE, 0): "network unreachable",
    (UNREACHABLE, 1): "host unreachable",
    (UNREACHABLE, 4): "fragmentation needed",
    (TIME_EXCEEDED, 0): "TTL exceeded",
    (HOLDING, 0): "held",
    (HOLDING, 1): "restored",
    (HOLDING, 2): "route error",
}
_NAMES6 = {
    (UNREACHABLE6, 0): "no route to destination",
    (UNREACHABLE6, 3): "address unreachable",
    (TOO_BIG6, 0): "packet too big",
    (TIME_EXCEEDED6, 0): "hop limit exceeded",
}
NO_ROUTE = frozenset({"network unreachable", "host unreachable", "no route to destination", "address unreachable"})
_TCP = 6
_IPV6_BYTES = 40


class IcmpError(NamedTuple):
    """An error about one TCP segment, at the instant it was captured."""

    t_ns: int
    sender: str  # address of its sender
    receiver: str
    kind: int
    code: int
    identification: int | None  # of the segment's IPv4 header; None of IPv6
    sequence: int

    @property
    def name(self) -> str:
        """The name of type and code, or `ICMP type/code` for an unknown pair."""
        if ":" in self.sender:
            return _NAMES6.get((self.kind, self.code), f"ICMPv6 {self.kind}/{self.code}")
        return _NAMES.get((self.kind, self.code), f"ICMP {self.kind}/{self.code}")


def errors_about(packets: pl.DataFrame, connection: Connection) -> list[IcmpError]:
    """The errors about segments of `connection`, in the capture's order."""
    version6 = ":" in connection.source
    kinds = [UNREACHABLE6, TOO_BIG6, TIME_EXCEEDED6] if version6 else [UNREACHABLE, TIME_EXCEEDED, HOLDING]
    of_version = pl.col("source").str.contains(":", literal=True) == version6
    rows = packets.filter((pl.col("protocol") == "icmp") & of_version & pl.col("icmp_type").is_in(kinds))
    columns = ("t_ns", "source", "destination", "icmp_type", "icmp_code", "quoted")
    ends = (connection.source, connection.source_port, connection.destination, connection.destination_port)
    found = []
    for *fields, quoted in rows.select(columns).iter_rows():
        about = quoted_segment(quoted)
        if about is not None and about[:4] == ends:
            found.append(IcmpError._make([*fields, *about[4:]]))
    return found


def quoted_segment(quoted: bytes) -> tuple[str, int, str, int, int | None, int] | None:
    """Source and port, destination and port, IP identification (None of IPv6) and sequence number of a quoted TCP segment, or
    None."""
    if quoted[:1] and quoted[0] >> 4 == 6:
        whole = len(quoted) >= _IPV6_BYTES and quoted[6] == _TCP
        return _segment(quoted[8:24], quoted[24:40], None, quoted[_IPV6_BYTES:]) if whole else None
    header_bytes = (quoted[0] & 0x0F) * 4 if quoted[:1] else 0
    if header_bytes < 20 or quoted[0] >> 4 != 4 or len(quoted) < header_bytes:
        return None
    protocol, body, source, destination = quoted[9], quoted[header_bytes:], quoted[12:16], quoted[16:20]
    inside = inside_ip(protocol, body, source, destination)
    if inside is not None:
        protocol, body, source, destination = inside.protocol, inside.body, inside.source, inside.destination
    return _segment(source, destination, int.from_bytes(quoted[4:6], "big"), body) if protocol == _TCP else None


def _segment(
    source: bytes, destination: bytes, identification: int | None, body: bytes
) -> tuple[str, int, str, int, int | None, int] | None:
    """`body`: what is quoted of the TCP header."""
    if len(body) < 8:
        return None
    number = int.from_bytes
    return (
        _address(source), number(body[0:2], "big"),
        _address(destination), number(body[2:4], "big"),
        identification, number(body[4:8], "big"),
    )  # fmt: skip


def _address(packed: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
