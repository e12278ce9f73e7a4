"""Reading a definition file (TOML), with the files that it is based on (`base`, formats/scenario.md).

Every error is one line: file, line, key, what is wrong, remedy.
"""

import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any

from keys.errors import UsageError, did_you_mean, shortened
from keys.toml_lines import Duplicate, TooMuch, duplicate, parse
from scenarios.document import Document, Place, dotted

MAX_FILE_BYTES = 1 << 20  # of a definition, as of a request; read within a second. The largest of the project has 6 kB
BASE = "base"
MAX_BASES = 8  # nested; more would be hard to understand
_PLACE = re.compile(r"line (\d+), column (\d+)\)")
_TWICE = ("Cannot ", "Duplicate ")  # tomllib's messages for a key or table that is there already begin so


def read(path: Path, name: str = "", text: str | None = None, within: Path | None = None) -> Document:
    """Read a file and merge it over its bases; messages call it `name` (default: the path). `text`: that of a file that is not
    written yet. `within`: as of Document; a base outside is refused. UsageError names file and line."""
    chain = [_read(path, name or str(path), text, within)]
    while BASE in chain[-1].tables:
        chain.append(_base_of(chain))
    return reduce(_over, reversed(chain))


def short_name(path: Path) -> str:
    """The path relative to the current folder, if that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)


def _base_of(chain: list[Document]) -> Document:
    """The base of the last file of the chain; UsageError if it is missing or part of the chain."""
    last = chain[-1]
    written = last.tables[BASE]
    if not isinstance(written, str):
        raise last.refusal((BASE,), "is of the wrong type; give the path of a file, in quotes")
    path = last.path.parent / written
    if not last.holds(path):
        raise last.refusal((BASE,), outside(last))
    if first([path]) is None:
        remedy = _similar(path, written, but=last.path) or "give its path, relative to this file"
        raise last.refusal((BASE,), f'there is no file "{shortened(written)}"; {remedy}')
    if path.resolve() in [document.path.resolve() for document in chain]:
        raise last.refusal((BASE,), f'"{shortened(written)}" is itself based on this file; remove one of the two keys')
    if len(chain) > MAX_BASES:
        raise last.refusal((BASE,), f"is one base more than the {MAX_BASES} that a file may have in a row; join some of them")
    return _read(path, short_name(path), within=last.within)


def outside(document: Document) -> str:
    """What is wrong with a key that names a file which may not be opened (Document.within)."""
    return f"names a file outside of {document.within}, which is not opened here; `manet run` checks it"


def _similar(path: Path, given: str, but: Path) -> str | None:
    """`did you mean "FILE"?`, in the folder of `given`, for a TOML file other than `but` beside the missing `path`."""
    with suppress(OSError, ValueError):  # as below; a path that ends in no name
        files = [file for file in path.parent.glob("*.toml") if file.name != but.name and file.is_file()]
        beside = sorted(str(Path(given).with_name(file.name)) for file in files)
        return did_you_mean(given, beside) or did_you_mean(f"{given}.toml", beside)
    return None


def first(paths: Iterable[Path], is_there: Callable[[Path], bool] = Path.is_file) -> Path | None:
    """The first of the paths at which there is a file, or what `is_there` asks for; None if there is none."""
    for path in paths:
        with suppress(OSError, ValueError):  # too long for a file, with a NUL in it, or in a folder that may not be read
            if is_there(path):
                return path
    return None


def _over(base: Document, own: Document) -> Document:
    """`own` merged over its base: tables are merged, any other key of both is `own`'s."""
    tables: dict[str, Any] = dict(base.tables)
    places = dict(base.places)
    for key, value in own.tables.items():
        if key == BASE:
            continue
        joined = isinstance(value, dict) and isinstance(tables.get(key), dict)
        replaced = [(key, inner) for inner in value] if joined else [(key,)]
        places = {path: place for path, place in places.items() if path[:1] not in replaced and path[:2] not in replaced}
        tables[key] = {**tables[key], **value} if joined else value
    return Document(own.path, own.name, tables, places | dict(own.places), {**own.texts, **base.texts}, within=own.within)


def _read(path: Path, name: str, unwritten: str | None = None, within: Path | None = None) -> Document:
    try:
        text = _text_of(path) if unwritten is None else unwritten
        tables, lines = parse(text)
    except TooMuch as problem:
        raise UsageError(f"{path}: line {problem.line}: {problem}") from None
    except OSError as problem:
        raise UsageError(f"{path}: cannot be read ({problem.strerror}); give the path of a TOML file") from None
    except RecursionError:
        raise UsageError(f"{path}: tables or lists are nested too deep; no key needs more than five levels") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as problem:
        raise _not_toml(path, text, str(problem)) from None
    lines[()] = 1  # of a key that is missing at the top
    places = {key: Place(path, name, line) for key, line in lines.items()}
    return Document(path, name, tables, places, {path: text}, within=within)


def _not_toml(path: Path, text: str, problem: str) -> UsageError:
    """The error of text that tomllib refuses. `problem` ends with `(at line 4, column 9)` or `(at end of document)`."""
    what, _, where = problem.partition(" (at ")
    place = _PLACE.match(where)
    line = int(place[1]) if place else max(1, len(text.splitlines()))
    if what.startswith(_TWICE):
        *above, last = text.split("\n")[:line] if place else [text]
        before = "\n".join([*above, last[: int(place[2]) - 1] if place else last])
        if double := duplicate(before):
            return _stands_twice(path, double)
    return UsageError(f"{path}: line {line}: not TOML: {what}; see https://toml.io for the syntax")


def _stands_twice(path: Path, double: Duplicate) -> UsageError:
    if double.is_table:
        text = f"the table [{shortened(dotted(double.path))}] stands twice, first in line {double.first}; make one table of both"
        return UsageError(f"{path}: line {double.line}: {text}")
    document = Document(path, str(path), {}, {double.path: Place(path, str(path), double.line)})
    return document.refusal(double.path, f"stands twice, first in line {double.first}; remove one of the two")


def _text_of(path: Path) -> str:
    """The text of a regular file of at most MAX_FILE_BYTES; a pipe or device might block or never end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path}: is no plain file; give the path of a TOML file")
    if status.st_size > MAX_FILE_BYTES:
        text = f"has {status.st_size} bytes, of at most {MAX_FILE_BYTES}; shorten it (a movement may be a file of its own)"
        raise UsageError(f"{path}: {text}")
    return path.read_text(encoding="utf-8")
