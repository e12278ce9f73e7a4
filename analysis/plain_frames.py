"""The common frames of a capture, decoded by column: TCP and UDP over IPv4, also behind a DSR header (RFC 4728, 6), and ARP.

numpy reads the header fields of all frames at once: about 2 us per frame, dpkt needs 8 or more. Frames with any peculiarity
(options or fragments in the IPv4 header, other protocols, other encapsulations, headers cut by the snap length) are left to
analysis/captures.py, whose results for the frames decoded here would be the same (a property test compares).
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

ETHERNET, IPV4, TCP, UDP, DSR_FIXED, ARP = 14, 20, 20, 8, 4, 28  # lengths of headers, bytes
_IPV4, _ARP = 0x0800, 0x0806
_TCP, _UDP, _DSR = 6, 17, 48
_PLAIN = 0x45  # version 4, no options
_FRAGMENT = 0x3FFF  # "more fragments", and the offset
_FLOW_STATE = 0x80
_ACK = 0x10


def plain_frames(data: Bytes, starts: Numbers, lengths: Numbers, stamp_bytes: int) -> tuple[Numbers, pl.DataFrame]:
    """The positions of the plain frames, and their rows without time (analysis/captures.py, SCHEMA), in file order.

    `data`: the file; `starts`, `lengths`: each frame's first byte in it and its captured bytes.
    """
    position = np.flatnonzero(lengths >= ETHERNET + ARP)
    ethertype = _half(data, starts[position] + 12)
    arp = position[ethertype == _ARP]
    chosen = position[(ethertype == _IPV4) & (lengths[position] >= ETHERNET + IPV4 + UDP)]
    return _in_order(arp, _arp_rows(data, starts[arp]), *_ip_rows(data, starts, lengths, chosen, stamp_bytes))


def _in_order(arp: Numbers, arp_rows: pl.DataFrame, ip: Numbers, ip_rows: pl.DataFrame) -> tuple[Numbers, pl.DataFrame]:
    if not len(arp):
        return ip, ip_rows
    both = np.concatenate([arp, ip])
    order = np.argsort(both, kind="stable")
    return both[order], pl.concat([arp_rows, ip_rows], how="diagonal")[order]


def _arp_rows(data: Bytes, starts: Numbers) -> pl.DataFrame:
    count = len(starts)
    fixed = {"protocol": pl.repeat("arp", count, eager=True), "ip_bytes": _zeroes(count), "payload_bytes": _zeroes(count)}
    return pl.DataFrame({**_stations(data, starts), **fixed})


def _ip_rows(data: Bytes, starts: Numbers, lengths: Numbers, position: Numbers, stamp_bytes: int) -> tuple[Numbers, pl.DataFrame]:
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
    inner = ip + header
    whole = np.where(protocol == _TCP, end >= inner + TCP, (protocol == _UDP) & (end >= inner + UDP))
    position, ip, ip_bytes, end, protocol, header, inner = (
        column[whole] for column in (position, ip, ip_bytes, end, protocol, header, inner)
    )
    tcp = protocol == _TCP
    offset = np.zeros(len(ip), np.int64)
    offset[tcp] = (data[inner[tcp] + 12] >> 4).astype(np.int64) * 4
    usual = ~tcp | (offset >= TCP)
    position, ip, ip_bytes, end, tcp, header, inner, offset = (
        column[usual] for column in (position, ip, ip_bytes, end, tcp, header, inner, offset)
    )
    payload = np.where(tcp, ip_bytes - header - offset, _half(data, inner + 4) - UDP)
    segment = inner[tcp]
    flags = data[segment + 13].astype(np.int64)

    def of_tcp(values: Numbers) -> pl.Series:
        column = np.zeros(len(ip), np.int64)
        column[tcp] = values
        return pl.DataFrame({"tcp": tcp, "value": column}).select(pl.when("tcp").then("value"))["value"]

    acknowledgement = of_tcp(_word(data, segment + 8))
    with_ack = np.zeros(len(ip), bool)
    with_ack[tcp] = flags & _ACK != 0
    columns = pl.DataFrame({"tcp": tcp, "with_ack": with_ack, "acknowledgement": acknowledgement})
    return position, pl.DataFrame(
        {
            **_stations(data, ip - ETHERNET),
            "protocol": columns.select(pl.when("tcp").then(pl.lit("tcp")).otherwise(pl.lit("udp")))["literal"],
            "source": _named(_word(data, ip + 12), 4, "."),
            "destination": _named(_word(data, ip + 16), 4, "."),
            "source_port": _half(data, inner),
            "destination_port": _half(data, inner + 2),
            "ip_bytes": ip_bytes,
            "payload_bytes": payload,
            "sequence": of_tcp(_word(data, segment + 4)),
            "acknowledgement": columns.select(pl.when("with_ack").then("acknowledgement"))["acknowledgement"],
            "flags": of_tcp(flags),
            "identification": of_tcp(_half(data, ip[tcp] + 4)),
            "stamp": _stamps(data, inner + UDP, end, ~tcp, stamp_bytes),
        }
    )


def _stamps(data: Bytes, begin: Numbers, end: Numbers, chosen: NDArray[np.bool_], stamp_bytes: int) -> pl.Series:
    """The first bytes of the chosen datagrams' payloads; null for the others."""
    stamps: list[bytes | None] = [None] * len(begin)
    limits = np.minimum(begin + stamp_bytes, end)
    for place in np.flatnonzero(chosen).tolist():
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


def _half(data: Bytes, at: Numbers) -> Numbers:
    """Two bytes, big-endian."""
    return data[at].astype(np.int64) << 8 | data[at + 1]


def _word(data: Bytes, at: Numbers) -> Numbers:
    """Four bytes, big-endian."""
    return _half(data, at) << 16 | _half(data, at + 2)


def _zeroes(count: int) -> Numbers:
    return np.zeros(count, np.int64)
