"""The lines of the keys of a TOML file, for error messages.

Reads text that `tomllib` has already accepted (TOML 1.0), hence checks nothing; it only tracks tables, keys and the
nesting of values. Keys are paths such as ("scenario", "flows", 0, "from"); elements of arrays are numbered. The exception is
`duplicate`, for text that `tomllib` refused since a key stands twice in it.
"""

import re
from contextlib import suppress
from dataclasses import dataclass

Path = tuple[str | int, ...]
_KEY_PART = re.compile(r'"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([A-Za-z0-9_-]+)')
_ORDINARY = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^']+")}  # characters that neither end a string nor escape


@dataclass(frozen=True)
class Duplicate:
    """A key that stands a second time, or a table that is begun a second time, with both lines."""

    path: Path
    first: int
    line: int
    is_table: bool


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """The line of `path`, or of the nearest enclosing key; None without any."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def locate(text: str) -> dict[Path, int]:
    """Maps every key, table and array element of `text` to its line, counted from 1."""
    return _Locator(text).run()


def duplicate(text: str) -> Duplicate | None:
    """The first key or table that stands twice in `text`, which must be valid otherwise and may end anywhere."""
    locator = _Locator(text)
    with suppress(IndexError, ValueError, RecursionError):  # the text ends within a value, or nests too deep
        locator.run()
    return locator.duplicate


class _Locator:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        self.table: Path = ()
        self.array_counts: dict[Path, int] = {}
        self.values: set[Path] = set()
        self.duplicate: Duplicate | None = None

    def run(self) -> dict[Path, int]:
        self._skip_blank()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                self._header()
            else:
                self._pair(self.table)
            self._skip_blank()
        return self.lines

    def _line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1

    def _skip_blank(self, also: str = "") -> None:
        while self.at < len(self.text):
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text[self.at].isspace() or self.text[self.at] in also:
                self.at += 1
            else:
                return

    def _key(self) -> Path:
        parts: list[str] = []
        while True:
            self._skip_blank()
            match = _KEY_PART.match(self.text, self.at)
            if match is None:
                return tuple(parts)
            parts.append(next(group for group in match.groups() if group is not None))
            self.at = match.end()
            self._skip_blank()
            if not self.text.startswith(".", self.at):
                return tuple(parts)
            self.at += 1

    def _header(self) -> None:
        line = self._line()
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        table: Path = ()
        key = self._key()
        for index, part in enumerate(key):
            table += (part,)
            last = index == len(key) - 1
            again = last and table in self.lines and not (is_array and table in self.array_counts)
            if again or table in self.values:
                self._twice(table, line, is_table=table not in self.values)
            if table in self.array_counts and not (last and is_array):
                table += (self.array_counts[table] - 1,)
        if is_array:
            self.lines.setdefault(table, line)
            count = self.array_counts.get(table, 0)
            self.array_counts[table] = count + 1
            table += (count,)
        self.lines.setdefault(table, line)
        self.table = table
        self.at += 2 if is_array else 1

    def _pair(self, table: Path) -> None:
        self._skip_blank()
        line = self._line()
        path = table + self._key()
        for length in range(len(table) + 1, len(path) + 1):
            if path[:length] in (self.lines if length == len(path) else self.values):
                self._twice(path[:length], line)
            self.lines.setdefault(path[:length], line)
        self.values.add(path)
        self.at = self.text.index("=", self.at) + 1
        self._skip_blank()
        self._value(path)

    def _twice(self, path: Path, line: int, is_table: bool = False) -> None:
        self.duplicate = self.duplicate or Duplicate(path, self.lines[path], line, is_table)

    def _value(self, path: Path) -> None:
        opening = self.text[self.at]
        if opening in "\"'":
            self._string()
        elif opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline_table(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}\n#":
                self.at += 1

    def _string(self) -> None:
        quote = self.text[self.at]
        quotes = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(quotes)
        while not self.text.startswith(quotes, self.at):
            ordinary = _ORDINARY[quote].match(self.text, self.at)
            if ordinary:
                self.at = ordinary.end()
            else:
                self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(quotes)
        while len(quotes) == 3 and self.text.startswith(quote, self.at):
            self.at += 1  # up to two quotes may precede the closing three

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        self._skip_blank(also=",")
        while self.text[self.at] != "]":
            self.lines.setdefault((*path, index), self._line())
            self._value((*path, index))
            index += 1
            self._skip_blank(also=",")
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        self._skip_blank(also=",")
        while self.text[self.at] != "}":
            self._pair(path)
            self._skip_blank(also=",")
        self.at += 1
