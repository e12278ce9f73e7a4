"""Reading a definition file (TOML).

Every error is one line: file, line, key, what is wrong, remedy.
"""

import os
import stat
import tomllib
from pathlib import Path

from scenarios.document import Document, Place
from scenarios.errors import UsageError
from scenarios.toml_lines import locate

MAX_FILE_BYTES = 16 << 20  # of a definition; the largest of the project has 6 kB


def read(path: Path, name: str = "") -> Document:
    """The tables of the file; `name` is what messages call it (default: the path)."""
    try:
        text = _text_of(path)
        tables, lines = tomllib.loads(text), locate(text)
    except OSError as problem:
        raise UsageError(f"{path}: cannot be read ({problem.strerror}); give the path of a TOML file") from None
    except RecursionError:
        raise UsageError(f"{path}: tables or lists are nested too deep; no key needs more than five levels") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as problem:
        what, _, where = str(problem).partition(" (at ")
        line = where.split(",")[0].removesuffix(")")
        place = f"{line}: " if line.startswith("line") else f"line {max(1, len(text.splitlines()))}: "
        raise UsageError(f"{path}: {place}not TOML: {what}; see https://toml.io for the syntax") from None
    name = name or str(path)
    return Document(path, name, tables, {key: Place(path, name, line) for key, line in lines.items()})


def short_name(path: Path) -> str:
    """Relative to the current folder where that is shorter, as people write it."""
    return min(str(path), os.path.relpath(path), key=len)


def _text_of(path: Path) -> str:
    """Of a plain file of reasonable size: a pipe or device would be waited for, or never end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path}: is no plain file; give the path of a TOML file")
    if status.st_size > MAX_FILE_BYTES:
        raise UsageError(f"{path}: has {status.st_size >> 20} MiB, above {MAX_FILE_BYTES >> 20}; give the path of a TOML file")
    return path.read_text(encoding="utf-8")
