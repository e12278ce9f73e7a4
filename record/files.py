"""Reading and writing of results files, which are plain files.

Reading follows no link below the folder of a run or of results, which could show other files of the machine, and opens no pipe or
device, which could block or never end. Writing is atomic: data go to a temporary file in the same folder, are flushed (fsync(2)),
and the file is renamed (rename(2)).

If the writer is stopped, by a full disk or a crash of the machine, a reader finds the old file or the new one. A rename would
replace a device such as /dev/null, or a link, by a file; such a place is refused.
"""

import errno
import io
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO

from record.errors import DiskFullError, PlaceError, RunFileError

UNFINISHED = ".new"  # suffix of a temporary file, which may be removed
REMEDY = "put the file itself there"
RUN = "run.json"  # in the folder of a run
MAX_DEPTH = 4  # of a file below the folder of its run
READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe without a writer does not block
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
def atomic_file(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
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


def plain_file(path: Path, *, links: bool = False, beneath: Path | None = None) -> io.BufferedReader:
    """The opened bytes of a plain file. PlaceError for a pipe or a device, and, unless `links` are followed, for a link as one of
    the names below `beneath` (the folder of the file's run; of a file in no run its own folder). The open file is checked, so
    that it cannot be exchanged after the check."""
    try:
        descriptor = os.open(path, READ) if links else _opened_beneath(path, beneath)
    except OSError as problem:
        if problem.errno == errno.ENXIO and (kind := special(path)) is not None:  # a socket
            raise PlaceError(path, kind, REMEDY) from None
        raise
    if (kind := _kind_of(os.fstat(descriptor).st_mode)) is not None:
        os.close(descriptor)
        raise PlaceError(path, kind, REMEDY)
    return os.fdopen(descriptor, "rb")


@contextmanager
def plain_text(path: Path) -> Iterator[TextIO]:
    """The text of a plain file, with the ends of lines as they are."""
    with plain_file(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        yield text


def read_bytes(path: Path) -> bytes:
    """The content of a plain file. Raises PlaceError, OSError."""
    with plain_file(path) as file:
        return file.read()


def read_text(path: Path) -> str:
    """The text of a plain file. Raises PlaceError, OSError, and ValueError for other bytes than UTF-8."""
    return read_bytes(path).decode()


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises OSError, and RunFileError if it is not JSON."""
    return json_of(read_bytes(path), path)


def json_of(text: str | bytes, path: Path) -> Any:
    """The content of a file, or of a line of it. RunFileError, which names the file, if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError as problem:
        raise RunFileError(f"{path}: not JSON ({problem}); was its writer killed, or the file changed?") from None


def read_json_lines(path: Path, *marks: str) -> Iterator[Any]:
    """The content of each line of JSON (of those that have one of the `marks`, if given); none without the file. A last line that
    a killed writer left unfinished is skipped. Raises RunFileError."""
    *lines, _unfinished = read_bytes(path).split(b"\n") if path.exists() else [b""]
    wanted = [mark.encode() for mark in marks]
    return (json_of(line, path) for line in lines if not wanted or any(mark in line for mark in wanted))


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object of a file; empty if the file is missing or holds none, as in a run that ended early."""
    try:
        content = json.loads(read_bytes(path))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _opened_beneath(path: Path, beneath: Path | None) -> int:
    base = beneath or next((folder for folder in path.parents[:MAX_DEPTH] if (folder / RUN).exists()), path.parent)
    at, folder = base, os.open(base, os.O_PATH | os.O_CLOEXEC)
    try:
        for part in path.relative_to(base).parts[:-1]:
            at /= part
            inner = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        at /= path.name
        return os.open(path.name, READ | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as problem:
        if problem.errno in (errno.ELOOP, errno.ENOTDIR) and (kind := special(at)) is not None:
            raise PlaceError(at, kind, REMEDY) from None
        problem.filename = str(path)
        raise
    finally:
        os.close(folder)


def _kind_of(mode: int) -> str | None:
    return None if stat.S_ISREG(mode) else next((words for is_one, words in SPECIAL if is_one(mode)), None)


def _refuse_special(path: Path) -> None:
    if (kind := special(path)) is not None:
        raise PlaceError(path, kind, "give another name")
