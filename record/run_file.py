"""run.json: what happened in a run, correct at every moment (formats/results.md).

The file is written at the start with status "interrupted": that is the truth if nothing more can be written, for example after a
power failure. Its space is reserved at the start and it is rewritten in place later, so that the reason of a failure can be
recorded on a full disk. (Blank space after a JSON value is valid JSON.)
"""

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any

FORMAT = "manet-run/1"
RESERVED_BYTES = 32 * 1024
RESERVED_BYTES_PER_STATION = 2 * 1024


class RunFile:
    """The record of one run. Each `update` merges fields and writes the file; several threads may call it."""

    def __init__(self, path: Path, fields: dict[str, Any], *, reserve_bytes: int = 0) -> None:
        self.path, self.fields, self._reserve_bytes = path, fields, reserve_bytes
        self._turn = threading.Lock()

    @classmethod
    def create(cls, path: Path, stations: int, **fields: object) -> "RunFile":
        """Write the record of a run that begins, with space reserved for this number of stations. Raises OSError."""
        started = {"format": FORMAT, "status": "interrupted", "error": "the run never came to its end", **fields}
        record = cls(path, started, reserve_bytes=RESERVED_BYTES + stations * RESERVED_BYTES_PER_STATION)
        record._write()
        return record

    @classmethod
    def open(cls, path: Path) -> "RunFile":
        """Read an existing record, to update it. Raises OSError, ValueError."""
        text = path.read_text()
        return cls(path, json.loads(text), reserve_bytes=len(text.encode()))

    def update(self, **fields: object) -> None:
        """Merge the fields and write the file. Raises OSError."""
        with self._turn:
            self.fields.update(fields)
            self._write()

    def close(self) -> None:
        """Give back the space that was reserved."""
        self._reserve_bytes = 0
        with contextlib.suppress(OSError):
            self._write()

    def _write(self) -> None:
        text = json.dumps(self.fields, indent=1).encode() + b"\n"
        padded = text.ljust(self._reserve_bytes)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            written = 0
            while written < len(padded):
                written += os.pwrite(descriptor, padded[written:], written)
            os.ftruncate(descriptor, len(padded))
        finally:
            os.close(descriptor)
