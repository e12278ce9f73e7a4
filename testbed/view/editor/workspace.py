"""The files of an editor: one folder, in which it reads and writes scenarios, drafts and pictures. Nothing outside of it.

A name is a path of plain words below the folder, and no link is followed on the way. A file is written whole beside the old one,
flushed, and renamed (record/files.py): a full disk or a crash leaves the old file. Who may write into the folder itself could put
a link there between check and write; such a user has the files anyway.
"""

import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from record.errors import RecordError
from record.files import atomic_file, plain_file
from scenarios.toml_file import MAX_FILE_BYTES
from testbed.errors import UsageError, shortened

PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
ENDING = ".toml"
PICTURES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}
MAX_PICTURE_BYTES = 20 << 20
MAX_LISTED = 500
DRAFT = ".draft"  # of FILE.toml: .FILE.toml.draft beside it


class Workspace:
    """The files below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def scenario(self, name: object) -> str:
        """The checked name of a scenario's file. Raises UsageError."""
        return self._name(name, (ENDING,), f"a file name that ends in {ENDING}")

    def picture(self, name: object) -> str:
        """The checked name of a picture. Raises UsageError."""
        return self._name(name, tuple(PICTURES), f"a picture ({', '.join(PICTURES)})")

    def path(self, name: str) -> Path:
        """The path of a checked name. Raises UsageError if a folder on the way is missing or a link, or the file is no plain
        file."""
        held = self.folder
        for part in Path(name).parent.parts:
            held /= part
            if not held.is_dir() or held.is_symlink():
                raise UsageError(f"{name}: there is no folder {held.name} in {self.folder}, or it is a link; make it first")
        path = self.folder / name
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(path.lstat().st_mode):
                raise UsageError(f"{name}: is a link or no plain file, which the editor does not replace; give another name")
        return path

    def read(self, name: str) -> str | None:
        """The text of a file; None if there is none. Raises UsageError."""
        content = self.read_bytes(name, MAX_FILE_BYTES)
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError:
            raise UsageError(f"{name}: is not UTF-8 text; save it as UTF-8") from None

    def read_bytes(self, name: str, limit: int) -> bytes | None:
        """The content of a file of at most `limit` bytes; None if there is none. Raises UsageError."""
        path = self.path(name)
        try:
            with plain_file(path, beneath=self.folder) as file:
                content = file.read(limit + 1)
        except FileNotFoundError:
            return None
        except (OSError, RecordError) as problem:
            raise UsageError(f"{name}: cannot be read ({getattr(problem, 'strerror', None) or problem})") from None
        if len(content) > limit:
            raise UsageError(f"{name}: has more than {limit} bytes")
        return content

    def write(self, name: str, text: str) -> None:
        """Write a file whole. It keeps mode and owner; a new one has the folder's owner. Raises UsageError, and leaves the old
        file then."""
        path = self.path(name)
        try:
            before = path.lstat() if path.exists() else None
            owner = before or path.parent.lstat()
            with atomic_file(path) as file:
                file.write(text)
                if before is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
                if os.geteuid() == 0:
                    os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        except RecordError as problem:
            raise UsageError(f"{name}: was not written: {problem}") from None
        except OSError as problem:
            full = problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            remedy = "make room" if full else "make its folder writable, or give another name"
            raise UsageError(f"{name}: was not written ({problem.strerror}); {remedy} and try again") from None

    def remove(self, name: str) -> None:
        """Remove a file, if there is one. Raises UsageError."""
        try:
            self.path(name).unlink(missing_ok=True)
        except OSError as problem:
            raise UsageError(f"{name}: was not removed ({problem.strerror})") from None

    def draft_of(self, name: str) -> str:
        """The name of the draft beside a scenario's file."""
        path = Path(name)
        return str(path.with_name(f".{path.name}{DRAFT}"))

    def listed(self, endings: tuple[str, ...] = (ENDING,)) -> list[str]:
        """The names of the plain files with these endings in the folder itself."""
        found = []
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.lower().endswith(endings) and PART.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    found.append(entry.name)
        return sorted(found)[:MAX_LISTED]

    def free_name(self, stem: str = "scenario") -> str:
        """A name of no file: `scenario.toml`, `scenario-2.toml`, ... A name that only has a draft is free."""
        number = 1
        while (self.folder / (name := f"{stem}{f'-{number}' if number > 1 else ''}{ENDING}")).exists():
            number += 1
        return name

    def _name(self, name: object, endings: tuple[str, ...], wanted: str) -> str:
        text = name.strip() if isinstance(name, str) else ""
        parts = text.split("/")
        if not text.lower().endswith(endings) or len(parts) > 8 or not all(PART.fullmatch(part) for part in parts):
            rule = "below the editor's folder, of letters, digits, '.', '_' and '-'"
            raise UsageError(f"{shortened(str(name), 60)}: is not {wanted} {rule}; give another name")
        return text
