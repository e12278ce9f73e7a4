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
from scenarios.routing import PRESETS

SHORT_FOR = {"propagation": "model", "routing": "protocol", "mobility": "model"}  # propagation = "name": { model = "name" }
# lists with an implicit default: its description, and how to set a list
ABSENT_LISTS = {
    "flows": "by default there is one, sta1 to the last station (of a cross: one along each arm); "
    'write --set \'flows=[{from="sta1", to="sta2"}]\'',
}


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

    def of(self, values: Any) -> Any:
        """A copy of `values` with this change; UsageError if the key leads nowhere."""
        return self._within(values, self.key.split("."))

    def _within(self, raw: Any, path: list[str], inside: str = "") -> Any:
        """`raw`, which is the value of key `inside`, with the new value at the end of `path`."""
        if not path:
            return self.value
        first, rest = path[0], path[1:]
        if isinstance(raw, list):
            if not first.isdigit() or int(first) >= len(raw):
                raise UsageError(f'{self.name}: "{first}" is no element of the list; count from 0 to {len(raw) - 1}')
            index = int(first)
            return [*raw[:index], self._within(raw[index], rest), *raw[index + 1 :]]
        if not isinstance(raw, dict):
            if isinstance(raw, str) and inside in SHORT_FOR:
                raw = dict(PRESETS.get(raw, {SHORT_FOR[inside]: raw}))
            else:
                raise UsageError(f'{self.name}: there is no table to hold "{first}"; set the whole key instead')
        if first.isdigit() and inside and not raw:
            remedy = ABSENT_LISTS.get(inside, "give the whole list")
            raise UsageError(f'{self.name}: the scenario has no key "{inside}"; {remedy}')
        if first.isdigit():
            raise UsageError(f"{self.name}: there is no list with such an element; give the whole list, or set it in the file")
        return {**raw, first: self._within(raw.get(first, {}), rest, first)}


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
