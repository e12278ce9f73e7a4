"""The lock of a folder that one of our processes writes at a time: a run, a campaign, `manet serve`."""

import fcntl
import os
from pathlib import Path

from keys.errors import UsageError

ELSEWHERE = "give another folder with --out"


def lock(folder: Path, in_use: str, elsewhere: str = ELSEWHERE) -> int:
    """Make the folder and lock it; the lock lasts until the returned descriptor is closed, or the process ends. UsageError: the
    folder cannot be made (`elsewhere` is the remedy), or another process has it (`in_use` says who, and the remedy)."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as problem:
        raise UsageError(f"{folder}: {problem.strerror}; {elsewhere}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise UsageError(f"{folder}: {in_use}") from None
    return descriptor
