"""Printed rows that fit the terminal: a name, and text to its right, which continues in the column of its first word."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable

NO_BREAK = "\u00a0"  # in a text: a space at which it is not wrapped; printed as a space
MIN_TEXT = 20  # minimum number of columns of the text to the right of a name, on any terminal
UNLIMITED = 1 << 20  # columns


def terminal_width() -> int:
    """Columns of a line: COLUMNS, else the terminal's. Without either (a pipe, a file) a row is one line, however long."""
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return UNLIMITED


def hanging(name: str, text: str) -> str:
    """`name` (with its padding) and the text behind it, which is wrapped below itself. Words are never cut."""
    room = max(terminal_width() - len(name), MIN_TEXT)
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return (name + f"\n{' ' * len(name)}".join(lines)).rstrip().replace(NO_BREAK, " ")


def folded(line: str) -> str:
    """A line without columns; what does not fit continues four columns farther in."""
    indent = " " * (len(line) - len(line.lstrip()))
    wrapped = textwrap.fill(
        line.strip(), terminal_width(), initial_indent=indent, subsequent_indent=indent + "    ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return wrapped.replace(NO_BREAK, " ")


def rows(entries: Iterable[tuple[str, str]], indent: str = "  ") -> list[str]:
    """One row an entry, its names in a column as wide as the longest."""
    entries = list(entries)
    longest = max((len(name) for name, _text in entries), default=0)
    return [hanging(f"{indent}{name:{longest}}  ", text) for name, text in entries]
