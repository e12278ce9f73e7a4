"""Records of a flow in the notes, the event log and the capture of held packets of a station's routing daemon
(formats/routing.md).

Times are model time, of the tables of packets CLOCK_REALTIME.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from analysis.captures.connections import Connection
from analysis.captures.held_packets import GIVEN_UP, HELD, read_held
from analysis.captures.pcap import SCHEMA, table_of
from record.files import read_json, read_json_lines

Note = dict[str, Any]
UNREACHABLE, RESOLVING, DISPLACED = "unreachable", "resolving", "displaced"
FROM_KERNEL = "from kernel"
_ETHERNET = bytes(12) + b"\x08\x00"  # Ethernet header before an IPv4 packet


def segments_given_up(run_dir: Path, station: str, connection: Connection) -> int:
    """Number of the connection's segments that the station's own daemon dropped, without a route or for a later packet that waits
    for the same link address; 0 without notes."""
    notes = _about(connection, read_notes(run_dir, station))
    return sum(note.get("event") in (UNREACHABLE, DISPLACED) for note in notes)


def too_big(run_dir: Path, station: str) -> int:
    """Number of packets that the station's own daemon refused because they did not fit into its tunnel to the gateway (all
    flows together). TCP sends them again in smaller segments. 0 for other daemons."""
    path = run_dir / "routing" / f"{station}.status.json"
    if not path.exists():
        return 0
    count: int = read_json(path).get("end", {}).get("counters", {}).get("too-big", 0)
    return count


def notes_path(run_dir: Path, station: str) -> Path:
    """The notes of a station's daemon."""
    return run_dir / "routing" / f"{station}.jsonl"


def read_notes(run_dir: Path, station: str) -> list[Note]:
    """All notes of a station's daemon; none for third-party daemons."""
    return list(read_json_lines(notes_path(run_dir, station)))


Records = tuple[list[Note], dict[str, pl.DataFrame]]


def read_records(run_dir: Path, station: str, ways: Sequence[Connection], epoch_ns: int) -> dict[Connection, Records]:
    """Of each of the connections, the notes of a station's daemon about it, and its packets in the form of
    analysis.captures.pcap: FROM_KERNEL, which the kernel gave the daemon because it had no route for them (none without an event
    log); HELD, which the daemon began to hold; GIVEN_UP."""
    notes = read_notes(run_dir, station)
    starts = iter([epoch_ns + note["t_ns"] for note in notes if note.get("event") == "started"])
    kept = list(read_held(run_dir / "captures" / f"{station}.held.pcapng"))
    frames = {name: [(one.t_ns, one.packet) for one in kept if one.passage == name] for name in (HELD, GIVEN_UP)}
    frames[FROM_KERNEL] = list(_from_kernel(run_dir / "routing" / f"{station}.events.jsonl", starts, epoch_ns))
    tables = {name: _table_of(each) for name, each in frames.items()}
    return {way: (_about(way, notes), {name: way.forward(table) for name, table in tables.items()}) for way in ways}


def _table_of(packets: list[tuple[int, bytes]]) -> pl.DataFrame:
    """Without packets, as of most stations, their decoder is not imported."""
    return table_of((t_ns, _ETHERNET + packet) for t_ns, packet in packets) if packets else pl.DataFrame(schema=SCHEMA)


def _about(connection: Connection, notes: list[Note]) -> list[Note]:
    ports = [connection.source_port, connection.destination_port]
    return [note for note in notes if note.get("source") == connection.source and note.get("ports") == ports]


def _from_kernel(path: Path, starts: Iterator[int], start_ns: int) -> Iterator[tuple[int, bytes]]:
    """A restarted daemon counts from its own start."""
    for entry in read_json_lines(path, '"started"', '"input":{"packet"'):
        if "started" in entry:
            start_ns = next(starts, start_ns)
        else:
            yield start_ns + entry["at"], bytes.fromhex(entry["input"]["packet"]["bytes"])
