"""Whose rights the testbed has: those of root of the machine, or of an ordinary user as root of a user namespace.

An ordinary user may make a user namespace and be root in it (user_namespaces(7)): with all capabilities over the network, mount
and pid namespaces that are made there, and none over the machine. Network namespaces, TAP devices, routes, captures and most
sysctls of the stations need no more. Not to be had are eBPF, control groups, kernel modules, real-time priorities, other users'
ids and the machine's own network (docs/rootless.md).

A process of `manet` enters the namespace at its start, while it has one thread (setns(2)). All of a user's share one, so that
they can enter each other's runs; it lasts as long as a process is in it.
"""

import contextlib
import ctypes
import json
import os
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from testbed.errors import UsageError

CLONE_NEWUSER = 0x1000_0000  # <linux/sched.h>
PROC_SELF = Path("/proc/self")
PROC_SYS = Path("/proc/sys")
ALL_IDS = ["0", "0", "4294967295"]  # uid_map of the machine's own user namespace
CAPABILITIES = {  # number of the capability, use; CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON
    "CAP_SYS_ADMIN": (21, "namespaces, eBPF"), "CAP_NET_ADMIN": (12, "interfaces, routes"), "CAP_NET_RAW": (13, "captures"),
}  # fmt: skip
ROOT_FOLDER = Path("/run/manet")
RUNTIME = "XDG_RUNTIME_DIR"  # the user's own folder in memory (XDG Base Directory Specification)
HOLDER = "user-namespace"  # file with the process that made the user's namespace
SWITCHES = {  # files below PROC_SYS that close user namespaces, the value with which they do, the remedy
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
    "kernel/unprivileged_userns_clone": ("0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    "user/max_user_namespaces": ("0", "sysctl -w user.max_user_namespaces=15000"),
}
NEW = ["--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--mount-proc"]
ATTEMPT = ["unshare", *NEW, "mount", "-t", "sysfs", "sysfs", "/sys"]  # what a run and its stations make
CONTAINER = "in a container: --security-opt seccomp=unconfined --security-opt systempaths=unconfined, and no --network=host"

_libc = ctypes.CDLL(None, use_errno=True)


class Owner(Protocol):
    """A process that may be in the user's namespace (testbed.host.state.Process)."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def alive(self) -> bool:
        """Whether this very process still runs."""


def is_root(user: int | None = None, proc: Path = PROC_SELF) -> bool:
    """Whether a process is root of the machine with CAPABILITIES. `user` and `proc`: its effective user id and folder in
    proc(5), default: of this process."""
    return (os.geteuid() if user is None else user) == 0 and not missing_capabilities(proc) and has_all_ids(proc)


def missing_capabilities(proc: Path = PROC_SELF) -> list[str]:
    """Names of CAPABILITIES that a process does not have (capabilities(7))."""
    status = dict(line.partition(":")[::2] for line in (proc / "status").read_text().splitlines())
    effective = int(status["CapEff"], 16)
    return [name for name, (number, _use) in CAPABILITIES.items() if not effective >> number & 1]


def has_all_ids(proc: Path = PROC_SELF) -> bool:
    """Whether a process is in the machine's own user namespace, which has all ids, or in one of that extent."""
    return (proc / "uid_map").read_text().split() == ALL_IDS


@cache
def rootless() -> bool:
    """Whether this process works without root of the machine: asked once, so that all of a process agrees."""
    return not is_root()


def user_of_machine(proc: Path = PROC_SELF) -> int:
    """This process's user id in the machine's user namespace, or the outermost that is visible."""
    own = os.geteuid()
    for line in (proc / "uid_map").read_text().splitlines():
        inside, outside, count = map(int, line.split())
        if inside <= own < inside + count:
            return outside + own - inside
    return own


def state_folder(*, as_root: bool | None = None, runtime: str | None = None, user: int | None = None) -> Path:
    """The folder of the records and sockets of runs: of root /run/manet; of an ordinary user `manet` in $XDG_RUNTIME_DIR, or, if
    there is no such folder, a private one in /tmp. The arguments replace this process's in tests."""
    if (not rootless()) if as_root is None else as_root:
        return ROOT_FOLDER
    own = os.environ.get(RUNTIME, "") if runtime is None else runtime
    if own.startswith("/") and Path(own).is_dir():
        return Path(own) / "manet"
    return Path(f"/tmp/manet-{user_of_machine() if user is None else user}")


def make_state_folder(folder: Path) -> None:
    """Make the folder of `state_folder`. Raises OSError; UsageError if an ordinary user's belongs to another user or is open to
    others, who could put records of runs there."""
    if folder == ROOT_FOLDER:
        folder.mkdir(parents=True, exist_ok=True)
        return
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise UsageError(f"{folder}: is not a private folder of this user; remove it (mode 0700 is needed)")


def enter(folder: Path, owners: Sequence[Owner], this: object) -> None:
    """Become root of the user's namespace, in a process with one thread: of the one of the processes `owners`, if one of them
    lives, or of a new one, which `this` process (a dataclass) then holds. Without effect for root of the machine, and where the
    kernel refuses (`refusal` says why). `folder`: of `state_folder`."""
    if not rootless() or (os.geteuid() == 0 and not missing_capabilities()):
        return
    if any(owner.alive() and _join(owner.pid) for owner in owners):
        return
    user, group = os.geteuid(), os.getegid()
    # AppArmor gives the namespace and refuses what is written into it
    if _closed_switch() is not None or _libc.unshare(CLONE_NEWUSER) != 0:
        return
    with contextlib.suppress(OSError):  # refused by another module; `refusal` says so before a run
        (PROC_SELF / "setgroups").write_text("deny")  # user_namespaces(7): before gid_map without CAP_SETGID
        (PROC_SELF / "uid_map").write_text(f"0 {user} 1")
        (PROC_SELF / "gid_map").write_text(f"0 {group} 1")
        make_state_folder(folder)
        draft = folder / f"{HOLDER}.{os.getpid()}"
        draft.write_text(json.dumps(asdict(this)) + "\n")  # type: ignore[call-overload]
        draft.replace(folder / HOLDER)


def _join(pid: int) -> bool:
    """Enter the user namespace of a process; whether it is possible, and another one than this process's."""
    try:
        namespace = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _libc.setns(namespace, CLONE_NEWUSER) == 0
    finally:
        os.close(namespace)


def refusal(proc_sys: Path = PROC_SYS, user: int | None = None) -> tuple[str, str] | None:
    """Why this user (or, for root, the user with the id `user`) cannot have the namespaces of a run, and the remedy; None if a
    process has just made them."""
    ids: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    try:
        done = subprocess.run(ATTEMPT, capture_output=True, text=True, timeout=20, check=False, cwd="/", **ids)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem), "apt-get install util-linux"
    if done.returncode == 0:
        return None
    words = done.stderr.strip().splitlines()
    return _closed_switch(proc_sys) or ((words[-1] if words else "unshare: refused"), CONTAINER)


def _closed_switch(proc_sys: Path = PROC_SYS) -> tuple[str, str] | None:
    """The first of SWITCHES that is closed, and the remedy."""
    for name, (closed, remedy) in SWITCHES.items():
        with contextlib.suppress(OSError):
            if (proc_sys / name).read_text().strip() == closed:
                return f"{name.replace('/', '.')} = {closed}", f"as root: {remedy}"
    return None
