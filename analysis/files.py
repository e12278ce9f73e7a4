"""Results files that are there whole or not at all: written beside, brought to the disk (fsync(2)), renamed (rename(2)).

Whatever stops the writer, a full disk or a lost machine, a reader finds the file as it was before or as it was to be.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from analysis.errors import DiskFullError

UNFINISHED = ".new"  # the ending of what is being written; such a file may be removed


@contextmanager
def whole(path: Path, mode: str = "w") -> Iterator[IO]:
    """A file to write, which becomes `path` when the block ends well. DiskFullError where there is no room."""
    beside = path.with_name(f".{path.name}.{os.getpid()}{UNFINISHED}")
    try:
        with beside.open(mode, newline=None if "b" in mode else "") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(path) from None
        raise
    finally:
        beside.unlink(missing_ok=True)


def write_whole(path: Path, content: str) -> None:
    """Write a text file through `whole`; DiskFullError names the path."""
    with whole(path) as file:
        file.write(content)


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object; empty where the file is missing or holds none, as in a run that ended early."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
