"""Headers that routing protocols put between a packet and its transport header, and the packet inside.

- DSR (RFC 4728, section 6): IP protocol 48, a fixed header of 4 bytes, options of the length it states. With the flow
  state bit set the header is those 4 bytes alone (section 7).
- Minimal encapsulation (RFC 2004), of AODV's half tunnel to a gateway: IP protocol 55, 8 bytes with the original
  destination, 12 with the original source too.
- batman-adv (Linux, batman_packet.h): Ethertype 0x4305, a unicast header of 10 bytes, then the station's Ethernet frame.

Not decoded: fragments of any kind, IP in IP.
"""

from typing import NamedTuple

DSR, MINIMAL = 48, 55
BATMAN_ADV = 0x4305
_FLOW_STATE = 0x80
_SOURCE_PRESENT = 0x80
_BATMAN_UNICAST, _BATMAN_UNICAST_BYTES = 0x40, 10


class Inside(NamedTuple):
    """The encapsulated packet: transport protocol, its captured bytes, length of the encapsulating header, and the original end
    addresses."""

    protocol: int
    body: bytes
    header_bytes: int
    source: bytes
    destination: bytes


def inside_ip(protocol: int, body: bytes, source: bytes, destination: bytes) -> Inside | None:
    """The packet inside an IPv4 packet of this protocol; None if it is not encapsulated, or if the capture ends before it."""
    if protocol == DSR and len(body) >= 4:
        options = 0 if body[1] & _FLOW_STATE else int.from_bytes(body[2:4], "big")
        return Inside(body[0], body[4 + options :], 4 + options, source, destination)
    if protocol == MINIMAL and len(body) >= 8:
        header_bytes = 12 if body[1] & _SOURCE_PRESENT else 8
        original = body[8:12] if header_bytes == 12 else source
        if len(original) == 4:
            return Inside(body[0], body[header_bytes:], header_bytes, original, body[4:8])
    return None


def inside_batman(payload: bytes) -> bytes:
    """The station's own Ethernet frame in a batman-adv unicast packet; empty for other batman-adv packets."""
    if payload[:1] != bytes([_BATMAN_UNICAST]):
        return b""
    return payload[_BATMAN_UNICAST_BYTES:]
