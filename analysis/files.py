"""Atomic writes of results files: data go to a temporary file in the same folder, are flushed (fsync(2)), and the file is renamed
(rename(2)).

If the writer is stopped, by a full disk or a crash of the machine, a reader finds the old file or the new one.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from analysis.errors import DiskFullError

UNFINISHED = ".new"  # suffix of a temporary file, which may be removed


@contextmanager
def atomic_file(path: Path, mode: str = "w") -> Iterator[IO]:
    """A file to write, which becomes `path` when the block ends without an error. DiskFullError if the disk is full; other errors
    of writing name `path`, not the temporary file."""
    part = path.with_name(f".{path.name}.{os.getpid()}{UNFINISHED}")
    try:
        with part.open(mode, newline=None if "b" in mode else "") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(path) from None
        if problem.errno is not None and problem.filename in (None, str(part)):
            problem.filename, problem.filename2 = str(path), None
        raise
    finally:
        part.unlink(missing_ok=True)


def write_atomic(path: Path, content: str) -> None:
    """Write a text file atomically; DiskFullError if the disk is full."""
    with atomic_file(path) as file:
        file.write(content)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object of a file; empty if the file is missing or holds none, as in a run that ended early."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
