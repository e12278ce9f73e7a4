"""Trains of datagrams over UDP, as a program: `datagrams.py send ...` and `datagrams.py receive ...`. Standard library only.

iperf3's UDP test talks TCP over the same radio before and after; this one puts nothing on the air but its datagrams. Train k (of
one datagram: a constant bit rate) leaves at start + k * every, computed from the start each time, so that a late one delays no
other. The payload begins with the sending time (CLOCK_REALTIME, ns, u64) and the counter (u32), little-endian: 12 bytes, by which
the analysis identifies a datagram (analysis/metrics/datagrams.py). `bytes` is the IP packet: payload + 28, of IPv6 payload + 48;
`sizes` names a file with the size of each IP packet, one in a line, the first again after the last.
"""

import argparse
import json
import signal
import socket
import struct
import time

HEADERS_BYTES = {4: 20 + 8, 6: 40 + 8}  # by IP version: IP without options (RFC 791, 3.1; RFC 8200, 3), UDP (RFC 768)
STAMP = struct.Struct("<QI")
RECEIVE_BUFFER_BYTES = 1 << 20


def send(options: argparse.Namespace) -> dict[str, object]:
    """Send all datagrams of the flow; those that the kernel refuses (no route, queue full) are counted and not repeated.

    connect() needs a route too, so it is tried with each datagram until there is one (formats/results.md, `refused`).
    """
    family = family_of(options.to)
    headers = HEADERS_BYTES[6 if family == socket.AF_INET6 else 4]
    payload_bytes = options.bytes - headers
    payloads = [size - headers for size in sizes_in(options.sizes)] if options.sizes else [payload_bytes]
    padding = bytes(max(0, payload_bytes - STAMP.size))
    sock = socket.socket(family, socket.SOCK_DGRAM)
    if options.dscp is not None:
        ip6 = family == socket.AF_INET6
        level, option = (socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if ip6 else (socket.IPPROTO_IP, socket.IP_TOS)
        sock.setsockopt(level, option, options.dscp << 2)  # above the two bits of ECN (RFC 2474, RFC 3168)
    sock.bind((options.source, 0))
    connected = False
    trains = max(1, int(options.seconds / options.every))
    sent = sent_bytes = refused = 0
    start, first_try_s = time.monotonic(), time.time()
    for count in range(trains * options.packets):
        wait_s = start + count // options.packets * options.every - time.monotonic()
        if wait_s > 0:
            time.sleep(wait_s)
        try:
            if not connected:
                sock.connect((options.to, options.port))
                connected = True
            size = payloads[count % len(payloads)]
            sock.send((STAMP.pack(time.time_ns(), count) + padding)[:size])
            sent += 1
            sent_bytes += size
        except OSError:
            refused += 1
    port = sock.getsockname()[1]
    counts = {"sent": sent, "sent_bytes": sent_bytes, "refused": refused, "payload_bytes": payload_bytes}
    return {**counts, "port": port, "first_try_s": first_try_s}


def family_of(address: str) -> socket.AddressFamily:
    """The family of an address in text form."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def sizes_in(path: str) -> list[int]:
    """The sizes of a file, one in a line."""
    with open(path) as lines:  # noqa: PTH123 (as below)
        return [int(line) for line in lines]


def receive(options: argparse.Namespace) -> dict[str, object]:
    """Count received datagrams, each once, until SIGTERM, and those that have arrived by then. `until_s`: UNIX times of the
    signal and of the last look: a routing protocol may deliver held datagrams even later."""
    sock = socket.socket(family_of(options.source), socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    sock.bind((options.source, options.port))
    seen: set[bytes] = set()
    received_bytes, first, last, duplicates = 0, None, None, 0
    ended_s: list[float] = []

    def stop(_number: int, _frame: object) -> None:
        ended_s.append(time.time())
        sock.setblocking(False)  # recv() then ends when nothing is left

    signal.signal(signal.SIGTERM, stop)
    print("listening", flush=True)
    while True:
        try:
            payload = sock.recv(65536)
        except BlockingIOError:
            break
        stamp = payload[: STAMP.size]
        if len(stamp) == STAMP.size and stamp in seen:
            duplicates += 1
            continue
        seen.add(stamp)
        received_bytes += len(payload)
        last = time.monotonic()
        first = last if first is None else first
    seconds = (last - first) if first is not None and last is not None else 0.0
    counts = {"received": len(seen), "received_bytes": received_bytes, "seconds": seconds, "duplicates": duplicates}
    return {**counts, "until_s": [ended_s[0], time.time()]}


def main() -> None:
    """Send or receive as the command line says, and write the counts to `--out`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("send", "receive"):
        sub = verbs.add_parser(verb)
        sub.add_argument("--source", required=True, help="own address")
        sub.add_argument("--port", type=int, required=True, help="the receiver's port")
        sub.add_argument("--out", required=True, help="file for the counts (JSON)")
    sender = verbs.choices["send"]
    sender.add_argument("--to", required=True)
    sender.add_argument("--every", type=float, required=True, help="seconds from train to train")
    sender.add_argument("--packets", type=int, required=True, help="of each train, back to back")
    sender.add_argument("--bytes", type=int, required=True, help="of the IP packet; with --sizes of the largest")
    sender.add_argument("--sizes", help="file with the size of each IP packet")
    sender.add_argument("--dscp", type=int, help="of the datagrams, 0 to 63")
    sender.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    counts = send(options) if options.verb == "send" else receive(options)
    with open(options.out, "w") as out:  # noqa: PTH123 (pathlib would double this program's start-up time)
        json.dump(counts, out)


if __name__ == "__main__":
    main()
