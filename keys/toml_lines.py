"""The lines of the keys of a TOML file, for error messages.

Reads TOML 1.0 in time proportional to the text and checks only the sizes of keys, tables and lists. Keys are paths such as
("scenario", "flows", 0, "from"); elements of arrays are numbered. Of text that is no TOML the lines are meaningless, and so
`locate` gives none or some of no use; `duplicate` is for text in which a key stands twice.
"""

import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]
MAX_PARTS = 32  # of a dotted key; no key needs more than five. `tomllib` takes time with the cube of their number
MAX_KEYS = 1000  # of a table; a scenario has some 60
MAX_ENTRIES = 30_000  # of a list; an experiment has at most 10000 cells
TOO_MANY_PARTS = f"a dotted key has more than {MAX_PARTS} parts; no key needs more than five"
TOO_MANY_KEYS = f"is one key more than the {MAX_KEYS} that a table may have; a scenario has some 60; remove what is no key"
MAX_WHOLE = 2**63  # whole numbers of TOML have 64 bits (https://toml.io/en/v1.0.0#integer)
TOO_LARGE = "a whole number is outside of 64 bits; TOML has no larger ones"
TOO_MANY_ENTRIES = f"a list has more than {MAX_ENTRIES} entries; shorten it"
_KEY_PART = re.compile(r'"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([A-Za-z0-9_-]+)')
_BLANK = {"": re.compile(r"(?:\s+|#[^\n]*)*"), ",": re.compile(r"(?:[\s,]+|#[^\n]*)*")}  # blanks and comments, and commas
_DIGITS = re.compile(r"[0-9_]{4301,}")
_PLAIN = re.compile(r"[^,\]}\n#]*")  # a number, a date, true or false
_ORDINARY = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^']+")}  # characters that neither end a string nor escape


class TooMuch(Exception):
    """A key of more than MAX_PARTS parts, a table of more than MAX_KEYS keys, a list of more than MAX_ENTRIES entries, or a whole
    number of more than 64 bits, which `tomllib` reads."""

    def __init__(self, text: str, line: int = 0) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True)
class Duplicate:
    """A key that stands a second time, or a table that is begun a second time, with both lines."""

    path: Path
    first: int
    line: int
    is_table: bool


def parse(text: str) -> tuple[dict[str, Any], dict[Path, int]]:
    """The tables of a TOML text, and the lines of its keys. Raises TooMuch, tomllib's TOMLDecodeError, RecursionError."""
    lines = locate(text)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # of more digits than Python reads
        digits = _DIGITS.search(text)
        raise TooMuch(TOO_LARGE, text.count("\n", 0, digits.start() if digits else 0) + 1) from None
    if (path := _too_large(tables)) is not None:
        raise TooMuch(TOO_LARGE, next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), 1))
    return tables, lines


def fits(number: int) -> bool:
    """Whether a whole number is one of TOML's, of 64 bits."""
    return -MAX_WHOLE <= number < MAX_WHOLE


def _too_large(tables: dict[str, Any]) -> Path | None:
    """The path of a number of more than 64 bits."""
    left: list[tuple[Path, Any]] = [((), tables)]
    while left:
        path, value = left.pop()
        if isinstance(value, dict | list):
            left.extend(((*path, key), inner) for key, inner in (value.items() if isinstance(value, dict) else enumerate(value)))
        elif isinstance(value, int) and not fits(value):
            return path
    return None


def locate(text: str) -> dict[Path, int]:
    """Maps every key, table and array element of `text` to its line, counted from 1; nothing if the text is no TOML. Raises
    TooMuch."""
    with suppress(IndexError, ValueError, RecursionError):
        return _Locator(text).run()
    return {}


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
        self.line, self.counted_to = 1, 0  # the line in which the text that was counted ends
        self.lines: dict[Path, int] = {}
        self.table: Path = ()
        self.keys: dict[Path, int] = {}  # the number of keys of a table
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
        self.line += self.text.count("\n", self.counted_to, self.at)
        self.counted_to = self.at
        return self.line

    def _skip_blank(self, also: str = "") -> None:
        blank = _BLANK[also].match(self.text, self.at)
        self.at = blank.end() if blank else self.at

    def _key(self) -> Path:
        parts: list[str] = []
        while True:
            self._skip_blank()
            match = _KEY_PART.match(self.text, self.at)
            if match is None:
                return tuple(parts)
            parts.append(next(group for group in match.groups() if group is not None))
            if len(parts) > MAX_PARTS:
                raise TooMuch(TOO_MANY_PARTS, self._line())
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
        if table not in self.lines:
            self._begin(table, line)
        self.table = table
        self.at += 2 if is_array else 1

    def _pair(self, table: Path) -> None:
        self._skip_blank()
        line = self._line()
        path = table + self._key()
        for length in range(len(table) + 1, len(path) + 1):
            if path[:length] in (self.lines if length == len(path) else self.values):
                self._twice(path[:length], line)
            if path[:length] not in self.lines:
                self._begin(path[:length], line)
        self.values.add(path)
        self.at = self.text.index("=", self.at) + 1
        self._skip_blank()
        self._value(path)

    def _begin(self, path: Path, line: int) -> None:
        """Note a new key or table, which counts as a key of the table around it."""
        self.lines[path] = line
        self.keys[path[:-1]] = number = self.keys.get(path[:-1], 0) + 1
        if number > MAX_KEYS and not isinstance(path[-1], int):
            raise TooMuch(TOO_MANY_KEYS, line)

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
            plain = _PLAIN.match(self.text, self.at)
            self.at = plain.end() if plain else self.at

    def _string(self) -> None:
        quote = self.text[self.at]
        quotes = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(quotes)
        while not self.text.startswith(quotes, self.at):
            if self.at >= len(self.text):
                raise IndexError
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
            begin = self.at
            self.lines.setdefault((*path, index), self._line())
            self._value((*path, index))
            if self.at == begin:
                raise ValueError  # no value stands here
            if index == MAX_ENTRIES:
                raise TooMuch(TOO_MANY_ENTRIES, self._line())
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
