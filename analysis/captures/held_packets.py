"""The capture of the packets that a station's routing daemon held (captures/<station>.held.pcapng; formats/routing.md, "Held
packets").

Packets that wait for a route are in the daemon's memory, and in no capture of an interface. Each packet is there twice: when it
came, and, with a comment, when it left. The format is pcapng as routing/host/src/capture.rs writes it: little-endian,
nanoseconds, bare IPv4. Other blocks and options are skipped, as is a last block that a killed daemon left unfinished.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from analysis.captures import pcapng
from record.errors import CaptureError
from record.files import read_bytes

HELD, SENT_ON, GIVEN_UP = "held", "sent on", "given up"


class HeldPacket(NamedTuple):
    """A packet that came to the daemon's buffer or left it."""

    t_ns: int  # CLOCK_REALTIME
    passage: str  # HELD, SENT_ON or GIVEN_UP
    packet: bytes  # from its IPv4 header on, cut behind the TCP header


def read_held(path: Path) -> Iterator[HeldPacket]:
    """Packets in the order of their events; empty without such a file (third-party daemons and none)."""
    for kind, body in _blocks(path):
        if kind == pcapng.ENHANCED_PACKET:
            _, high, low, kept, _ = struct.unpack_from("<5I", body)
            comment = pcapng.comment(body[20 + pcapng.padded(kept) :])
            passage = next((known for known in (HELD, SENT_ON, GIVEN_UP) if comment.startswith(known)), None)
            if passage is None:
                raise CaptureError(f'{path}: comment "{comment}"; a packet is held, sent on or given up')
            yield HeldPacket(high << 32 | low, passage, body[20 : 20 + kept])


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    data = read_bytes(path) if path.exists() else b""
    offset = 0
    while offset + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, offset)
        swapped = kind == pcapng.SECTION and struct.unpack_from("<I", data, offset + 8)[0] != pcapng.BYTE_ORDER
        if swapped or length < 12 or length % 4:
            raise CaptureError(f"{path}: no little-endian pcapng block at byte {offset}; our daemons write those")
        if offset + length > len(data):
            return
        yield kind, data[offset + 8 : offset + length - 4]
        offset += length
