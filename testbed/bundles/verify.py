"""Checking a bundle against its own manifest, also one from a hostile source.

The archive has the form that `manet bundle` writes: members one after another from the first byte on, their list, and the end.
Another program may unpack other bytes, or obey a header that contradicts the list, so both are unsafe.

Nothing is unpacked to the disk. Members are read in chunks, none beyond the size that the manifest states, and the work is
bounded by the size of the archive: deflate expands at most 1032 times (zlib's technical details), and members may not overlap.
The manifest is not signed: whoever changes the archive can change it too. `seal`, the SHA-256 of the manifest, identifies the
contents; compare it with one from a trusted place.
"""

import hashlib
import io
import json
import os
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from record.errors import PlaceError
from record.files import plain_file
from testbed.bundles.archive import CHUNK, FORMAT, MANIFEST
from testbed.errors import RunError, UsageError, shortened

MAX_MEMBERS = 1_000_000
MAX_DIRECTORY_BYTES = 64 << 20  # of the archive's list of members; this and the manifest are held in memory
MAX_MANIFEST_BYTES = 64 << 20  # some 400 000 files
MAX_RATIO = 1032
REMEDY = "give an archive that `manet bundle` has written"
BROKEN = (
    zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, UnicodeError, struct.error, ValueError,
    OverflowError, KeyError, IndexError,
)  # fmt: skip


@dataclass
class Verified:
    """Names of the members that differ from the manifest, and the reason why the archive as a whole is unsafe."""

    files: int = 0
    seal: str = ""
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    unsafe: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the archive is as it was bundled."""
        return not (self.changed or self.missing or self.added or self.unsafe)


def verify(path: Path) -> Verified:
    """Compare every member with the manifest. RunError for a file that is no bundle at all, UsageError if it cannot be opened."""
    try:
        with plain_file(path, links=True) as file:
            _check_directory(file)
            with zipfile.ZipFile(file) as archive:
                verified = _verified(archive, os.fstat(file.fileno()).st_size)
                if not verified.unsafe and (why := _stray(file, archive.infolist())) is not None:
                    verified.unsafe.append(why)
                return verified
    except PlaceError as problem:
        raise UsageError(f"{path}: is {problem.kind} and no plain file; {REMEDY}") from None
    except (*BROKEN, OSError, MemoryError) as problem:
        if isinstance(problem, OSError) and problem.filename is not None:  # without: it leads to a place that no file has
            raise UsageError(f"{path}: {problem.strerror}; {REMEDY}") from None
        why = str(problem) or type(problem).__name__
        raise RunError(f"{path}: is no bundle, or is cut short ({shortened(_plain(why))}); {REMEDY}") from None


def _verified(archive: zipfile.ZipFile, archive_bytes: int) -> Verified:
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise ValueError(f"{len(members)} members, more than {MAX_MEMBERS}")
    if sum(member.compress_size for member in members) > archive_bytes:
        raise ValueError("its members overlap")
    content = _read_manifest(archive)
    files = _files_of(content)
    by_name: dict[str, zipfile.ZipInfo] = {}
    state = Verified(files=len(files), seal=hashlib.sha256(content).hexdigest())
    for member in members:
        if (why := _danger(member)) is not None:
            state.unsafe.append(f"{_plain(member.filename)}: {why}")
        elif member.filename in by_name:
            state.unsafe.append(f"{_plain(member.filename)}: is there twice")
        by_name.setdefault(member.filename, member)
    state.missing = sorted(_plain(name) for name in files.keys() - by_name.keys())
    state.added = sorted(_plain(name) for name in by_name.keys() - files.keys() - {MANIFEST})
    state.changed = [_plain(name) for name in sorted(files) if name in by_name and not _same(archive, by_name[name], files[name])]
    return state


def _check_directory(file: Any) -> None:
    """Refuse a list of members that would fill the memory. ZipFile's own function: a second reader of this record could be shown
    another one."""
    record = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    if not record:
        raise zipfile.BadZipFile("not a zip file")
    if record[zipfile._ECD_SIZE] > MAX_DIRECTORY_BYTES:  # type: ignore[attr-defined]
        raise ValueError("its list of members is too long")
    file.seek(0)


def _read_manifest(archive: zipfile.ZipFile) -> bytes:
    try:
        info = archive.getinfo(MANIFEST)
    except KeyError:
        raise ValueError(f"no {MANIFEST} in it") from None
    _check_compression(info)
    with archive.open(info) as file:
        content = file.read(MAX_MANIFEST_BYTES + 1)
        if len(content) > MAX_MANIFEST_BYTES:
            raise ValueError(f"{MANIFEST} is too large")
        if not _is_whole(file, info):
            raise ValueError(f"{MANIFEST} holds other data behind its text")
    return content


def _files_of(content: bytes) -> dict[str, dict[str, Any]]:
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or not isinstance(manifest.get("files"), dict):
        raise ValueError(f'{MANIFEST} is no "{FORMAT}"')
    for entry in manifest["files"].values():
        if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str) or type(entry.get("bytes")) is not int:
            raise ValueError(f"{MANIFEST} lists a file without size and sha256")
    return manifest["files"]


def _danger(member: zipfile.ZipInfo) -> str | None:
    """The reason not to unpack this member; None for a harmless one."""
    name, parts = member.orig_filename, PurePosixPath(member.filename).parts
    kind = stat.S_IFMT(member.external_attr >> 16)
    if not name or name.startswith(("/", "\\")) or ".." in parts or "\\" in name or name[1:2] == ":":
        return "leads out of the folder that it is unpacked to"
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        return "has control characters in its name"
    if name.endswith("/") or kind not in (0, stat.S_IFREG):
        return "is no plain file"
    if member.file_size > MAX_RATIO * member.compress_size + CHUNK:
        return "states a size that its data cannot have"
    return None


def _same(archive: zipfile.ZipFile, member: zipfile.ZipInfo, entry: dict[str, Any]) -> bool:
    """Whether a member has the size and hash of its entry; one that cannot be read has not."""
    if member.file_size != entry["bytes"]:
        return False
    digest, left = hashlib.sha256(), entry["bytes"]
    try:
        _check_compression(member)
        with archive.open(member) as file:
            while left >= 0 and (chunk := file.read(min(CHUNK, left + 1))):
                digest.update(chunk)
                left -= len(chunk)
            return left == 0 and digest.hexdigest() == entry["sha256"] and _is_whole(file, member)
    except (*BROKEN, OSError):
        return False


def _is_whole(file: Any, member: zipfile.ZipInfo) -> bool:
    """Whether the data of a member that was read to its end fill it: no byte follows them inside it."""
    inflate = file._decompressor
    if inflate is None:
        return member.compress_size == member.file_size
    if not inflate.eof:  # the mark of the end is still to come
        inflate.decompress(inflate.unconsumed_tail + file._read2(CHUNK), 1)
    return inflate.eof and not inflate.unused_data and file._compress_left <= 0


def _stray(file: BinaryIO, members: list[zipfile.ZipInfo]) -> str | None:
    """The first place at which the archive is not what ZipFile writes for these members; None for one without such a place."""
    offset, same = 0, []
    for member in members:
        same.append(_as_written(member, offset))
        header = same[-1].FileHeader(member.file_size * 1.05 > zipfile.ZIP64_LIMIT)  # the bound of ZipFile.open
        file.seek(offset)
        if member.header_offset != offset or file.read(len(header)) != header:
            return f"{_plain(member.filename)}: other bytes before it, or a header that contradicts the list of members"
        offset += len(header) + member.compress_size
    end = _Behind(offset)
    with zipfile.ZipFile(end, "w") as archive:
        archive.filelist.extend(same)
    expected = end.getvalue()
    file.seek(offset)
    return None if file.read(len(expected) + 1) == expected else "the archive: other bytes behind its last member"


def _as_written(member: zipfile.ZipInfo, offset: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(member.filename, member.date_time)
    info.create_system, info.header_offset = 3, offset
    for name in ("external_attr", "compress_type", "CRC", "compress_size", "file_size"):
        setattr(info, name, getattr(member, name))
    return info


class _Behind(io.BytesIO):
    """The part of a file behind its first `begin` bytes."""

    def __init__(self, begin: int) -> None:
        super().__init__()
        self._begin = begin

    def tell(self) -> int:
        return self._begin + super().tell()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._begin + super().seek(offset - (self._begin if whence == 0 else 0), whence)


def _check_compression(member: zipfile.ZipInfo) -> None:
    """Refuse the methods that expand further, and that we never write."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotImplementedError("compressed by another method than deflate")


def _plain(name: str) -> str:
    """A name from the archive without the characters that a terminal would obey."""
    return shortened("".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in name))
