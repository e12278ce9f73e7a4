"""The kernels that guests boot: listed in kernels.toml, unpacked from Debian's packages into a cache, never installed.

The cache is $XDG_CACHE_HOME/manet/guests (~/.cache/manet/guests), a few hundred MB:

    6.1.json                              which folder is "6.1" now; written last, so that a folder named there is whole
    linux-image-6.1.0-50-amd64_6.1.176-1/ the package's files, with modules.dep made

Files in the cache never change; `manet vm fetch` adds the newest version.
"""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import RunError, UsageError
from testbed.guests.archive import Archive, Package, mirror

LIST = Path(__file__).with_name("kernels.toml")
BUSYBOX = "busybox-static"  # unpacked, not installed: the package conflicts with Debian's plain busybox
SPARE_MB = 900  # for the largest: package, unpacked files, and half as much again


@dataclass(frozen=True)
class Kernel:
    """An entry of kernels.toml."""

    name: str
    text: str
    archive: str
    suite: str
    package: str


@dataclass(frozen=True)
class Unpacked:
    """A kernel in the cache; `release` is its `uname -r`."""

    name: str
    folder: Path
    release: str
    package: str
    version: str

    @property
    def image(self) -> Path:
        """The kernel image that QEMU boots."""
        return self.folder / "boot" / f"vmlinuz-{self.release}"


def known_kernels(file: Path = LIST) -> dict[str, Kernel]:
    """The kernels of kernels.toml, by name."""
    return {name: Kernel(name, **keys) for name, keys in tomllib.loads(file.read_text()).items()}


def find(name: str, file: Path = LIST) -> Kernel:
    """The kernel of this name. Raises UsageError."""
    kernels = known_kernels(file)
    if name not in kernels:
        raise UsageError(f"--kernel {name}: not known; there are {', '.join(kernels)}; {file} can be added to")
    return kernels[name]


def cache_folder() -> Path:
    """The folder of the cache ($XDG_CACHE_HOME, else ~/.cache)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "manet" / "guests"


class Cache:
    """The folder of kernels. `open_archive` opens an archive by name ("debian"); `say` gets a line of text for each download."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        open_archive: Callable[[str], Archive] | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.folder = folder or cache_folder()
        self.open_archive = open_archive or (lambda name: Archive(f"{mirror().removesuffix('/debian')}/{name}"))
        self.say = say

    def cached(self, kernel: Kernel) -> Unpacked | None:
        """The kernel if it is in the cache, else None; does not use the network."""
        try:
            entry = json.loads((self.folder / f"{kernel.name}.json").read_text())
            folder = self.folder / entry.pop("folder")
        except (OSError, ValueError, KeyError):
            return None
        unpacked = Unpacked(name=kernel.name, folder=folder, **entry)
        return unpacked if unpacked.image.exists() else None

    def get(self, kernel: Kernel, *, newest: bool = False) -> Unpacked:
        """The kernel, downloaded if it is not in the cache (with `newest`: if the archive has a newer one). Raises RunError."""
        with self._lock():
            unpacked = self.cached(kernel)
            if unpacked and not newest:
                return unpacked
            archive = self.open_archive(kernel.archive)
            package = archive.find(kernel.suite, kernel.package)
            folder = self._unpack(archive, package, _make_modules_dep)
            release = next(folder.glob("boot/vmlinuz-*")).name.removeprefix("vmlinuz-")
            entry = {"folder": folder.name, "release": release, "package": package.name, "version": package.version}
            new = self.folder / f".{kernel.name}.json.new"
            new.write_text(json.dumps(entry, indent=1) + "\n")
            new.rename(self.folder / f"{kernel.name}.json")
            return Unpacked(kernel.name, folder, release, package.name, package.version)

    def busybox(self, suite: str = "bookworm") -> Path:
        """A static busybox, which a guest's init script uses; downloaded if it is not in the cache. Raises RunError."""
        with self._lock():
            programs = sorted(self.folder.glob(f"{BUSYBOX}_*/**/bin/busybox"))
            if not programs:
                archive = self.open_archive("debian")
                folder = self._unpack(archive, archive.find(suite, BUSYBOX), lambda folder: None)
                programs = sorted(folder.glob("**/bin/busybox"))
            if not programs:
                raise RunError(f"{BUSYBOX}: no bin/busybox in the package; remove {self.folder}/{BUSYBOX}_* and try again")
            return programs[-1]

    def _unpack(self, archive: Archive, package: Package, finish: Callable[[Path], None]) -> Path:
        """The folder of the package's files, which appears complete or not at all."""
        folder = self.folder / f"{package.name}_{package.version.replace(':', '%3a')}"
        if folder.is_dir():
            return folder
        free_mb = shutil.disk_usage(self.folder).free // 1_000_000
        if free_mb < SPARE_MB:
            raise RunError(f"{self.folder}: only {free_mb} MB are free, and a kernel needs {SPARE_MB} MB; free some")
        deb = self.folder / f"{folder.name}.deb"
        self.say(f"fetching {package.name} {package.version} ({package.size / 1e6:.0f} MB) from {archive.base}")
        archive.fetch(package, deb)
        with tempfile.TemporaryDirectory(prefix="unpacking.", dir=self.folder) as temporary:
            inside = Path(temporary) / "files"
            _call(["dpkg-deb", "-x", str(deb), str(inside)], "dpkg")
            finish(inside)
            inside.chmod(0o755)
            inside.rename(folder)
        deb.unlink()
        return folder

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the cache's lock: a second process waits, then finds the work done. Removes what a killed one left."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in self.folder.glob("unpacking.*"):
                shutil.rmtree(left, ignore_errors=True)
            yield


def _make_modules_dep(folder: Path) -> None:
    """Debian's kernels come without modules.dep (an installation's postinst makes it), in /lib (12) or in /usr/lib (13)."""
    if not (folder / "lib").exists():
        (folder / "lib").symlink_to("usr/lib")
    elif not (folder / "usr" / "lib").exists():
        (folder / "usr").mkdir(exist_ok=True)
        (folder / "usr" / "lib").symlink_to("../lib")
    for modules in (folder / "lib" / "modules").iterdir():
        _call(["depmod", "-b", str(folder), modules.name], "kmod")


def _call(command: list[str], package: str) -> None:
    search = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    try:
        done = subprocess.run([shutil.which(command[0], path=search) or command[0], *command[1:]], capture_output=True, text=True)
    except FileNotFoundError:
        raise UsageError(f"{command[0]}: not found; ./setup.sh --guests installs it (package {package})") from None
    if done.returncode:
        lines = (done.stderr or "no output").strip().splitlines()
        raise RunError(f"{command[0]}: ended with status {done.returncode}: {lines[-1][:200]}")
