"""File systems of a container: an overlay, so that its root file system stays unchanged, and the switch to it.

mount(2), open_tree(2), mount_setattr(2), pivot_root(2) by `ctypes`: mount(8) of Debian 12 knows no idmapped mounts, and after
pivot_root(2) no program can be started in a root file system that may have none.
"""

import ctypes
import errno
import os
from pathlib import Path

from testbed.errors import RunError
from testbed.host.namespace import MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_REC

MS_RDONLY, MS_REMOUNT, MS_BIND, MS_MOVE = 1, 1 << 5, 1 << 12, 1 << 13  # <linux/mount.h>
MNT_DETACH = 2  # <sys/mount.h>
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000  # <linux/fcntl.h>
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC = 1, os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH = 4
MOUNT_ATTR_IDMAP = 0x0010_0000
CHANGES_BYTES = 1 << 30  # of what the programs of a container may write; it is memory, and gone with the run
LINKS = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}  # of /dev
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    """struct mount_attr of <linux/mount.h>."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def mount(source: str | Path, target: Path, kind: str | None = None, flags: int = 0, options: str = "") -> None:
    """mount(2). Raises RunError."""
    type_ = None if kind is None else kind.encode()
    result = _libc.mount(os.fsencode(source), os.fsencode(target), type_, ctypes.c_ulong(flags), options.encode() or None)
    _checked(f"mount {target}", result)


def private() -> None:
    """Changes of mounts in this mount namespace stay in it."""
    mount("none", Path("/"), flags=MS_REC | MS_PRIVATE)


def overlay(rootfs: Path, folder: Path, owner: tuple[int, int] | None = None) -> Path:
    """Mount `rootfs` below `folder`, with changes in memory; returns the mount. `owner`: a user namespace's descriptor, and the
    host's id of its root: files appear in it with the ids that they have in `rootfs`. Raises RunError."""
    files, changes, root = folder / "files", folder / "changes", folder / "root"
    for path in (files, changes, root):
        path.mkdir(parents=True)
    if owner is None:
        mount(rootfs, files, flags=MS_BIND)
    else:
        _bind_idmapped(rootfs, files, owner[0])
    mount("tmpfs", changes, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=755,size={CHANGES_BYTES}")
    upper, work = changes / "upper", changes / "work"
    upper.mkdir()
    work.mkdir()
    if owner is not None:
        os.chown(upper, owner[1], owner[1])
    # device files of a rootfs would reach the machine's devices
    mount("overlay", root, "overlay", MS_NODEV, f"lowerdir={files},upperdir={upper},workdir={work}")
    return root


def _bind_idmapped(source: Path, target: Path, user_namespace: int) -> None:
    tree = _libc.open_tree(AT_FDCWD, os.fsencode(source), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)
    _checked(f"open_tree {source}", tree)
    try:
        attributes = _MountAttributes(MOUNT_ATTR_IDMAP, 0, 0, user_namespace)
        result = _libc.mount_setattr(tree, b"", AT_EMPTY_PATH, ctypes.byref(attributes), ctypes.sizeof(attributes))
        if result != 0 and ctypes.get_errno() == errno.EINVAL:
            text = "its file system does not show files under other ids (mount_setattr(2)), which sandbox = true needs"
            raise RunError(f"{source}: {text}; copy it to ext4, xfs or btrfs, or leave out sandbox")
        _checked(f"mount_setattr {source}", result)
        result = _libc.move_mount(tree, b"", AT_FDCWD, os.fsencode(target), MOVE_MOUNT_F_EMPTY_PATH)
        _checked(f"move_mount {target}", result)
    finally:
        os.close(tree)


def system_folders(root: Path, *, sandbox: bool) -> None:
    """Mount /proc and /dev of this process's namespaces, without `sandbox` also /sys and /dev/net/tun. RunError, OSError."""
    for name in ("proc", "dev", "sys", "tmp"):
        if (root / name).is_symlink():  # it would lead out of the root file system, which is not the root yet
            raise RunError(f"/{name} of the root file system is a symbolic link; make it a folder")
        (root / name).mkdir(exist_ok=True)
    mount("proc", root / "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    if not sandbox:
        mount("sysfs", root / "sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    dev = root / "dev"
    mount("tmpfs", dev, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k")
    for name in (*DEVICES, *(() if sandbox else ("net/tun",))):
        (dev / name).parent.mkdir(exist_ok=True)
        (dev / name).touch()
        mount(Path("/dev") / name, dev / name, flags=MS_BIND)
    for name, kind, options in (("pts", "devpts", "newinstance,ptmxmode=0666,mode=620"), ("shm", "tmpfs", "mode=1777")):
        (dev / name).mkdir()
        mount(kind, dev / name, kind, MS_NOSUID | MS_NOEXEC, options)
    for name, target in LINKS.items():
        (dev / name).symlink_to(target)


def change_root(root: Path) -> None:
    """Make `root`, a mount, the root of this mount namespace; the old one is gone from it. Raises RunError."""
    os.chdir(root)
    _checked(f"pivot_root {root}", _libc.pivot_root(b".", b"."))  # stacked, as pivot_root(2) describes
    _checked("umount of the old root", _libc.umount2(b".", MNT_DETACH))
    os.chdir("/")


def move(source: Path, target: Path) -> None:
    """Take a mount to another folder, in this mount namespace. Raises RunError."""
    mount(source, target, flags=MS_MOVE)


def detach(folder: Path) -> None:
    """Take all mounts away from a folder, in this mount namespace; one that is locked stays (mount_namespaces(7))."""
    while _libc.umount2(os.fsencode(folder), MNT_DETACH) == 0:
        pass


def read_only(folder: Path) -> None:
    """Make a mount read-only in this mount namespace; its sockets stay usable. Raises RunError."""
    mount("none", folder, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def _checked(call: str, result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise RunError(f"{call}: {os.strerror(code)}; run as root, outside of a restricted container")
