"""Changes of a scenario's keys: of `--set`, of a variant, of an axis.

`--set` takes the same keys as the files, dotted for tables, and its values are TOML values (bare words are taken as text:
`--set tcp=cubic`).
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from keys.errors import UsageError, shortened
from keys.toml_lines import MAX_PARTS, TOO_MANY_PARTS, TooMuch, parse
from keys.toml_lines import Path as KeyPath

SHORT_FOR = {
    "propagation": "model",
    "fading": "model",
    "routing": "protocol",
    "mobility": "model",
}  # propagation = "name": { model = "name" }


@dataclass(frozen=True)
class Change:
    """A new value of a key. `key` is dotted for tables, with numbers for lists; `name` begins an error message about it."""

    key: str
    value: Any
    name: str
    place: KeyPath | None = None  # the value's place in the file; None: after --set
    # parts of the value from other places: path in the scenario, path in the file
    parts: Mapping[KeyPath, KeyPath] = field(default_factory=dict)

    @classmethod
    def of_setting(cls, setting: str) -> Self:
        """Parse `key=value` after `--set`."""
        key, equals, written = setting.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {shortened(setting)}: is not key=value; write for example --set hops=3")
        if key.count(".") >= MAX_PARTS:
            raise UsageError(f"--set {shortened(setting)}: {TOO_MANY_PARTS}")
        return cls(key.strip(), parse_value(written.strip()), f"--set {shortened(setting)}")


def parse_value(written: str) -> Any:
    """A TOML value; any other text is a string, so words need no quotes in a shell."""
    try:
        keys, _lines = parse(f"value = {written}")
        return keys["value"] if len(keys) == 1 else written  # a line break begins another key
    except tomllib.TOMLDecodeError:
        return written
    except TooMuch as problem:
        raise UsageError(f"--set: {shortened(written, 20)}: {problem}") from None
    except RecursionError:
        text = "lists or tables are nested too deep; no key needs more than five levels"
        raise UsageError(f"--set: {shortened(written, 20)}: {text}") from None
