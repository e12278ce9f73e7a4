"""Open files (RLIMIT_NOFILE, getrlimit(2)): a run holds some for every station, more than the usual soft limit of 1024 allows.

The run raises its soft limit to the hard one. Its children get back the soft limit that `manet` was started with: a program
that calls select(2) can use no descriptor above 1023, and some close every descriptor up to the limit when they start.
"""

import contextlib
import resource

_before: int | None = None


def raise_limit() -> None:
    """This process may open as many files as its hard limit allows; `give_back` undoes it for a child."""
    global _before
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    _before = soft if _before is None else _before


def give_back(pid: int) -> None:
    """A child that has just been started gets the soft limit of before `raise_limit`."""
    if _before is None:
        return
    with contextlib.suppress(ProcessLookupError):
        _soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (_before, hard))
