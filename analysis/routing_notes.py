"""What the notes of a station's routing daemon say of a flow (formats/routing.md)."""

import json
from pathlib import Path

from analysis.connections import Connection


def segments_given_up(run_dir: Path, station: str, connection: Connection) -> int:
    """How many of the connection's segments the station's own daemon gave up for lack of a route; 0 without notes.

    A last line that a killed daemon left unfinished is passed over.
    """
    path = run_dir / "routing" / f"{station}.jsonl"
    if not path.exists():
        return 0
    ports = [connection.source_port, connection.destination_port]
    return sum(
        note.get("event") == "unreachable" and note.get("source") == connection.source and note.get("ports") == ports
        for note in _notes(path)
    )


def _notes(path: Path) -> list[dict]:
    lines = path.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
