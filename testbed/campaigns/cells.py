"""The cells of an experiment: each combination of variant and axis values, with the keys of its scenario.

Joins scenario, size, variant, axis values and `--set`, in this order; the later one wins.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from scenarios.identity import identity
from scenarios.keys import Keys
from scenarios.overrides import Change
from scenarios.scenario import Scenario
from testbed.campaigns.declaration import Variant
from testbed.campaigns.flow_sets import KEY as FLOWS
from testbed.campaigns.flow_sets import with_flows
from testbed.campaigns.sweep import Axis, Sweep

MAX_VALUE = 60  # characters of an axis value in a cell's name; several of them form a folder's, at most 255
ONLY_CELL = "all"  # the name of the cell of an experiment without axes and variants


@dataclass(frozen=True)
class Cell:
    """One combination of axis values and variant; `name` is its folder."""

    name: str
    variant: str
    axes: dict[str, Any]
    scenario: Scenario
    keys: Keys | None = None  # of the scenario, if it was read from a file

    @cached_property
    def content(self) -> dict[str, Any]:
        """Its scenario as scenario.json has it."""
        content: dict[str, Any] = json.loads(self.scenario.to_json())
        return content

    @cached_property
    def identity(self) -> str:
        """The identity of its scenario (scenarios/identity.py)."""
        return identity(self.scenario)


@dataclass(frozen=True)
class Draft:
    """A cell whose scenario is not checked yet."""

    name: str
    variant: str
    axes: dict[str, Any]
    keys: Keys


def drafts_of(sweep: Sweep) -> list[Draft]:
    """The drafts of all cells; the last axis varies fastest, the variant slowest."""
    base = _base(sweep)
    places = [[(axis, index) for index in range(len(axis.values))] for axis in sweep.axes]
    return [
        _draft(sweep, base, variant, [*values]) for variant in sweep.variants for values in itertools.product(*places)
    ]  # fmt: skip


def _base(sweep: Sweep) -> Keys:
    """The keys common to all cells: the scenario's, with those that the size replaces."""
    declaration = sweep.declaration
    document, scenario = declaration.document, declaration.tables.scenario
    places = {FLOWS: ("scenario", FLOWS)} if FLOWS in scenario else {}
    places |= {key: (sweep.size, key) for key in sweep.size_keys}
    keys = Keys(scenario, document, ("scenario",), {})
    for key, place in places.items():
        change = Change(key, (scenario | sweep.size_keys)[key], document.name, place)
        keys = keys.changed(with_flows(change, declaration))
    return keys


def _draft(sweep: Sweep, keys: Keys, variant: Variant | None, values: list[tuple[Axis, int]]) -> Draft:
    for change in _changes(sweep, variant, values):
        keys = keys.changed(with_flows(change, sweep.declaration))
    axes = {axis.key: axis.values[index] for axis, index in values}
    parts = [f"{axis.key}{_unique_text(axis.values[index], axis.values)}" for axis, index in values]  # `hops3`
    name = "-".join([variant.name, *parts] if variant else parts)
    return Draft(name or ONLY_CELL, variant.name if variant else "", axes, keys)


def _changes(sweep: Sweep, variant: Variant | None, values: list[tuple[Axis, int]]) -> Iterator[Change]:
    """The keys that a cell replaces in the common ones."""
    name = sweep.declaration.document.name
    if variant is not None:
        number = sweep.declaration.tables.variants.index(variant)
        for key, value in variant.set.items():
            yield Change(key, value, f"{name}: variant {variant.name}", ("variants", number, "set", key))
    for axis, index in values:
        place = None if axis.place is None else (*axis.place, index)
        yield Change(axis.key, axis.values[index], f"{name}: axis {axis.key}", place)
    yield from sweep.settings


def _unique_text(value: Any, values: list[Any]) -> str:
    """`value` as a part of a file name, different from those of the axis' other values."""
    word = _plain(value)
    if sum(_plain(other) == word for other in values) == 1 and len(word) <= MAX_VALUE:
        return word
    digest = hashlib.sha256(json.dumps(value).encode()).hexdigest()
    return f"{word[:MAX_VALUE]}_{digest[:6]}"


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    plain = "".join(c if c.isalnum() or c in "._" else "_" for c in text)
    return re.sub("__+", "_", plain).rstrip("_") if isinstance(value, str) and "(" in value else plain
