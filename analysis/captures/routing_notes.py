"""Records of a flow in the notes and the event log of a station's routing daemon (formats/routing.md).

A last line that a killed daemon left unfinished is skipped. Times are model time.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from analysis.captures.connections import Connection
from analysis.captures.held_packets import HELD, read_held
from analysis.captures.pcap import table_of
from record.files import json_of, read_json, read_text

Note = dict[str, Any]
UNREACHABLE, RESOLVING, DISPLACED = "unreachable", "resolving", "displaced"
_ETHERNET = bytes(12) + b"\x08\x00"  # Ethernet header before an IPv4 packet


def segments_given_up(run_dir: Path, station: str, connection: Connection) -> int:
    """Number of the connection's segments that the station's own daemon dropped, without a route or for a later packet that waits
    for the same link address; 0 without notes."""
    return len(given_up(run_dir, station, connection))


def too_big(run_dir: Path, station: str) -> int:
    """Number of packets that the station's own daemon refused because they did not fit into its tunnel to the gateway (all
    flows together). TCP sends them again in smaller segments. 0 for other daemons."""
    path = run_dir / "routing" / f"{station}.status.json"
    if not path.exists():
        return 0
    count: int = read_json(path).get("end", {}).get("counters", {}).get("too-big", 0)
    return count


def given_up(run_dir: Path, station: str, connection: Connection) -> list[Note]:
    """Notes of the connection's packets that this station's daemon dropped, in order; `t_ns` is model time."""
    return [note for note in notes_about(run_dir, station, connection) if note.get("event") in (UNREACHABLE, DISPLACED)]


def notes_about(run_dir: Path, station: str, connection: Connection) -> list[Note]:
    """Notes of this station's daemon about the connection's packets, in order; `t_ns` is model time."""
    ports = [connection.source_port, connection.destination_port]
    return [
        note for note in read_notes(run_dir, station) if note.get("source") == connection.source and note.get("ports") == ports
    ]


def notes_path(run_dir: Path, station: str) -> Path:
    """The notes of a station's daemon."""
    return run_dir / "routing" / f"{station}.jsonl"


def read_notes(run_dir: Path, station: str) -> list[Note]:
    """All notes of a station's daemon; none for third-party daemons."""
    path = notes_path(run_dir, station)
    return [json_of(line, path) for line in _lines(path)]


def received_from_kernel(run_dir: Path, station: str, connection: Connection) -> pl.DataFrame:
    """The connection's packets that the kernel gave the daemon because it had no route for them, in the form of
    analysis.captures.pcap; none without an event log. A restarted daemon counts from its own start."""
    starts = iter([note["t_ns"] for note in read_notes(run_dir, station) if note.get("event") == "started"])
    return connection.forward(table_of(_handed(run_dir / "routing" / f"{station}.events.jsonl", starts)))


def held_capture(run_dir: Path, station: str, connection: Connection, passage: str = HELD) -> pl.DataFrame:
    """The connection's packets that the daemon began to hold, or sent on, or gave up; times are CLOCK_REALTIME."""
    packets = read_held(run_dir / "captures" / f"{station}.held.pcapng")
    return connection.forward(table_of((one.t_ns, _ETHERNET + one.packet) for one in packets if one.passage == passage))


def _handed(path: Path, starts: Iterator[int]) -> Iterator[tuple[int, bytes]]:
    start_ns = 0
    for line in _lines(path):
        if '"started"' in line:
            start_ns = next(starts, start_ns)
        elif '"input":{"packet"' in line:
            entry = json_of(line, path)
            yield start_ns + entry["at"], _ETHERNET + bytes.fromhex(entry["input"]["packet"]["bytes"])


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    lines = read_text(path).splitlines(keepends=True)
    return [line for line in lines if line.endswith("\n")]
