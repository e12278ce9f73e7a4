"""The common frames of a capture, decoded by column: ARP, TCP and UDP over IPv4, also behind a DSR header (RFC 4728, 6), and TCP
and UDP over IPv6.

numpy reads the header fields of all frames at once: about 2 us per frame, dpkt needs 8 or more. Frames with any peculiarity
(options or fragments in the IPv4 header, extension headers of IPv6, other protocols, other encapsulations, headers cut by the
snap length) are left to analysis/captures/frames.py, whose results for the frames decoded here would be the same (a property test
compares).
"""

import socket
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

ETHERNET, IPV4, IPV6, TCP, UDP, DSR_FIXED, ARP = 14, 20, 40, 20, 8, 4, 28  # lengths of headers, bytes
_IPV4, _ARP, _IPV6 = 0x0800, 0x0806, 0x86DD
_TCP, _UDP, _DSR = 6, 17, 48
_PLAIN = 0x45  # version 4, no options
_FRAGMENT = 0x3FFF  # "more fragments", and the offset
_FLOW_STATE = 0x80
FIN, SYN, ACK = 0x01, 0x02, 0x10  # RFC 9293, section 3.1


def plain_frames(data: Bytes, starts: Numbers, lengths: Numbers, stamp_bytes: int) -> tuple[Numbers, pl.DataFrame]:
    """The positions of the plain frames, and their rows without time (analysis/captures/pcap.py, SCHEMA), in file order.

    `data`: the file; `starts`, `lengths`: each frame's first byte in it and its captured bytes.
    """
    position = np.flatnonzero(lengths >= ETHERNET + ARP)
    ethertype = _half(data, starts[position] + 12)
    arp = position[ethertype == _ARP]
    chosen = position[(ethertype == _IPV4) & (lengths[position] >= ETHERNET + IPV4 + UDP)]
    chosen6 = position[(ethertype == _IPV6) & (lengths[position] >= ETHERNET + IPV6 + UDP)]
    packets, packets6 = _of_ipv4(data, starts, lengths, chosen), _of_ipv6(data, starts, lengths, chosen6)
    parts = [(arp, _arp_rows(data, starts[arp]))] if len(arp) else []
    parts += [_rows(data, packets, stamp_bytes, ipv6=False)]
    parts += [_rows(data, packets6, stamp_bytes, ipv6=True)] if len(packets6.ip) else []
    return _in_order(parts)


class _Packets(NamedTuple):
    """Columns of frames with an IP packet. `position`: in the file; `ip`, `inner`, `end`: bytes in the file at which the packet
    begins, its transport header begins, and its captured part ends; `header`: bytes before the transport header."""

    position: Numbers
    ip: Numbers
    ip_bytes: Numbers
    end: Numbers
    protocol: Numbers
    header: Numbers

    @property
    def inner(self) -> Numbers:
        return self.ip + self.header

    def only(self, chosen: NDArray[np.bool_]) -> "_Packets":
        """The packets of these rows."""
        return _Packets(*(column[chosen] for column in self))


def _in_order(parts: list[tuple[Numbers, pl.DataFrame]]) -> tuple[Numbers, pl.DataFrame]:
    if len(parts) == 1:
        return parts[0]
    position = np.concatenate([each for each, _ in parts])
    order = np.argsort(position, kind="stable")
    return position[order], pl.concat([rows for _, rows in parts], how="diagonal")[order]


def _arp_rows(data: Bytes, starts: Numbers) -> pl.DataFrame:
    count = len(starts)
    fixed = {"protocol": pl.repeat("arp", count, eager=True), "ip_bytes": _zeroes(count), "payload_bytes": _zeroes(count)}
    return pl.DataFrame({**_stations(data, starts), **fixed})


def _of_ipv4(data: Bytes, starts: Numbers, lengths: Numbers, position: Numbers) -> _Packets:
    """`position`: frames with at least the headers of IPv4 and UDP."""
    ip = starts[position] + ETHERNET
    usual = (data[ip] == _PLAIN) & (_half(data, ip + 6) & _FRAGMENT == 0)
    position, ip = position[usual], ip[usual]
    ip_bytes = _half(data, ip + 2)
    # what follows the IPv4 packet in the frame is padding
    end = np.minimum(starts[position] + lengths[position], ip + ip_bytes)
    protocol = data[ip + 9].astype(np.int64)
    header = np.full(len(ip), IPV4, np.int64)
    of_dsr = np.flatnonzero((protocol == _DSR) & (end >= ip + IPV4 + DSR_FIXED))
    dsr = ip[of_dsr] + IPV4
    header[of_dsr] += DSR_FIXED + _half(data, dsr + 2)
    protocol[of_dsr] = np.where(data[dsr + 1] & _FLOW_STATE, 0, data[dsr])
    return _Packets(position, ip, ip_bytes, end, protocol, header)


def _of_ipv6(data: Bytes, starts: Numbers, lengths: Numbers, position: Numbers) -> _Packets:
    """`position`: frames with at least the headers of IPv6 and UDP. A payload length of 0 is a jumbogram's (RFC 2675)."""
    ip = starts[position] + ETHERNET
    usual = (data[ip] >> 4 == 6) & (_half(data, ip + 4) > 0)
    position, ip = position[usual], ip[usual]
    ip_bytes = _half(data, ip + 4) + IPV6
    end = np.minimum(starts[position] + lengths[position], ip + ip_bytes)
    return _Packets(position, ip, ip_bytes, end, data[ip + 6].astype(np.int64), np.full(len(ip), IPV6, np.int64))


def _rows(data: Bytes, packets: _Packets, stamp_bytes: int, *, ipv6: bool) -> tuple[Numbers, pl.DataFrame]:
    """The packets whose whole transport header is there."""
    inner, end = packets.inner, packets.end
    is_tcp, is_udp = packets.protocol == _TCP, packets.protocol == _UDP
    packets = packets.only(np.where(is_tcp, end >= inner + TCP, is_udp & (end >= inner + UDP)))
    tcp, offset = packets.protocol == _TCP, np.zeros(len(packets.ip), np.int64)
    offset[tcp] = (data[packets.inner[tcp] + 12] >> 4).astype(np.int64) * 4
    usual = ~tcp | (offset >= TCP)
    packets, tcp, offset = packets.only(usual), tcp[usual], offset[usual]
    ip, inner = packets.ip, packets.inner
    payload = np.where(tcp, packets.ip_bytes - packets.header - offset, _half(data, inner + 4) - UDP)
    segment = inner[tcp]
    flags = data[segment + 13].astype(np.int64)

    def of_tcp(values: Numbers) -> pl.Series:
        column = np.zeros(len(ip), np.int64)
        column[tcp] = values
        return pl.DataFrame({"tcp": tcp, "value": column}).select(pl.when("tcp").then("value"))["value"]

    acknowledgement = of_tcp(_word(data, segment + 8))
    with_ack = np.zeros(len(ip), bool)
    with_ack[tcp] = flags & ACK != 0
    columns = pl.DataFrame({"tcp": tcp, "with_ack": with_ack, "acknowledgement": acknowledgement})
    if ipv6:
        ends = {"source": _named_ipv6(data, ip + 8), "destination": _named_ipv6(data, ip + 24)}
        identification = pl.repeat(None, len(ip), dtype=pl.Int64, eager=True)
    else:
        ends = {"source": _named(_word(data, ip + 12), 4, "."), "destination": _named(_word(data, ip + 16), 4, ".")}
        identification = pl.Series(_half(data, ip + 4))
    return packets.position, pl.DataFrame(
        {
            **_stations(data, ip - ETHERNET),
            "protocol": columns.select(pl.when("tcp").then(pl.lit("tcp")).otherwise(pl.lit("udp")))["literal"],
            **ends,
            "source_port": _half(data, inner),
            "destination_port": _half(data, inner + 2),
            "ip_bytes": packets.ip_bytes,
            "payload_bytes": payload,
            "sequence": of_tcp(_word(data, segment + 4)),
            "acknowledgement": columns.select(pl.when("with_ack").then("acknowledgement"))["acknowledgement"],
            "flags": of_tcp(flags),
            "identification": identification,
            "stamp": _stamps(data, inner + UDP, packets.end, ~tcp, stamp_bytes),
        }
    )


def _stamps(data: Bytes, begin: Numbers, end: Numbers, chosen: NDArray[np.bool_], stamp_bytes: int) -> pl.Series:
    """The first bytes of the chosen datagrams' payloads; null for the others."""
    stamps: list[bytes | None] = [None] * len(begin)
    limits = np.minimum(begin + stamp_bytes, end)
    whole = chosen & (limits - begin == stamp_bytes)
    joined = data[begin[whole][:, None] + np.arange(stamp_bytes)].tobytes()
    for number, place in enumerate(np.flatnonzero(whole).tolist()):
        stamps[place] = joined[number * stamp_bytes : (number + 1) * stamp_bytes]
    for place in np.flatnonzero(chosen & ~whole).tolist():
        stamps[place] = data[begin[place] : limits[place]].tobytes()
    return pl.Series(stamps, dtype=pl.Binary)


def _stations(data: Bytes, starts: Numbers) -> dict[str, pl.Series]:
    def address(at: Numbers) -> pl.Series:
        return _named(_half(data, at) << 32 | _word(data, at + 2), 6, ":")

    return {"eth_src": address(starts + 6), "eth_dst": address(starts)}


def _named(numbers: Numbers, size: int, separator: str) -> pl.Series:
    """Addresses of `size` bytes as text. A capture has few different ones."""
    column = pl.Series(numbers)
    different = column.unique().to_list()
    if not different:
        return pl.Series(dtype=pl.String)

    def text(number: int) -> str:
        packed = number.to_bytes(size, "big")
        return packed.hex(separator) if separator == ":" else separator.join(map(str, packed))

    return column.replace_strict(different, [text(number) for number in different], return_dtype=pl.String)


def _named_ipv6(data: Bytes, at: Numbers) -> pl.Series:
    """Addresses of IPv6 as text."""
    packed = np.ascontiguousarray(data[at[:, None] + np.arange(16)]).view("V16").ravel()
    different, numbers = np.unique(packed, return_inverse=True)
    names = [socket.inet_ntop(socket.AF_INET6, address.tobytes()) for address in different]
    return pl.Series(np.array(names, object)[numbers], dtype=pl.String) if names else pl.Series(dtype=pl.String)


def _half(data: Bytes, at: Numbers) -> Numbers:
    """Two bytes, big-endian."""
    return data[at].astype(np.int64) << 8 | data[at + 1]


def _word(data: Bytes, at: Numbers) -> Numbers:
    """Four bytes, big-endian."""
    return _half(data, at) << 16 | _half(data, at + 2)


def _zeroes(count: int) -> Numbers:
    return np.zeros(count, np.int64)
