"""The limit of open files (RLIMIT_NOFILE, getrlimit(2)): a run holds some for every station, more than the usual 1024.

The run raises its soft limit to the hard one. Its children get back the soft limit that `manet` was started with: a program
that calls select(2) can use no descriptor above 1023, and some close every descriptor up to the limit when they start.
"""

import contextlib
import resource

_original_soft: int | None = None


def raise_limit() -> None:
    """Raise the soft limit of this process to its hard limit; `restore_limit` undoes it for a child."""
    global _original_soft
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    _original_soft = soft if _original_soft is None else _original_soft


def restore_limit(pid: int) -> None:
    """Give the process `pid`, a child that has just started, the soft limit from before `raise_limit`."""
    if _original_soft is None:
        return
    with contextlib.suppress(ProcessLookupError):
        _soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (_original_soft, hard))
