"""Files in memory that a guest boots from: an initramfs, a cpio archive of the kind "newc"
(Linux, Documentation/driver-api/early-userspace/buffer-format.rst).

The archive depends on nothing but paths, contents and permissions: files are sorted by path, owned by root, and dated 0.
"""

import importlib.util
import marshal
import mmap
import os
import stat
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

ALIGNMENT = 4  # of each header with its name, and of each content
UNCHECKED = struct.pack("<IQ", 0b01, 0)  # PEP 552: flags and hash of a .pyc that is never compared with its source
PYC_HEADER_BYTES = 16
DOCUMENTS = (".md", ".pyi", ".rst")  # read by no program


class Files:
    """Files of a guest, by their paths in it. `add` takes one of this machine's, at the same path."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes | Path]] = {}  # path: mode, content

    def paths(self) -> list[str]:
        """All paths, sorted: each folder before its content."""
        return sorted(self._entries)

    def put(self, path: str | Path, content: bytes, mode: int = 0o644) -> None:
        """A file with this content."""
        self.folder(Path(path).parent)
        self._entries[str(path)] = (stat.S_IFREG | mode, content)

    def folder(self, path: str | Path) -> None:
        """A folder, with all above it."""
        for folder in (*reversed(Path(path).parents), Path(path)):
            self._entries.setdefault(str(folder), (stat.S_IFDIR | 0o755, b""))

    def add(self, path: str | Path) -> Path:
        """This machine's file or folder (without its content). Symbolic links on the way stay links, and their targets are added.
        Returns the path without links. Raises OSError."""
        path = Path(os.path.normpath(path))
        for place in (*reversed(path.parents), path):
            if place.is_symlink():
                target = place.readlink()
                self.folder(place.parent)
                self._entries[str(place)] = (stat.S_IFLNK | 0o777, os.fsencode(target))
                return self.add(place.parent / target / path.relative_to(place))
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            self.folder(path)
        else:
            self.folder(path.parent)
            self._entries[str(path)] = (stat.S_IFREG | (0o755 if mode & 0o111 else 0o644), path)
        return path

    def add_tree(self, folder: Path, *, without: Iterable[str] = ()) -> list[Path]:
        """A folder with its content, except documents, and files and folders of the names `without`. Returns the files."""
        left_out = {"__pycache__", *without}
        files = []
        for place, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if name not in left_out]
            self.add(place)
            files += [self.add(Path(place, name)) for name in names if name not in left_out and not name.endswith(DOCUMENTS)]
        for file in files:
            if file.suffix == ".py":
                self.add_python(file)
        return files

    def add_python(self, source: Path) -> None:
        """A Python module, and its code where Python looks for it, valid whatever the date of the source."""
        source = self.add(source)
        self.put(importlib.util.cache_from_source(str(source)), compiled(source))

    def archive(self) -> mmap.mmap:
        """The archive, in a file without a name. Raises OSError."""
        with tempfile.TemporaryFile(prefix="manet-vm.") as file:
            self.write(file)
            file.flush()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def write(self, archive: IO[bytes]) -> None:
        """Append the archive. Raises OSError."""
        for number, path in enumerate(self.paths(), start=1):
            mode, content = self._entries[path]
            if path != "/":
                _write_entry(archive, number, mode, path[1:], content if isinstance(content, bytes) else content.read_bytes())
        _write_entry(archive, 0, 0, "TRAILER!!!", b"")


def _write_entry(archive: IO[bytes], number: int, mode: int, name: str, content: bytes) -> None:
    # magic, then 13 numbers: inode, mode, uid, gid, links, mtime, size, device of the file (2), device number (2), name, checksum
    encoded = os.fsencode(name) + b"\0"
    numbers = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
    header = b"070701" + b"".join(b"%08X" % value for value in numbers) + encoded
    for part in (header, content):
        archive.write(part + bytes(-len(part) % ALIGNMENT))


def compiled(source: Path) -> bytes:
    """The .pyc of a module, unchecked (PEP 552): of its cached one if that is valid, else compiled here."""
    status = source.stat()
    fields = (0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)  # checked by date and size
    expected = importlib.util.MAGIC_NUMBER + struct.pack("<III", *fields)
    try:
        cached = Path(importlib.util.cache_from_source(str(source))).read_bytes()
    except OSError:
        cached = b""
    if cached[:PYC_HEADER_BYTES] == expected:
        return importlib.util.MAGIC_NUMBER + UNCHECKED + cached[PYC_HEADER_BYTES:]
    try:
        code = compile(source.read_bytes(), str(source), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return b""  # a template or a file for another Python, which nobody imports
    return importlib.util.MAGIC_NUMBER + UNCHECKED + marshal.dumps(code)
