"""Standard output and standard error of `manet`: text that a terminal cannot obey, and errors of writing in one line.

Results, scenarios and file names may hold control characters: an escape sequence in a cell of a table could retitle the terminal
or rewrite its lines. They are shown as `\\x1b`, whatever verb prints them. The testbed's own sequences (the progress line) and
the bytes of another program (a guest's) go to `exact`.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from testbed.errors import RunError

if TYPE_CHECKING:
    from rich.console import Console

# C0 and C1 without tab and newline, DEL, the marks that reverse the order of characters, and halves of characters, which no
# encoding can print (a file name that is not UTF-8 holds them)
OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class OutputError(RunError):
    """Standard output cannot be written: the command's answer is lost."""


def plain(text: str) -> str:
    """The text with each character that a terminal would obey, or cannot show, as its number."""
    return OBEYED.sub(lambda match: f"\\x{ord(match[0]):02x}" if match[0] < "\u0100" else f"\\u{ord(match[0]):04x}", text)


def exact(stream: TextIO) -> TextIO:
    """The stream without the translation, for a file and for sequences of the testbed itself."""
    return cast(TextIO, stream.untranslated()) if isinstance(stream, Output) else stream


def console(width: int | None) -> "Console":
    """Standard output for rich's tables, without sequences and markup: the texts are data. `width`: None is the terminal's."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, force_terminal=False, width=width)


class Output:
    """A stream that shows what a terminal would obey. If it cannot be written it raises OutputError; a `quiet` one loses the
    text."""

    def __init__(self, raw: TextIO, *, quiet: bool = False, translate: Callable[[str], str] = plain) -> None:
        self._raw, self._quiet, self._translate = raw, quiet, translate

    def write(self, text: str) -> int:
        """Write the text; returns its length."""
        with self._one_line():
            self._raw.write(self._translate(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is held back."""
        with self._one_line():
            self._raw.flush()

    def untranslated(self) -> "Output":
        """This stream for texts that need no translation of control characters."""
        return Output(self._raw, quiet=self._quiet, translate=str)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as problem:
            if not self._quiet:
                raise OutputError(f"standard output: {problem.strerror}; give it another place") from None


@contextmanager
def guarded() -> Iterator[None]:
    """Standard output and standard error are an Output until the block ends."""
    _open_closed()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast(TextIO, Output(before[0])), cast(TextIO, Output(before[1], quiet=True))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def let_go(stream: TextIO | None = None) -> None:
    """Drop what a stream (default: standard output) holds unwritten: at the end of the process its writing would be tried, and
    fail, again."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def end_errors() -> None:
    """Drop what standard error cannot write, at the end of a process: Python would try again, and exit with status 120."""
    try:
        sys.stderr.flush()
    except OSError:
        let_go(sys.stderr)


def _open_closed() -> None:
    """Open each standard stream that the caller closed (`>&-`); else the next file would have its number, and the answer would go
    into it. Writing to this standard output fails (EBADF)."""
    streams = ((0, "stdin", os.O_RDONLY, "r"), (1, "stdout", os.O_RDONLY, "w"), (2, "stderr", os.O_WRONLY, "w"))
    for number, name, flags, mode in streams:
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
