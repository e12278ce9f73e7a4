#!/usr/bin/env python3
"""A client of the medium's link-feedback socket (formats/sockets.md): what a routing daemon does, in Python.

    link_feedback_client.py feedback/sta1.sock                 print failures as they happen
    link_feedback_client.py --delivered --overheard SOCKET     and what was acknowledged, and what was overheard
    link_feedback_client.py --purge 02:00:00:00:00:02 SOCKET   take the queued frames for a neighbour out, print them, end

One line of JSON a message. Needs nothing but Python 3.11; copy it, or import `connect`, `receive` and `purge`.
"""

import argparse
import json
import socket
import struct
import sys
from collections.abc import Iterator

VERSION = 1
HEADER = struct.Struct("<BBHI")  # version, type, reserved, body length
MAX_LEN = 65536

SUBSCRIBE, PURGE, FILTER = 1, 2, 3
FAILED, PURGED, PURGE_DONE, OVERHEARD, DELIVERED, ERROR = 129, 130, 131, 132, 133, 255
WANT_FAILURES, WANT_OVERHEARD, WANT_DELIVERED = 1, 2, 4
REASONS = {1: "short retry limit", 2: "long retry limit"}


def message(kind: int, body: bytes) -> bytes:
    """A message with its header."""
    return HEADER.pack(VERSION, kind, 0, len(body)) + body


def mac_bytes(text: str) -> bytes:
    """The six bytes of a MAC address; ValueError for any other text."""
    address = bytes.fromhex(text.replace(":", ""))
    if len(address) != 6:
        raise ValueError(f"{text} is no MAC address like 02:00:00:00:00:01")
    return address


def connect(path: str, flags: int) -> socket.socket:
    """A connection that receives the messages selected by `flags`."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    connection.send(message(SUBSCRIBE, struct.pack("<I", flags)))
    return connection


def purge(connection: socket.socket, neighbour: str, token: int) -> None:
    """Request the queued frames for `neighbour`; PURGED and PURGE_DONE with this token follow."""
    connection.send(message(PURGE, mac_bytes(neighbour) + struct.pack("<HI", 0, token)))


def select_overheard(connection: socket.socket, program: list[tuple[int, int, int, int]]) -> None:
    """Receive only the overheard frames that a classic BPF program accepts; its instructions are (code, jt, jf, k)."""
    connection.send(message(FILTER, b"".join(struct.pack("<HBBI", *instruction) for instruction in program)))


def decode(packet: bytes) -> dict[str, str | int | bytes]:
    """A message of the medium as a dictionary; its frame, if any, as bytes."""
    version, kind, _reserved, length = HEADER.unpack_from(packet)
    body = packet[HEADER.size :]
    if version != VERSION or length != len(body):
        raise ValueError("not a message of formats/sockets.md")
    if kind == FAILED:
        model_ns, neighbour, reason, _length = struct.unpack_from("<Q6sHI", body)
        about = {"neighbour": neighbour.hex(":"), "reason": REASONS[reason]}
        return {"type": "failed", "model_ns": model_ns, **about, "frame": body[20:]}
    if kind == PURGED:
        token, neighbour, _zero, _length = struct.unpack_from("<I6sHI", body)
        return {"type": "purged", "token": token, "neighbour": neighbour.hex(":"), "frame": body[16:]}
    if kind == PURGE_DONE:
        token, count = struct.unpack("<II", body)
        return {"type": "purge_done", "token": token, "count": count}
    if kind == OVERHEARD:
        model_ns, transmitter, receiver, _length = struct.unpack_from("<Q6s6sI", body)
        about = {"transmitter": transmitter.hex(":"), "receiver": receiver.hex(":")}
        return {"type": "overheard", "model_ns": model_ns, **about, "frame": body[24:]}
    if kind == DELIVERED:
        model_ns, neighbour, retries, _length = struct.unpack("<Q6sHI", body)
        return {"type": "delivered", "model_ns": model_ns, "neighbour": neighbour.hex(":"), "retries": retries}
    if kind == ERROR:
        return {"type": "error", "text": body.decode()}
    raise ValueError(f"unknown message type {kind}")


def receive(connection: socket.socket) -> Iterator[dict[str, str | int | bytes]]:
    """Messages until the medium ends."""
    while packet := connection.recv(MAX_LEN):
        yield decode(packet)


def main() -> int:
    """Print messages until the medium ends, or purge a queue; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("socket", help="feedback_dir/<station>.sock")
    parser.add_argument("--overheard", action="store_true", help="also data frames decoded but meant for others")
    parser.add_argument("--delivered", action="store_true", help="also what was acknowledged")
    parser.add_argument("--purge", metavar="MAC", help="purge the queue of frames for this neighbour, then end")
    arguments = parser.parse_args()
    flags = WANT_FAILURES | WANT_OVERHEARD * arguments.overheard | WANT_DELIVERED * arguments.delivered
    try:
        connection = connect(arguments.socket, flags)
        if arguments.purge:
            purge(connection, arguments.purge, token=1)
        for received in receive(connection):
            print(json.dumps({k: v.hex() if isinstance(v, bytes) else v for k, v in received.items()}), flush=True)
            if arguments.purge and received["type"] == "purge_done":
                break
    except (OSError, ValueError) as problem:
        print(f"{arguments.socket}: {problem}; is the medium running, with feedback_dir set?", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
