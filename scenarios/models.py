"""What all models of a scenario's keys share."""

from pydantic import ConfigDict

STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class KeyProblem(ValueError):
    """A value that is wrong in company of others: the key to blame, and one line with the remedy."""

    def __init__(self, path: tuple[str | int, ...], text: str) -> None:
        super().__init__(text)
        self.path = path


def as_tuple(value: object) -> object:
    """TOML and JSON give lists; the frozen models keep tuples."""
    return tuple(as_tuple(item) for item in value) if isinstance(value, list) else value
