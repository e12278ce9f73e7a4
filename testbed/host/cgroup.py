"""The control group of a run: `<cgroup2 mount>/manet/<run id>`.

It holds every process of the run. kernel-tcp attaches its `sockops` program to it, and `manet clean` ends the whole run
through it. No controller is enabled: the group identifies processes and limits nothing.
"""

import contextlib
import errno
import os
import time
from pathlib import Path

from testbed.errors import UsageError

PARENT = "manet"
MOUNT_COMMAND = "mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified"
EMPTY_DEADLINE_S = 5.0
CREATE_TRIES = 100


def cgroup2_mount(mountinfo: Path = Path("/proc/self/mountinfo")) -> Path | None:
    """The mount point of cgroup version 2 (proc_pid_mountinfo(5): the type follows the separator `-`)."""
    for line in mountinfo.read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split(" ")[0] == "cgroup2":
            return Path(before.split(" ")[4])
    return None


def require_mount() -> Path:
    """The mount point of cgroup version 2. Raises UsageError if it is not mounted."""
    mount = cgroup2_mount()
    if mount is None:
        raise UsageError(f"no cgroup2 file system is mounted; mount one: {MOUNT_COMMAND}")
    return mount


def create(run_id: str) -> Path:
    """Create the group of a run and return its folder. Raises UsageError without root."""
    group = require_mount() / PARENT / run_id
    for _ in range(CREATE_TRIES):
        try:
            with contextlib.suppress(FileExistsError):
                group.parent.mkdir()
            group.mkdir()
            return group
        except FileNotFoundError:
            continue  # another run, which was the last, has just removed the parent
        except OSError as problem:
            raise _creation_error(group, problem) from None
    raise _creation_error(group, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))


def _creation_error(group: Path, problem: OSError) -> UsageError:
    return UsageError(f"{group}: {problem.strerror}; the testbed needs root, and `manet clean` removes leftovers")


def enter(group: Path) -> None:
    """Move the calling process; children that it starts from now on are born there."""
    (group / "cgroup.procs").write_text("0")


def members(group: Path) -> list[int]:
    """The process ids in the group; empty if the group does not exist."""
    return _ids(group / "cgroup.procs")


def threads(group: Path) -> list[int]:
    """The thread ids of all processes in the group; empty if the group does not exist."""
    return _ids(group / "cgroup.threads")


def _ids(listing: Path) -> list[int]:
    try:
        return [int(number) for number in listing.read_text().split()]
    except OSError:
        return []


def remove(group: Path) -> bool:
    """Remove the group once it is empty, and the parent if this was the last; True if it no longer exists."""
    deadline = time.monotonic() + EMPTY_DEADLINE_S
    while True:
        try:
            group.rmdir()
            break
        except FileNotFoundError:
            break
        except OSError as problem:
            if problem.errno != errno.EBUSY or time.monotonic() > deadline:
                return False
            time.sleep(0.01)  # a killed process leaves its group a moment after it was waited for
    with contextlib.suppress(OSError):  # other runs are in it
        group.parent.rmdir()
    return True
