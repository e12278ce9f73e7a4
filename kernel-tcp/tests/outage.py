"""The relay's commands: frames on a broken path, and the ICMP of the node at the break.

`dark` drops everything. `broken` does too, and answers every data segment with ICMP host unreachable (RFC 792), except for
the ports named after it (`broken 5206 -5201`): it keeps their data segments and answers the first with ICMP type 253, code 0
(formats/routing.md); for ports with a minus it sends no ICMP. `behind` is `broken` for data that comes from now on: earlier
data arrives, and so do the acknowledgements. `once` carries one more data segment, and everything in the other direction.
`light` carries again; it announces the kept segments (253, code 1, with their list) and forwards them.
"""

from __future__ import annotations

import struct

RELAY = bytes([10, 9, 0, 254])
UNREACHABLE, HELD, RESTORED, ROUTE_ERROR = (3, 1), (253, 0), (253, 1), (253, 2)


def checksum(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def icmp_error(
    about: bytes, kind: tuple[int, int], quoted: int = 28, source: bytes = RELAY, ranges: list[tuple[int, int]] | None = None
) -> bytes:
    """An IP packet to the source of the IP packet `about`, quoting `quoted` bytes of it; `ranges`: the forwarded data."""
    listed = b"" if ranges is None else extension(ranges)
    quote = about[:quoted] if ranges is None else about[:128].ljust(128, b"\0")
    message = struct.pack(">BBHBBH", *kind, 0, 0, len(quote) // 4 if listed else 0, 0) + quote + listed
    message = message[:2] + struct.pack(">H", checksum(message)) + message[4:]
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(message), 0, 0, 64, 1, 0, source, about[12:16])
    return header[:10] + struct.pack(">H", checksum(header)) + header[12:] + message


def extension(ranges: list[tuple[int, int]], object_class: int = 247) -> bytes:
    """RFC 4884, 7 and 8: a structure with one object, which holds pairs of sequence numbers."""
    pairs = b"".join(struct.pack(">II", first & 0xFFFFFFFF, end & 0xFFFFFFFF) for first, end in ranges)
    body = struct.pack(">HBB", 4 + len(pairs), object_class, 0) + pairs
    return b"\x20\0" + struct.pack(">H", checksum(b"\x20\0\0\0" + body)) + body


def numbers(packet: bytes) -> tuple[int, int]:
    """The sequence numbers of an IP packet's TCP data: the first, and the one after the last."""
    ip_bytes, total_bytes = (packet[0] & 15) * 4, struct.unpack(">H", packet[2:4])[0]
    first = struct.unpack(">I", packet[ip_bytes + 4 : ip_bytes + 8])[0]
    return first, (first + total_bytes - ip_bytes - (packet[ip_bytes + 12] >> 4) * 4) & 0xFFFFFFFF


def joined(frames: list[bytes]) -> list[tuple[int, int]]:
    """The data of frames of one connection as ranges, in order (without a wrap) and disjoint."""
    ranges: list[tuple[int, int]] = []
    for first, end in sorted(numbers(frame[14:]) for frame in frames):
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(end, ranges[-1][1]))
        else:
            ranges.append((first, end))
    return ranges


def is_data(frame: bytes) -> bool:
    """TCP over IPv4 with a payload."""
    if frame[12:14] != b"\x08\x00" or frame[23] != 6:
        return False
    ip_bytes = (frame[14] & 15) * 4
    return struct.unpack(">H", frame[16:18])[0] > ip_bytes + (frame[14 + ip_bytes + 12] >> 4) * 4


def port_of(frame: bytes) -> int:
    ip_bytes = (frame[14] & 15) * 4
    return struct.unpack(">H", frame[14 + ip_bytes + 2 : 14 + ip_bytes + 4])[0]


class Break:
    """Between the two directions of a relay."""

    def __init__(self, send_left):
        self.mode = "light"
        self.send_left = send_left
        self.kept: dict[int, list[bytes]] = {}  # by port, for the ports whose segments are kept
        self.silent: set[int] = set()

    def send_error(self, frame: bytes, kind: tuple[int, int], ranges: list[tuple[int, int]] | None = None) -> None:
        self.send_left(frame[6:12] + frame[:6] + b"\x08\x00" + icmp_error(frame[14:], kind, ranges=ranges))

    def command(self, line: str) -> list[bytes]:
        """Obeys a command; returns the frames to forward now."""
        self.mode, *ports = line.split()
        released = [frames for frames in self.kept.values() if frames]
        self.kept = {int(port): [] for port in ports if port[0] != "-"}
        self.silent = {int(port[1:]) for port in ports if port[0] == "-"}
        for frames in released:
            self.send_error(frames[0], RESTORED, joined(frames))
        return [frame for frames in released for frame in frames]

    def carries(self, frame: bytes, from_left: bool) -> bool:
        lost = self.mode in ("broken", "behind") and from_left and is_data(frame)
        if lost:
            kept = self.kept.get(port_of(frame))
            if kept is None and port_of(frame) not in self.silent:
                self.send_error(frame, UNREACHABLE)
            elif kept is not None:
                kept.append(frame)
                if len(kept) == 1:
                    self.send_error(frame, HELD)
        if self.mode == "once" and is_data(frame) and from_left:
            self.mode = "back"
            return True
        return (not lost and self.mode in ("light", "once", "behind")) or (self.mode == "back" and not from_left)
