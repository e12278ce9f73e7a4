"""Forged ICMP to a station, sent from within its network namespace: forge.py KIND COUNT PORT.

It reads the station's own frames, to quote real segments to PORT of the connection. Kinds: `ports` (another
connection), `sequence` (outside the window), `cut` (quotes of every length too short), `checksum`, `noise` (random
bytes), `listening` (a port that listens), `type` (other types and codes), `all` (these by turns), `true` (an unreachable to
be believed), `route-error` (a Route Error's notice to be believed). `lists`: the `restored` of lists(), about the first
segment since `ready`; COUNT is ignored.
Prints `ready`, starts at the next line on standard input, and prints `sent` at the end.
"""

from __future__ import annotations

import random
import socket
import struct
import sys
from collections.abc import Iterator

from outage import HELD, RESTORED, ROUTE_ERROR, UNREACHABLE, checksum, extension, icmp_error, is_data, numbers, port_of

KINDS = (UNREACHABLE, HELD, RESTORED, ROUTE_ERROR)
HOSTILE = ("ports", "sequence", "cut", "checksum", "noise", "listening", "type")


def segment_to(sniffer: socket.socket, port: int) -> bytes:
    """The IP packet of a data segment that has just been sent."""
    while True:
        frame, address = sniffer.recvfrom(65536)
        if address[2] == socket.PACKET_OUTGOING and is_data(frame) and port_of(frame) == port:
            return frame[14:]


def with_tcp(packet: bytes, sport: int, dport: int, seq: int) -> bytes:
    return packet[:20] + struct.pack(">HHI", sport, dport, seq & 0xFFFFFFFF) + packet[28:]


def forged(kind: str, about: bytes, number: int) -> bytes:
    if kind == "all":
        kind, number = HOSTILE[number % len(HOSTILE)], number // len(HOSTILE)
    sport, dport, seq = struct.unpack(">HHI", about[20:28])
    icmp = KINDS[number % len(KINDS)]
    if kind == "ports":
        return icmp_error(with_tcp(about, sport ^ (1 + number % 1000), dport, seq), icmp)
    if kind == "listening":
        return icmp_error(with_tcp(about, dport, sport, seq), icmp)
    if kind == "sequence":
        return icmp_error(with_tcp(about, sport, dport, seq + 0x20000000 + number * 1460), icmp)
    if kind == "cut":
        return icmp_error(about, icmp, quoted=number % 28)
    if kind == "type":
        return icmp_error(about, (3, 2 + number % 14))
    if kind == "checksum":
        whole = icmp_error(about, icmp)
        return whole[:22] + bytes([whole[22] ^ 0x55]) + whole[23:]
    if kind == "noise":
        noise = struct.pack(">BBHI", *icmp, 0, 0) + random.randbytes(number % 60)
        noise = noise[:2] + struct.pack(">H", checksum(noise)) + noise[4:]
        return icmp_error(about, icmp)[:20] + noise
    return icmp_error(about, ROUTE_ERROR if kind == "route-error" else UNREACHABLE)


def with_extension(about: bytes, structure: bytes, quoted_words: int = 32) -> bytes:
    """`restored` with any structure behind the quote, and any stated length of the quote."""
    message = struct.pack(">BBHBBH", *RESTORED, 0, 0, quoted_words, 0) + about[:128].ljust(128, b"\0") + structure
    message = message[:2] + struct.pack(">H", checksum(message)) + message[4:]
    return icmp_error(about, RESTORED)[:20] + message


def lists(about: bytes) -> dict[str, list[bytes]]:
    """Invalid lists, by the counter that counts them."""
    first, end = numbers(about)
    true = extension([(first, end)])
    return {
        "wrong-sequence": [
            with_extension(about, extension([(end, end + 1460)])),  # without the quoted segment
            with_extension(about, extension([(first, end + 0x10000000)])),  # never sent
            with_extension(about, extension([(first, end), (end + 0x10000000, end + 0x10000001)])),
        ],
        "malformed": [
            with_extension(about, extension([(first, first)])),
            with_extension(about, extension([(end, first)])),
            with_extension(about, extension([(first, end), (end, end + 1)])),  # not disjoint
            with_extension(about, extension([(end + 9, end + 10), (first, end)])),  # not in order
            with_extension(about, extension([(first + 2 * i, first + 2 * i + 1) for i in range(33)])),  # too many
            with_extension(about, true + true[4:]),  # the checksum covers one only
            with_extension(about, true[:-1]),
            with_extension(about, true[:3]),
            with_extension(about, b""),
            with_extension(about, true, quoted_words=255),
            with_extension(about, true, quoted_words=4),
        ],
    }


def notices(kind: str, count: int, port: int) -> Iterator[bytes]:
    """The notices to send, from the line on standard input on."""
    if kind == "lists":
        sniffer = open_sniffer()
        print("ready", flush=True)
        about = segment_to(sniffer, port)
        sys.stdin.readline()
        for packets in lists(about).values():
            yield from packets
        return
    # Python may take longer to start than the connection lasts
    print("ready", flush=True)
    sys.stdin.readline()
    sniffer = open_sniffer()
    about = segment_to(sniffer, port)
    for number in range(count):
        if kind == "true":
            about = segment_to(sniffer, port)
        yield forged(kind, about, number)


def open_sniffer() -> socket.socket:
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    sniffer.bind(("eth0", 0))
    return sniffer


def main() -> None:
    kind, count, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    random.seed(1)
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    for packet in notices(kind, count, port):
        # the kernel writes the total length
        raw.sendto(packet, ("10.9.0.1", 0))
    print("sent", flush=True)


if __name__ == "__main__":
    main()
