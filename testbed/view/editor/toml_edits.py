"""Changes of a TOML text by paths of keys; comments, order and the form of everything else stay.

tomlkit holds values that are changed in place: elements of lists, and values with a comment behind them. Whole keys and
`[[tables]]` are inserted and removed as lines, because tomlkit 0.15 puts a new key behind the comment of the table that follows,
and removes the comment above the next `[[table]]` together with a table. Each result is read again: its values are those of the
same change on plain values, or the change is refused, and the text is left as it was.

A path is as in `keys.toml_lines`: ("flows", 0, "from"). Functions raise UsageError, one line each.
"""

import copy
import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from keys.errors import UsageError
from keys.toml_lines import Path, TooMuch, locate, parse
from scenarios.document import dotted
from scenarios.toml_text import MAX_DEPTH, value_text

MAX_LINE = 100  # characters; a longer list has several lines
INDENT = "    "
MANY = 5  # elements
BARE = re.compile(r"[A-Za-z0-9_-]+")
BY_HAND = "the editor cannot change this form of it; change it in the text"
Values = dict[str, Any]


def values_of(text: str) -> Values:
    """The plain values of a text. Raises UsageError for one that is no TOML."""
    try:
        return parse(text)[0]
    except TooMuch as problem:
        raise UsageError(f"line {problem.line}: {problem}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise UsageError(f"the text is not TOML: {problem}; correct it first") from None


def for_json(value: Any) -> Any:
    """A value of TOML as JSON can carry it (RFC 8259): dates, times and numbers that are infinite or none become their text."""
    if isinstance(value, dict):
        return {key: for_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [for_json(inner) for inner in value]
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)


def at(values: Any, path: Path) -> Any:
    """The value at the end of a path; None if the path leads nowhere."""
    for part in path:
        if isinstance(values, dict) and isinstance(part, str):
            values = values.get(part)
        elif isinstance(values, list) and isinstance(part, int) and 0 <= part < len(values):
            values = values[part]
        else:
            return None
    return values


def matching(value: Any, pattern: Path, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The values that a pattern leads to, each with its path; `*` is each element of a list."""
    if not pattern:
        yield path, value
        return
    part, rest = pattern[0], pattern[1:]
    if part == "*" and isinstance(value, list):
        for index, inner in enumerate(value):
            yield from matching(inner, rest, (*path, index))
    elif (inner := at(value, (part,))) is not None:
        yield from matching(inner, rest, (*path, part))


def with_value(text: str, path: Path, value: Any, order: Sequence[str] = ()) -> str:
    """The text with the key set; tables on the way are made. A new key of a section comes after those before it in `order`."""
    wanted = values_of(text)
    _set(wanted, path, value)
    return _proved(_with_value(text, path, value, order), wanted, path)


def without(text: str, path: Path) -> str:
    """The text without the key or the element of a list. Tables and lists that become empty stay."""
    wanted = values_of(text)
    parent = at(wanted, path[:-1])
    if at(wanted, path) is None:
        raise UsageError(f'key "{dotted(path)}": is not in the text; nothing was removed')
    del parent[path[-1]]
    if isinstance(parent, list) and not parent and _Lines(text).is_tables(path[:-1]):
        del at(wanted, path[:-2])[path[-2]]  # the last [[table]] takes the list with it
    return _proved(_without(text, path), wanted, path)


def with_elements(text: str, path: Path, values: Sequence[Any], order: Sequence[str] = ()) -> str:
    """The text with further elements at the end of the list, which is made if there is none. A list without comments to which
    many come is written anew."""
    wanted = values_of(text)
    elements = at(wanted, path)
    if elements is None:
        return with_value(text, path, list(values), order)
    if not isinstance(elements, list):
        raise UsageError(f'key "{dotted(path)}": is no list; remove it first')
    before = len(elements)
    elements += copy.deepcopy(list(values))
    if _Lines(text).is_tables(path):
        for place, value in enumerate(values, start=before):
            text = _with_table(text, path, place - 1, value)
    elif (not before or len(values) >= MANY) and "#" not in _held(tomlkit.parse(text), path).as_string():
        text = _in_place(text, path, elements)
    else:
        for place, value in enumerate(values, start=before):
            text = _in_place(text, (*path, place), value)
    return _proved(text, wanted, path)


def pretty(value: Any, key: str, indent: str = "", width: int = MAX_LINE, depth: int = 0) -> str:
    """A value as this project writes it: a list of tables has a line for each, a long list several elements in a line."""
    if depth > MAX_DEPTH:
        raise UsageError(f'key "{key}": is nested too deep; no key needs more than five levels')
    if isinstance(value, dict):
        inner = (f"{_name(name)} = {pretty(part, f'{key}.{name}', indent, width, depth + 1)}" for name, part in value.items())
        return f"{{ {', '.join(inner)} }}" if value else "{}"
    if not isinstance(value, list) or not value:
        return value_text(value, key, depth)
    parts = [pretty(part, key, indent + INDENT, width, depth + 1) for part in value]
    line = f"[{', '.join(parts)}]"
    tables = all(isinstance(part, dict) for part in value) and depth < 2
    if len(line) + len(indent) <= width and not tables and "\n" not in line:
        return line
    rows: list[str] = []
    for part in parts:
        if rows and not tables and len(rows[-1]) + len(part) + 2 <= width - len(indent + INDENT):
            rows[-1] += f" {part},"
        else:
            rows.append(f"{part},")
    return "[\n" + "".join(f"{indent}{INDENT}{row}\n" for row in rows) + f"{indent}]"


def without_key(text: str, path: Path) -> str:
    """The text without the lines of a key, of a `[table]` or of one or all `[[tables]]`. Comments on lines of their own stay."""
    lines = _Lines(text)
    gone = {number for begin, end in lines.spans(path) for number in range(begin, end + 1)}
    return "".join(f"{line}\n" for number, line in enumerate(lines.lines, start=1) if number not in gone)


def _with_value(text: str, path: Path, value: Any, order: Sequence[str]) -> str:
    values, lines = values_of(text), _Lines(text)
    known = next(length for length in range(len(path) - 1, -1, -1) if at(values, path[:length]) is not None)
    for part in reversed(path[known + 1 :]):  # tables on the way are missing: they are made with the value in them
        value = {part: value}
    path = path[: known + 1]
    if at(values, path) is None and lines.is_section(path[:-1]):
        return _with_key(text, path, value, order)
    if lines.is_tables(path):
        rest = without_key(text, path)
        return rest if value == [] else _with_key(rest, path, value, order)
    return _of_inline(text, path, value) or _in_place(text, path, value)


def _without(text: str, path: Path) -> str:
    lines = _Lines(text)
    if lines.is_section(path[:-1]) or lines.is_tables(path[:-1]):
        return without_key(text, path)
    return _of_inline(text, path, None) or _in_place(text, path, None)


def _of_inline(text: str, path: Path, value: Any) -> str | None:
    """The text with the smallest inline table on one line that the path leads into written anew: such a table has no comments.
    None without one. Without a value the key is removed."""
    values, section = values_of(text), _Lines(text).section_of(path)
    for length in range(len(path) - 1, len(section), -1):
        table = at(values, path[:length])
        if isinstance(table, dict) and "\n" not in _held(tomlkit.parse(text), path[:length]).as_string():
            inner = copy.deepcopy(table)
            if value is None:
                del at(inner, path[length:-1])[path[-1]]
            else:
                _set(inner, path[length:], value)
            return _in_place(text, path[:length], inner)
    return None


def _with_key(text: str, path: Path, value: Any, order: Sequence[str]) -> str:
    """Insert the line of a new key into its section, after the keys before it in `order`."""
    lines, name, section = _Lines(text), str(path[-1]), path[:-1]
    new = f"{_name(name)} = {pretty(value, dotted(path))}\n"
    places = {key: place for place, key in enumerate(order)}

    def place_of(found: Path) -> int:
        return places.get(str(found[-1]), len(places))

    own = lines.keys_of(section)
    before = [found for found in own if place_of(found) <= place_of(path)]
    if before:
        anchor = max(before, key=lambda found: (place_of(found), lines.starts[found]))
        line = max(end for _begin, end in lines.spans(anchor))
    elif own:
        line = min(lines.starts[found] for found in own) - 1
    elif section:
        line = lines.starts[section]
    else:
        line = lines.above_tables()
        new += "\n" if line < len(lines.lines) else ""
    return lines.with_lines(line, new)


def _with_table(text: str, path: Path, last: int, value: Any) -> str:
    """Insert a `[[table]]` after the last one."""
    if not isinstance(value, dict):
        raise UsageError(f'key "{dotted(path)}": its elements are tables; give one')
    lines = _Lines(text)
    name = ".".join(_name(str(part)) for part in path if isinstance(part, str))
    rows = "".join(f"{_name(key)} = {pretty(part, f'{dotted(path)}.{key}')}\n" for key, part in value.items())
    return lines.with_lines(max(end for _begin, end in lines.spans((*path, last))), f"\n[[{name}]]\n{rows}")


def _in_place(text: str, path: Path, value: Any) -> str:
    """Give tomlkit's value at a path another value; None: remove it. An element behind the last one is appended."""
    try:
        document = tomlkit.parse(text)
        held, last = _held(document, path[:-1]), path[-1]
        if value is None:
            del held[last]
        elif isinstance(last, int) and last == len(held):
            held.append(_item(value, path))
        else:
            held[last] = _item(value, path)
        return tomlkit.dumps(document)
    except (TOMLKitError, KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError):
        raise UsageError(f'key "{dotted(path)}": {BY_HAND}') from None


def _held(held: Any, path: Path) -> Any:
    for part in path:
        held = held[part]
    return held


def _item(value: Any, path: Path) -> Any:
    inside_list = isinstance(path[-1], int)
    return tomlkit.value(pretty(value, dotted(path), INDENT if inside_list else "", depth=1 if inside_list else 0))


def _set(values: Any, path: Path, value: Any) -> None:
    """The same change on plain values."""
    for length, part in enumerate(path[:-1]):
        if isinstance(values, dict) and isinstance(part, str):
            values = values.setdefault(part, {})
        elif isinstance(values, list) and isinstance(part, int) and 0 <= part < len(values):
            values = values[part]
        else:
            raise UsageError(f'key "{dotted(path[: length + 1])}": there is no such element')
    last = path[-1]
    is_key = isinstance(values, dict) and isinstance(last, str)
    if not is_key and not (isinstance(values, list) and isinstance(last, int) and 0 <= last < len(values)):
        raise UsageError(f'key "{dotted(path)}": there is no table to hold it; set the whole key instead')
    values[last] = copy.deepcopy(value)


def _proved(text: str, wanted: Values, path: Path) -> str:
    try:
        right = tomllib.loads(text) == wanted
    except (tomllib.TOMLDecodeError, RecursionError):
        right = False
    if not right:
        raise UsageError(f'key "{dotted(path)}": {BY_HAND}')
    return text


def _name(key: str) -> str:
    return key if BARE.fullmatch(key) else value_text(key, key)


class _Lines:
    """The lines of a text, and which keys stand where. Lines count from 1."""

    def __init__(self, text: str) -> None:
        self.lines = text.removesuffix("\n").split("\n") if text else []
        try:
            self.starts = locate(text)
        except TooMuch as problem:
            raise UsageError(f"line {problem.line}: {problem}") from None

    def is_section(self, path: Path) -> bool:
        """Whether keys of this table stand on lines of their own: the top of the file, a `[table]` or one of `[[tables]]`."""
        return path == () or (self._is_header(path) and not self.is_tables(path))

    def is_tables(self, path: Path) -> bool:
        """Whether a list is written as `[[tables]]`."""
        return self._is_header((*path, 0))

    def section_of(self, path: Path) -> Path:
        """The section that a key is written in."""
        return next(path[:length] for length in range(len(path) - 1, -1, -1) if self.is_section(path[:length]))

    def keys_of(self, section: Path) -> list[Path]:
        """The keys of a section that stand on lines of their own."""
        length = len(section)
        found = [path for path in self.starts if len(path) == length + 1 and path[:length] == section]
        return [path for path in found if not self._is_header(path) and not self.is_tables(path)]

    def spans(self, path: Path) -> list[tuple[int, int]]:
        """First and last line of each part of a key and its value, without comments on lines of their own. Of a table: of its
        header and of each of its keys."""
        length = len(path)
        inside = sorted({line for found, line in self.starts.items() if found[:length] == path})
        every = sorted(set(self.starts.values()))
        spans = []
        for begin in inside:
            end = next((line for line in every if line > begin), len(self.lines) + 1) - 1
            while end > begin and (not self.lines[end - 1].strip() or self.lines[end - 1].lstrip().startswith("#")):
                end -= 1
            spans.append((begin, end))
        return spans

    def above_tables(self) -> int:
        """The number of lines above the first table and the comment that is directly above it."""
        headers = [self.starts[path] for path in self.starts if self._is_header(path)]
        line = min(headers, default=len(self.lines) + 1) - 1
        while headers and line > 0 and self.lines[line - 1].lstrip().startswith("#"):
            line -= 1
        return line

    def with_lines(self, above: int, new: str) -> str:
        """The text with new lines after the first `above` ones."""
        return "".join([*(f"{line}\n" for line in self.lines[:above]), new, *(f"{line}\n" for line in self.lines[above:])])

    def _is_header(self, path: Path) -> bool:
        """Whether a header begins this table. An element of a list may begin a line with a bracket, but its list does not."""
        begun = [path[:length] for length in range(1, len(path) + 1) if path[:length] in self.starts]
        return path in self.starts and all(self.lines[self.starts[each] - 1].lstrip().startswith("[") for each in begun)
