"""Logs that the medium closed before the end of the run, at their limit: the last line is a comment (formats/air.md)."""

import os
from pathlib import Path

from record.files import plain_file

CLOSED = b"# closed: "
MAX_LINE_BYTES = 8192  # paths are at most 4096 bytes


def closing_reason(path: Path, beneath: Path | None = None) -> str | None:
    """The reason why the medium closed this log early; None if it did not, or if there is no such log. `beneath`: as of
    `plain_file`."""
    try:
        with plain_file(path, beneath=beneath) as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - MAX_LINE_BYTES))
            last = log.read().rstrip(b"\n").rpartition(b"\n")[2]
    except OSError:
        return None
    return last.removeprefix(CLOSED).decode(errors="replace") if last.startswith(CLOSED) else None
