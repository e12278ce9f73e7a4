"""Calls inside a network namespace without starting a program there: setns(2) in a short-lived thread.

setns(2) and unshare(2) move only the calling thread. The thread enters the namespace, does its work (writes `/proc/sys/net`,
opens a netlink socket, starts a child, which is born in that namespace) and ends. The process itself stays. Python 3.11 has
neither call, so `ctypes` makes them.
"""

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from testbed.errors import RunError
from testbed.host import kernel_files

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x0002_0000, 0x2000_0000, 0x4000_0000  # <linux/sched.h>
CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x0200_0000, 0x0400_0000, 0x0800_0000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18  # <linux/mount.h>
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

T = TypeVar("T")
_libc = ctypes.CDLL(None, use_errno=True)


def within(netns: str | Path, action: Callable[[], T], *, pids: int | None = None) -> T:
    """Call `action` in a thread that has entered the network namespace `netns`; return its result or raise its exception.
    `pids`: a descriptor of the pid namespace of the children that it starts."""

    def enter() -> None:
        _setns(netns)
        if pids is not None:
            children_in(pids)

    return _in_thread(enter, action, f"in {netns}")


def within_each(calls: Sequence[tuple[str | Path, Callable[[], T]]]) -> list[T]:
    """The results of the calls, pairs of a network namespace and an action: as `within` one after the other, in a single thread,
    whose start takes longer than most actions. The first exception ends them."""

    def act_in_each() -> list[T]:
        results = []
        for netns, action in calls:
            _setns(netns)
            results.append(action())
        return results

    return _in_thread(lambda: None, act_in_each, "in each namespace")


def within_new_pids(netns: str | Path, action: Callable[[], T]) -> T:
    """Like `within`; the first child that `action` starts is pid 1 of a new pid namespace. Raises RunError."""

    def enter() -> None:
        _setns(netns)
        unshare(CLONE_NEWPID)

    return _in_thread(enter, action, f"in {netns}")


def unshare(flags: int) -> None:
    """Give the calling thread new namespaces. Raises RunError."""
    _checked("unshare", _libc.unshare(flags))


def within_new(action: Callable[[], T], *, netns: str | Path | None = None, prepare: Callable[[], None] = lambda: None) -> T:
    """Call `action` in a thread that has a new network namespace (or is in `netns`), and a new mount namespace in which /sys
    shows its devices, as `mnexec -n` of Mininet. Both last as long as a child that `action` starts. `prepare` is called in the
    thread before. Raises RunError."""

    def enter() -> None:
        if netns is not None:
            _setns(netns)
        _unshare(CLONE_NEWNS if netns is not None else CLONE_NEWNS | CLONE_NEWNET)
        prepare()

    return _in_thread(enter, action, "in new namespaces")


def children_in(pids: int) -> None:
    """Children that the calling thread starts from now on are in this pid namespace (a descriptor). Raises RunError."""
    _checked("setns of a pid namespace", _libc.setns(pids, CLONE_NEWPID))


def mount_tmpfs(where: str | Path, size_bytes: int | None = None) -> None:
    """Mount an empty tmpfs(5) over the folder `where`, in this mount namespace only. The default size is half of the memory."""
    options = b"mode=755" if size_bytes is None else f"mode=755,size={size_bytes}".encode()
    if _libc.mount(b"tmpfs", os.fsencode(where), b"tmpfs", MS_NOSUID | MS_NODEV, options) != 0:
        code = ctypes.get_errno()
        raise RunError(f"mount -t tmpfs {where}: {os.strerror(code)}; run as root, outside of a restricted container")


def unshare_run() -> int:
    """fork(2) into new mount, network and pid namespaces, as `unshare --mount --net --pid --fork --kill-child --mount-proc
    --propagation private`: the child, pid 1 in them, dies with this process. This process keeps its own pid namespace."""
    _checked("unshare", _libc.unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID))
    _checked("mount /", _libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    child = os.fork()
    if child == 0:
        _checked("prctl", _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        _checked("mount /proc", _libc.mount(b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None))
    return child


def write_sysctls(values: Mapping[str, object], *, absent_is_error: bool = True) -> None:
    """Set sysctls (dotted names) of the calling thread's network namespace. Raises RunError for one that the kernel refuses."""
    for name, value in values.items():
        try:
            Path(_sysctl_file(name)).write_text(f"{value}\n")
        except FileNotFoundError:
            if absent_is_error:
                raise RunError(f"sysctl {name}: this kernel does not have it; use a newer one") from None
        except OSError as problem:
            raise RunError(f"sysctl {name} = {value}: {problem.strerror}; this kernel refuses it") from None


def read_sysctls(names: list[str]) -> dict[str, str]:
    """The sysctls of the calling thread's network namespace. Those that this kernel lacks are left out."""
    values = {}
    for name in names:
        try:
            values[name] = b" ".join(kernel_files.read(_sysctl_file(name)).split()).decode()
        except OSError:
            continue
    return values


def _sysctl_file(name: str) -> str:
    """The file of a sysctl: `net.ipv4.ip_forward` is `/proc/sys/net/ipv4/ip_forward`."""
    return f"/proc/sys/{name.replace('.', '/')}"


def _in_thread(enter: Callable[[], None], action: Callable[[], T], name: str) -> T:
    """The result of `action` in a thread that `enter` has moved, or its exception."""
    outcome: list[Any] = []

    def enter_and_act() -> None:
        try:
            enter()
            outcome.append((action(), None))
        except BaseException as problem:  # handed to the caller's thread whole
            outcome.append((None, problem))

    thread = threading.Thread(target=enter_and_act, name=name)
    thread.start()
    thread.join()
    result, problem = outcome[0]
    if problem is not None:
        raise problem
    return result


def _unshare(flags: int) -> None:
    what = "could not make a namespace"
    _checked(what, _libc.unshare(flags))
    _checked(what, _libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    _checked(what, _libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None))


def _checked(call: str, result: int) -> None:
    if result != 0:
        raise RunError(f"{call}: {os.strerror(ctypes.get_errno())}; run as root, outside of a restricted container")


def _setns(netns: str | Path) -> None:
    try:
        descriptor = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise RunError(f"{netns}: {problem.strerror}; the station that owned this namespace has ended") from None
    try:
        if _libc.setns(descriptor, CLONE_NEWNET) != 0:
            code = ctypes.get_errno()
            raise RunError(f"setns {netns}: {os.strerror(code)}; run as root")
    finally:
        os.close(descriptor)
