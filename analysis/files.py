"""Atomic writes of results files: data go to a temporary file in the same folder, are flushed (fsync(2)), and the file is renamed
(rename(2)).

If the writer is stopped, by a full disk or a crash of the machine, a reader finds the old file or the new one. A rename would
replace a device such as /dev/null, or a link, by a file; such a place is refused.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from analysis.errors import DiskFullError, PlaceError

UNFINISHED = ".new"  # suffix of a temporary file, which may be removed
REMEDY = "put the file itself there"
SPECIAL = (
    (stat.S_ISLNK, "a link"), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


def special(path: Path) -> str | None:
    """`a link`, `a device`, ...; None for a plain file, and for one that is not there."""
    try:
        return _kind_of(path.lstat().st_mode)
    except OSError:  # the caller's own error, when it opens the file
        return None


@contextmanager
def atomic_file(path: Path, mode: str = "w") -> Iterator[IO]:
    """A file to write, which becomes `path` when the block ends without an error. PlaceError if `path` is no plain file,
    DiskFullError if the disk is full; other errors of writing name `path`, not the temporary file."""
    _refuse_special(path)
    part = path.with_name(f".{path.name}.{os.getpid()}{UNFINISHED}")
    try:
        with part.open(mode, newline=None if "b" in mode else "") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _refuse_special(path)
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


@contextmanager
def plain_file(path: Path, *, links: bool = False) -> Iterator[BinaryIO]:
    """The bytes of a plain file. PlaceError for a link (unless `links` are followed), and for a pipe or a device, which might
    block or never end. The open file is checked, so that nobody can exchange it after the check."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if links else os.O_NOFOLLOW))
    except OSError as problem:
        if problem.errno in (errno.ELOOP, errno.ENXIO) and (kind := special(path)) is not None:  # ENXIO: a socket
            raise PlaceError(f"{path}: is {kind} and no plain file; {REMEDY}") from None
        raise
    try:
        if (kind := _kind_of(os.fstat(descriptor).st_mode)) is not None:
            raise PlaceError(f"{path}: is {kind} and no plain file; {REMEDY}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object of a file; empty if the file is missing or holds none, as in a run that ended early."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _kind_of(mode: int) -> str | None:
    return next((words for is_one, words in SPECIAL if is_one(mode)), None)


def _refuse_special(path: Path) -> None:
    if (kind := special(path)) is not None:
        raise PlaceError(f"{path}: is {kind} and no plain file; give another name")
