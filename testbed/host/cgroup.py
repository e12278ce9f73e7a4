"""The control group of a run: `<cgroup2 mount>/manet/<run id>`.

It holds every process of the run, those of stations with a root file system of their own in groups within it
(testbed/host/limits.py). kernel-tcp attaches its `sockops` program to it, and `manet clean` ends the whole run through it. It
identifies processes and limits nothing.

A run of an ordinary user has no group (None): its processes are those of its pid namespace (testbed/runs/isolation.py).
"""

import contextlib
import errno
import os
import time
from collections.abc import Collection
from pathlib import Path

from testbed.errors import UsageError
from testbed.host import privileges

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


def version_1_mounts(mountinfo: Path = Path("/proc/self/mountinfo")) -> dict[str, Path]:
    """The mount point of each controller of cgroup version 1; such a controller is not in version 2 (cgroups(7))."""
    mounts: dict[str, Path] = {}
    for line in mountinfo.read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split(" ")[0] == "cgroup":
            mounts |= dict.fromkeys(after.split(" ")[2].split(","), Path(before.split(" ")[4]))
    return mounts


def is_frozen(group: Path) -> bool:
    """Whether a group of the version 1 freezer is frozen, by itself or with one above it."""
    try:
        return (group / "freezer.state").read_text().strip() != "THAWED"
    except OSError:
        return False


def require_mount() -> Path:
    """The mount point of cgroup version 2. Raises UsageError if it is not mounted."""
    mount = cgroup2_mount()
    if mount is None:
        raise UsageError(f"no cgroup2 file system is mounted; mount one: {MOUNT_COMMAND}")
    return mount


def own() -> Path | None:
    """The group (version 2) of this process: the line `0::/path` of cgroups(7). None in a run of an ordinary user."""
    if privileges.rootless():
        return None
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return require_mount() / next(line for line in lines if line.startswith("0::"))[3:].lstrip("/")


def numbers(path: Path) -> dict[str, int]:
    """The lines `name number` of a file of a group, such as cpu.stat; empty without it."""
    try:
        pairs = (line.split() for line in path.read_text().splitlines())
        return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}
    except (OSError, ValueError):
        return {}


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


def members(group: Path | None) -> list[int]:
    """The process ids in the group and the groups within it; empty if the group does not exist. None: those that /proc shows,
    except its pid 1, which waits for the others; to be called within a run."""
    if group is None:
        return processes()
    return [number for each in _within(group) for number in _ids(each / "cgroup.procs")]


def threads(group: Path | None, without: Collection[Path] = ()) -> list[int]:
    """The thread ids of all processes in the group and the groups within it, except those in the groups `without`; empty if
    the group does not exist. None: as of `members`."""
    if group is None:
        return [thread for process in processes() for thread in _numbered(Path(f"/proc/{process}/task"))]
    return [number for each in _within(group) if each not in without for number in _ids(each / "cgroup.threads")]


def processes(proc: Path = Path("/proc")) -> list[int]:
    """The process ids that a /proc shows, except pid 1."""
    return [number for number in _numbered(proc) if number != 1]


def _numbered(folder: Path) -> list[int]:
    """The names in a folder of proc(5) that are numbers; empty if it does not exist."""
    try:
        return [int(entry.name) for entry in os.scandir(folder) if entry.name.isdecimal()]
    except OSError:
        return []


def _within(group: Path) -> list[Path]:
    """The group and the groups within it; a group has no other folders."""
    try:
        return [group, *(Path(entry.path) for entry in os.scandir(group) if entry.is_dir())]
    except OSError:
        return []


def _ids(listing: Path) -> list[int]:
    try:
        return [int(number) for number in listing.read_text().split()]
    except OSError:
        return []


def remove(group: Path) -> bool:
    """Remove the group once it is empty, with the groups within it and those of the same name in hierarchies of version 1, and
    the parents if this was the last; True if none of them exists any longer."""
    twins = [mount / PARENT / group.name for mount in dict.fromkeys(version_1_mounts().values())]
    deadline = time.monotonic() + EMPTY_DEADLINE_S
    removed = [_removed(each, deadline) for run in (*twins, group) for each in reversed(_within(run))]
    for run in (*twins, group):
        with contextlib.suppress(OSError):  # other runs are in it, or there is none
            run.parent.rmdir()
    return all(removed)


def _removed(group: Path, deadline: float) -> bool:
    """Remove one group; returns whether it no longer exists."""
    while True:
        try:
            group.rmdir()
            return True
        except FileNotFoundError:
            return True
        except OSError as problem:
            if problem.errno != errno.EBUSY or time.monotonic() > deadline:
                return False
            time.sleep(0.01)  # a killed process leaves its group a moment after it was waited for
