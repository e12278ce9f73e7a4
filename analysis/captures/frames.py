"""A captured frame as a row of the table of packets (analysis/captures/pcap.py), decoded by dpkt.

It is for the few frames that are not decoded by column. dpkt imports all of its protocols at once, which takes longer than to
read a capture that has none of these frames.
"""

import dpkt

from analysis.captures.encapsulation import BATMAN_ADV, Inside, inside_batman, inside_ip
from analysis.captures.plain_frames import ACK

_ETHERNET_BYTES = 14
_ICMP_BYTES = 8
_TRANSPORT = {1: dpkt.icmp.ICMP, 6: dpkt.tcp.TCP, 17: dpkt.udp.UDP}


def dissect(t_ns: int, frame: bytes, stamp_bytes: int) -> tuple[object, ...]:
    """One row of SCHEMA. A frame that cannot be decoded is kept as `other`, so that frames can still be counted."""
    try:
        ethernet = dpkt.ethernet.Ethernet(frame)
    except dpkt.UnpackError:
        return _row(t_ns, b"", b"", "other")
    packet, wrapped = ethernet.data, 0
    if ethernet.type == BATMAN_ADV and isinstance(packet, bytes):
        packet, wrapped = _inside_batman(packet)
    if isinstance(packet, dpkt.arp.ARP):
        return _row(t_ns, ethernet.src, ethernet.dst, "arp")
    if not isinstance(packet, (dpkt.ip.IP, dpkt.ip6.IP6)):
        return _row(t_ns, ethernet.src, ethernet.dst, "other")
    return _dissect_ip(t_ns, ethernet, packet, wrapped, frame, stamp_bytes)


def _inside_batman(payload: bytes) -> tuple[object, int]:
    """The packet in the inner Ethernet frame, and the bytes before it."""
    frame = inside_batman(payload)
    try:
        return dpkt.ethernet.Ethernet(frame).data, len(payload) - len(frame) + _ETHERNET_BYTES
    except dpkt.UnpackError:
        return None, 0


def _dissect_ip(
    t_ns: int, ethernet: dpkt.ethernet.Ethernet, packet: dpkt.ip.IP | dpkt.ip6.IP6, wrapped: int, frame: bytes, stamp_bytes: int
) -> tuple[object, ...]:
    """`wrapped`: bytes between the Ethernet header and the packet; `frame`: all of it, as it was captured."""
    source, destination, inner = packet.src, packet.dst, packet.data
    if isinstance(packet, dpkt.ip.IP):
        ip_bytes, header_bytes = wrapped + packet.len, wrapped + packet.hl * 4
        inside = inside_ip(packet.p, inner, source, destination) if isinstance(inner, bytes) else None
        if inside is not None:
            source, destination = inside.source, inside.destination
            inner, header_bytes = _transport(inside), header_bytes + inside.header_bytes
    else:
        ip_bytes = wrapped + packet.plen + 40
        header_bytes = wrapped + 40 + sum(len(header) for header in packet.all_extension_headers)
    addresses = (dpkt.utils.inet_to_str(source), dpkt.utils.inet_to_str(destination))
    identification = packet.id if isinstance(packet, dpkt.ip.IP) else None
    if isinstance(inner, dpkt.tcp.TCP):
        payload = ip_bytes - header_bytes - inner.off * 4
        ack = inner.ack if inner.flags & ACK else None
        return _row(t_ns, ethernet.src, ethernet.dst, "tcp", *addresses, inner.sport, inner.dport, ip_bytes, payload, inner.seq,
                    ack, inner.flags, identification)  # fmt: skip
    if isinstance(inner, dpkt.udp.UDP):
        stamp = inner.data[:stamp_bytes]
        return _row(t_ns, ethernet.src, ethernet.dst, "udp", *addresses, inner.sport, inner.dport, ip_bytes, inner.ulen - 8,
                    identification=identification, stamp=stamp)  # fmt: skip
    if isinstance(inner, (dpkt.icmp.ICMP, dpkt.icmp6.ICMP6)):
        message = (inner.type, inner.code, frame[_ETHERNET_BYTES + header_bytes + _ICMP_BYTES :])
        return _row(t_ns, ethernet.src, ethernet.dst, "icmp", *addresses, None, None, ip_bytes, icmp=message)
    return _row(t_ns, ethernet.src, ethernet.dst, "other", *addresses, None, None, ip_bytes)


def _transport(inside: Inside) -> object:
    kind = _TRANSPORT.get(inside.protocol)
    try:
        return kind(inside.body) if kind is not None else None
    except dpkt.UnpackError:  # cut off by the snap length
        return None


def _row(
    t_ns: int, eth_src: bytes, eth_dst: bytes, protocol: str, source: str | None = None, destination: str | None = None,
    source_port: int | None = None, destination_port: int | None = None, ip_bytes: int = 0, payload_bytes: int = 0,
    sequence: int | None = None, acknowledgement: int | None = None, flags: int | None = None, identification: int | None = None,
    stamp: bytes | None = None, icmp: tuple[int | None, int | None, bytes | None] = (None, None, None),
) -> tuple[object, ...]:  # fmt: skip
    return (t_ns, eth_src.hex(":") if eth_src else None, eth_dst.hex(":") if eth_dst else None, protocol, source,
            destination, source_port, destination_port, ip_bytes, payload_bytes, sequence, acknowledgement, flags, identification,
            bytes(stamp) if stamp is not None else None, *icmp)  # fmt: skip
