"""Relays frames between two test stations, `left` and `right`, with rate, delay and loss.

    relay.py --rate-bps 2000000 --delay-ms 10 --drop 40,41
    relay.py --delay-ms 100 --lose 5201/14:1,5201/14:2

`--drop` loses the n-th data segments (TCP payload over 1000 bytes, counted from 1, retransmissions included) of the
direction left to right. `--lose PORT/SEGMENT:TRANSMISSION` loses the TRANSMISSION-th (from 1) sending of a segment of
the connection to that port; segments of 1460 bytes are numbered from 0 at the SYN, so that the loss is the same
however late host and relay are. Reads commands from standard input, a line each (outage.py): `dark` drops everything from now
on, `light` ends that. Prints `ready` when it carries frames.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import re
import selectors
import socket
import struct
import sys
import time
from collections import Counter

from outage import Break

ETH_P_ALL = 3
PACKET_OUTGOING = 4
MSS = 1460


class Script:
    """The transmissions to drop: a set of (destination port, segment, transmission)."""

    def __init__(self, losses: set[tuple[int, int, int]]):
        self.losses = losses
        self.first_seq: dict[int, int] = {}
        self.sent: Counter[tuple[int, int]] = Counter()

    def loses(self, frame: bytes) -> bool:
        if frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_TCP:
            return False
        ip_bytes = (frame[14] & 15) * 4
        total_bytes = struct.unpack(">H", frame[16:18])[0]
        _, port, seq, _, offset, flags = struct.unpack(">HHIIBB", frame[14 + ip_bytes : 28 + ip_bytes])
        if flags & 2:  # SYN
            self.first_seq[port] = seq + 1
        if port not in self.first_seq or total_bytes == ip_bytes + (offset >> 4) * 4:
            return False
        segment = ((seq - self.first_seq[port]) & 0xFFFFFFFF) // MSS
        self.sent[port, segment] += 1
        return (port, segment, self.sent[port, segment]) in self.losses


class Direction:
    """One direction: frames leave in turn at the rate, and arrive `delay_s` after their end."""

    def __init__(self, source: socket.socket, target: socket.socket, rate_bps: float, delay_s: float, drop: set[int]):
        self.source, self.target = source, target
        self.rate_bps, self.delay_s, self.drop = rate_bps, delay_s, drop
        self.script: Script | None = None
        self.free_at = 0.0
        self.data_frames = 0

    def departure(self, frame: bytes, now: float) -> float | None:
        """When the frame arrives at the other side; None if it is lost."""
        if len(frame) > 1000:
            self.data_frames += 1
            if self.data_frames in self.drop:
                return None
        if self.script and self.script.loses(frame):
            return None
        self.free_at = max(self.free_at, now) + len(frame) * 8 / self.rate_bps
        return self.free_at + self.delay_s


def open_side(name: str) -> socket.socket:
    side = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    side.bind((name, 0))
    side.setblocking(False)
    return side


def receive(direction: Direction):
    while True:
        try:
            frame, address = direction.source.recvfrom(65536)
        except BlockingIOError:
            return
        if address[2] != PACKET_OUTGOING:
            yield frame


def relay(forward: Direction, back: Direction) -> None:
    waiting: list[tuple[float, int, Direction, bytes]] = []
    numbers = itertools.count()
    path = Break(forward.source.send)
    selector = selectors.DefaultSelector()
    selector.register(forward.source, selectors.EVENT_READ, forward)
    selector.register(back.source, selectors.EVENT_READ, back)
    selector.register(sys.stdin, selectors.EVENT_READ, None)
    print("ready", flush=True)
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for key, _ in selector.select(timeout):
            if key.data is None:
                line = sys.stdin.readline()
                if not line:
                    return
                for frame in path.command(line.strip()):
                    heapq.heappush(waiting, (forward.departure(frame, time.monotonic()), next(numbers), forward, frame))
                # frames in flight when the path breaks are lost
                if path.mode == "broken":
                    waiting = [item for item in sorted(waiting) if path.carries(item[3], item[2] is forward)]
                continue
            for frame in receive(key.data):
                at = key.data.departure(frame, time.monotonic())
                if at is not None and path.carries(frame, key.data is forward):
                    heapq.heappush(waiting, (at, next(numbers), key.data, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, direction, frame = heapq.heappop(waiting)
            direction.target.send(frame)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate-bps", type=float, default=1e9)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--drop", default="", help="numbers of data segments, comma between")
    parser.add_argument("--lose", default="", help="PORT/SEGMENT:TRANSMISSION, comma between")
    arguments = parser.parse_args()
    drop = {int(number) for number in arguments.drop.split(",") if number}
    left, right = open_side("left"), open_side("right")
    delay_s = arguments.delay_ms / 1000
    forward = Direction(left, right, arguments.rate_bps, delay_s, drop)
    losses = {tuple(int(number) for number in re.split("[/:]", loss)) for loss in arguments.lose.split(",") if loss}
    forward.script = Script(losses) if losses else None
    relay(forward, Direction(right, left, arguments.rate_bps, delay_s, set()))


if __name__ == "__main__":
    main()
