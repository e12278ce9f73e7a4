"""Common parts of the models of a scenario's keys."""

from pydantic import ConfigDict

STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class KeyProblem(ValueError):
    """An invalid combination of values: the key to change, and one line with the remedy."""

    def __init__(self, path: tuple[str | int, ...], text: str) -> None:
        super().__init__(text)
        self.path = path


def as_tuple(value: object) -> object:
    """Lists of TOML and JSON as tuples, which frozen models hold."""
    return tuple(as_tuple(item) for item in value) if isinstance(value, list) else value
