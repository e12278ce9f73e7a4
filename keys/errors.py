"""Errors of a wrong definition, and parts of their messages.

Each message is one line that names the file, key or command, and the remedy.
"""

import difflib
from collections.abc import Iterable

MAX_VALUE_LENGTH = 80  # at most so many characters of the user's text in an error


def shortened(text: str, max_length: int = MAX_VALUE_LENGTH) -> str:
    """The text in one line: control characters escaped, a long text cut with its length added."""
    plain = printable(text[: max_length + 1])
    return plain if len(text) <= max_length else f"{plain[:max_length]}... ({len(text)} characters)"


def printable(text: str) -> str:
    """The text with control characters escaped: none of the user's reaches a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def did_you_mean(given: str, known: Iterable[str]) -> str | None:
    """`did you mean "x"?`; None if nothing is similar, or the text is too long for a name (difflib would be slow)."""
    close = difflib.get_close_matches(given, list(known), n=1, cutoff=0.6) if len(given) <= MAX_VALUE_LENGTH else []
    return f'did you mean "{close[0]}"?' if close else None


class ManetError(Exception):
    """A failure with a message meant for the user."""

    exit_status = 1


class UsageError(ManetError):
    """A wrong file, key, argument or machine, detected before anything was started."""

    exit_status = 2
