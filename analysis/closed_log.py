"""A log that the medium ended before the run, at its limit: the last line says so (formats/air.md), and it is no row."""

import os
from pathlib import Path

CLOSED = b"# closed: "
MAX_LINE_BYTES = 8192  # paths are at most 4096 bytes


def why_closed(path: Path) -> str | None:
    """Why the medium ended this log before the run; None if it did not, or if there is no such log."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - MAX_LINE_BYTES))
            last = log.read().rstrip(b"\n").rpartition(b"\n")[2]
    except OSError:
        return None
    return last.removeprefix(CLOSED).decode(errors="replace") if last.startswith(CLOSED) else None
