"""What the notes of a station's routing daemon say of a flow (formats/routing.md).

A last line that a killed daemon left unfinished is passed over.
"""

import json
from pathlib import Path

from analysis.connections import Connection


def segments_given_up(run_dir: Path, station: str, connection: Connection) -> int:
    """How many of the connection's segments the station's own daemon gave up for lack of a route; 0 without notes."""
    return len(given_up(run_dir, station, connection))


def given_up(run_dir: Path, station: str, connection: Connection) -> list[dict]:
    """The notes of the connection's packets that this station's daemon gave up, in order; `t_ns` is model time."""
    ports = [connection.source_port, connection.destination_port]
    return [
        note
        for note in read_notes(run_dir, station)
        if note.get("event") == "unreachable" and note.get("source") == connection.source and note.get("ports") == ports
    ]


def read_notes(run_dir: Path, station: str) -> list[dict]:
    """All notes of a station's daemon; none where it has no daemon of ours."""
    path = run_dir / "routing" / f"{station}.jsonl"
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
