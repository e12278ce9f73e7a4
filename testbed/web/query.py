"""The words of a request's address, checked: those after `?`, and numbers in its path."""

import math
import re
from collections.abc import Collection

from starlette.requests import Request

from testbed.errors import ManetError, shortened

MAX_WHOLE = (1 << 63) - 1
WHOLE = re.compile("-?[0-9]{1,19}")


class Wrong(ManetError):
    """A wrong word of a request."""


class Query:
    """The words after `?`, each at most once. Methods raise Wrong, which names the word."""

    def __init__(self, request: Request, known: Collection[str] | None) -> None:
        """`known`: the words that the address takes, `token` besides; None: `only` says so later."""
        self._given, self.path = request.query_params, request.path_params
        if known is not None:
            self.only(known)

    def only(self, known: Collection[str]) -> None:
        """Refuse a word that is not known, or is given twice."""
        for name, _ in self._given.multi_items():
            if name not in {*known, "token"}:
                raise Wrong(f"{shortened(name)}=: unknown word; {'use ' + ', '.join(sorted(known)) if known else 'leave it out'}")
            if len(self._given.getlist(name)) > 1:
                raise Wrong(f"{name}=: is given twice; give it once")

    def done(self) -> None:
        """Refuse every word."""
        self.only(())

    def text(self, name: str, otherwise: str) -> str:
        """A word."""
        return self._given.get(name, otherwise)

    def text_if_given(self, name: str) -> str | None:
        """A word, or None without it."""
        return self._given.get(name)

    def one_of(self, name: str, choices: tuple[str, ...]) -> str:
        """One of the choices, the first by default."""
        given = self._given.get(name, choices[0])
        if given not in choices:
            raise Wrong(f"{name}={shortened(given)}: is not known; use {' or '.join(choices)}")
        return given

    def needed(self, name: str, least: int = 0, most: int = MAX_WHOLE) -> int:
        """A whole number within bounds. Raises Wrong without the word too."""
        given = self.whole_if_given(name, least, most)
        if given is None:
            raise Wrong(f"{name}=: is missing; give a whole number from {least} to {most}")
        return given

    def whole(self, name: str, otherwise: int, least: int = 0, most: int = MAX_WHOLE) -> int:
        """A whole number within bounds, or `otherwise` without the word."""
        given = self.whole_if_given(name, least, most)
        return otherwise if given is None else given

    def whole_if_given(self, name: str, least: int = 0, most: int = MAX_WHOLE) -> int | None:
        """A whole number within bounds, or None without the word."""
        given = self._given.get(name)
        return None if given is None else _whole(name, given, least, most)

    def seconds(self, name: str, otherwise: float, least: float = 0.0) -> float:
        """A number of seconds, at least `least`, below 10^9."""
        given = self._given.get(name)
        if given is None:
            return otherwise
        try:
            found = float(given)
        except ValueError:
            found = math.nan
        if not least <= found < 1e9:
            raise Wrong(f"{name}={shortened(given)}: is no time in seconds")
        return found

    def in_path(self, name: str, least: int = 0, most: int = MAX_WHOLE) -> int:
        """A whole number within bounds, in the path."""
        return _whole(name, self.path[name], least, most)


def _whole(name: str, given: str, least: int, most: int) -> int:
    if WHOLE.fullmatch(given) is None or not least <= int(given) <= most:
        raise Wrong(f"{name}={shortened(given)}: is no whole number from {least} to {most}")
    return int(given)
