"""The lines of the keys of a TOML file, for error messages.

Reads text that `tomllib` has already accepted (TOML 1.0), hence checks nothing; it only tracks tables, keys and the
nesting of values. Keys are paths such as ("scenario", "flows", 0, "from"); elements of arrays are numbered.
"""

import re

Path = tuple[str | int, ...]
_KEY_PART = re.compile(r'"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([A-Za-z0-9_-]+)')
_ORDINARY = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^']+")}  # what neither ends a string nor escapes


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """The line of `path`, or of the nearest enclosing key; None without any."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def locate(text: str) -> dict[Path, int]:
    """Maps every key, table and array element of `text` to its line, counted from 1."""
    return _Locator(text).run()


class _Locator:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        self.table: Path = ()
        self.array_counts: dict[Path, int] = {}

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
            self.lines.setdefault(path[:length], line)
        self.at = self.text.index("=", self.at) + 1
        self._skip_blank()
        self._value(path)

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
            self.at += 1  # up to two quotes may stand just before the closing three

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
