"""The words of a request's address, checked: those after `?`, and numbers in its path."""

import math
import re

from starlette.requests import HTTPConnection

from testbed.errors import ManetError, shortened

MAX_WHOLE = (1 << 63) - 1
WHOLE = re.compile("-?[0-9]{1,19}")


class Wrong(ManetError):
    """A wrong word of a request."""


class Query:
    """The words after `?`. Methods raise Wrong, which names the word."""

    def __init__(self, request: HTTPConnection) -> None:
        self._parameters, self.path = request.query_params, request.path_params

    def text(self, name: str, otherwise: str) -> str:
        """A word."""
        return self._parameters.get(name, otherwise)

    def text_if_given(self, name: str) -> str | None:
        """A word, or None without it."""
        return self._parameters.get(name)

    def needed(self, name: str, least: int = 0, most: int = MAX_WHOLE) -> int:
        """A whole number within bounds. Raises Wrong without the word too."""
        number = self.whole_if_given(name, least, most)
        if number is None:
            raise Wrong(f"{name}=: is missing; give a whole number from {least} to {most}")
        return number

    def whole(self, name: str, otherwise: int, least: int = 0, most: int = MAX_WHOLE) -> int:
        """A whole number within bounds, or `otherwise` without the word."""
        number = self.whole_if_given(name, least, most)
        return otherwise if number is None else number

    def whole_if_given(self, name: str, least: int = 0, most: int = MAX_WHOLE) -> int | None:
        """A whole number within bounds, or None without the word."""
        text = self._parameters.get(name)
        return None if text is None else whole_of(name, text, least, most)

    def number(self, name: str, otherwise: float, least: float, most: float) -> float:
        """A number within bounds, or `otherwise` without the word."""
        text = self._parameters.get(name)
        try:
            number = otherwise if text is None else float(text)
        except ValueError:
            number = math.nan
        if not least <= number <= most:
            raise Wrong(f"{name}={shortened(text or '')}: is no number from {least:g} to {most:g}")
        return number

    def seconds(self, name: str, otherwise: float, least: float = 0.0) -> float:
        """A number of seconds, at least `least`, below 10^9."""
        text = self._parameters.get(name)
        return otherwise if text is None else seconds_of(name, text, least)

    def in_path(self, name: str, least: int = 0, most: int = MAX_WHOLE) -> int:
        """A whole number within bounds, in the path."""
        return whole_of(name, self.path[name], least, most)


def seconds_of(name: str, text: str, least: float) -> float:
    """A word as a number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number < 1e9:
        raise Wrong(f"{name}={shortened(text)}: is no time in seconds")
    return number


def whole_of(name: str, text: str, least: int, most: int) -> int:
    """A word as a whole number."""
    if WHOLE.fullmatch(text) is None or not least <= int(text) <= most:
        raise Wrong(f"{name}={shortened(text)}: is no whole number from {least} to {most}")
    return int(text)
