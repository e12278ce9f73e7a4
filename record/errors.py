"""Errors of the readers of run directories: one line that names the file and the remedy."""

import errno
from pathlib import Path


class RecordError(Exception):
    """A run directory cannot be analysed as it is."""


class CaptureError(RecordError):
    """A capture file is missing, has another format, or is cut short."""


class RunFileError(RecordError):
    """Another file of the run directory is missing or not in its format."""


class QueryError(RecordError):
    """A query of result stores is wrong, or asks for more than it may."""


class PlaceError(RecordError, OSError):
    """A link, a device, a pipe or a folder is at the place of a plain file, which is neither read nor replaced."""

    def __init__(self, path: Path, kind: str, remedy: str) -> None:
        super().__init__(errno.EINVAL, f"is {kind} and no plain file; {remedy}", str(path))
        self.kind, self._remedy = kind, remedy

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"

    def __reduce__(self) -> tuple[type["PlaceError"], tuple[Path, str, str]]:
        """Pickle the error for another process."""
        return PlaceError, (Path(self.filename), self.kind, self._remedy)


class DiskFullError(RecordError):
    """There is no room for a results file; its former content is unchanged. The caller adds the command that continues."""

    def __init__(self, path: Path, again: str = "") -> None:
        text = f"{path}: disk full; free space on this disk (results need not be deleted)"
        super().__init__(f"{text}, then {again}" if again else text)
        self.path = path

    def __reduce__(self) -> tuple[type["DiskFullError"], tuple[Path]]:
        """Pickle the error for another process, without the caller's command."""
        return DiskFullError, (self.path,)
