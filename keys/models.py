"""Common parts of the models of a scenario's keys."""

from typing import Self

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """The base of models whose values are of exact types, and whose keys are all known.

    A model builds its checks at its first use: most are used as a part of another one only, which has its own. That use may be
    in any thread (pydantic.main._rebuild_lock).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    def __copy__(self) -> Self:
        """A copy without cached properties: `model_copy` gives it other values than they were computed from."""
        copied = super().__copy__()
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


class KeyProblem(ValueError):
    """An invalid combination of values: the key to change, and one line with the remedy."""

    def __init__(self, path: tuple[str | int, ...], text: str) -> None:
        super().__init__(text)
        self.path = path


MAX_WORDS, MAX_WORD = 256, 4096  # of a command line


def check_length(words: tuple[str, ...]) -> None:
    """KeyProblem for a command line that is too long."""
    if len(words) > MAX_WORDS or any(len(word) > MAX_WORD for word in words):
        text = f"has more than {MAX_WORDS} words, or a word of more than {MAX_WORD} characters; write a script"
        raise KeyProblem((), text)


def as_tuple(value: object) -> object:
    """Lists of TOML and JSON as tuples, which frozen models hold."""
    return tuple(as_tuple(item) for item in value) if isinstance(value, list) else value
