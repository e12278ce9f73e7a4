"""The part of an experiment that a request runs: axis values at its size, variants, and the keys that `--set` replaces."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from analysis.references import known_references
from keys.models import Strict, as_tuple
from keys.quantities import Whole, as_whole
from keys.toml_lines import Path as KeyPath
from scenarios.overrides import Change, parse_value
from scenarios.refusal import validated
from scenarios.tcp import TcpError, canonical
from testbed.campaigns.declaration import Declaration, Variant
from testbed.campaigns.figures import misfit
from testbed.campaigns.request import Request
from testbed.errors import UsageError, shortened

MAX_CELLS = 10_000  # checking them takes a minute, running them days


class Size(Strict):
    """The keys of `[full]` and `[quick]` that are not scenario keys."""

    seeds: Whole | None = Field(None, ge=1, le=10_000)
    axes: dict[str, list[Any]] = Field(default_factory=dict)
    variants: Annotated[tuple[str, ...] | None, BeforeValidator(as_tuple)] = None


@dataclass(frozen=True)
class Axis:
    """The values of a scenario's key, dotted or not; `place` is None where `--set` gave them."""

    key: str
    values: list[Any]
    place: KeyPath | None

    def checked(self, declaration: Declaration) -> "Axis":
        """The axis with its values as recorded; UsageError without values or for a duplicate."""
        values = [_recorded(self.key, value) for value in self.values[: MAX_CELLS + 1]]
        double = _double(values)
        wrong = f"{double} is listed twice; remove one" if double is not None else None
        if not values:
            wrong = "has no values; give at least one"
        if len(values) > MAX_CELLS:
            wrong = f"has {len(self.values)} values, above the {MAX_CELLS} cells that an experiment may have; narrow it"
        if wrong is None:
            return Axis(self.key, values, self.place)
        if self.place is None:
            raise UsageError(f'--set: key "{self.key}": {wrong}')
        raise declaration.document.refusal(self.place, wrong)


@dataclass(frozen=True)
class Sweep:
    """`size` is `full` or `quick`; `size_keys` are that table's keys of the scenario; `settings` are those of `--set` that are of
    no axis. A variant None is the scenario as it is. `seeds` None: the scenario's own."""

    declaration: Declaration
    size: str
    size_keys: dict[str, Any]
    axes: tuple[Axis, ...]
    variants: tuple[Variant | None, ...]
    settings: tuple[Change, ...]
    seeds: int | None

    @classmethod
    def of(cls, declaration: Declaration, request: Request) -> "Sweep":
        """The sweep that the request selects from the declaration; UsageError names the invalid key or argument."""
        name = "quick" if request.quick else "full"
        table = getattr(declaration.tables, name)
        size_table = {key: value for key, value in table.items() if key in Size.model_fields}
        size = validated(Size, size_table, lambda path, text: declaration.document.refusal((name, *path), text))
        axes = _axes(declaration, name, size, request.overrides)
        keys = {axis.key for axis in axes}
        settings = tuple(Change.of_setting(setting) for setting in request.overrides if _key_of(setting) not in keys)
        size_keys = {key: value for key, value in table.items() if key not in size_table}
        variants = _variants(declaration, name, size, request.variants)
        seeds = request.seeds or _seeds_set(request.overrides) or size.seeds
        sweep = cls(declaration, name, size_keys, axes, variants, settings, seeds)
        sweep._check_size()
        sweep._check_analysis()
        return sweep

    def _check_size(self) -> None:
        """Refuse too many cells, before the first is made."""
        count = math.prod(len(axis.values) for axis in self.axes) * len(self.variants)
        if count > MAX_CELLS:
            sizes = shortened(" x ".join(f"{len(axis.values)} {axis.key}" for axis in self.axes))
            text = f"{sizes} x {len(self.variants)} variants are {shortened(str(count), 20)} cells, above {MAX_CELLS}"
            raise self.declaration.document.refusal(("axes",), f"{text}; narrow an axis with --set, or split the file")

    def _check_analysis(self) -> None:
        """Check before the first run that the figure and the reference tables exist, which are read after the last."""
        document, tables = self.declaration.document, self.declaration.tables
        figure = self.declaration.figure
        wrong = misfit(document.path.stem, figure, [axis.key for axis in self.axes]) if figure else None
        if wrong is not None:
            raise document.refusal(("figure",), wrong)
        for key, name in (("published", tables.published), ("ns2", tables.ns2)):
            if name and name not in known_references(key):
                text = f'no such table "{name}" in analysis/{key}; there are {", ".join(known_references(key))}'
                raise document.refusal((key,), text)


def _axes(declaration: Declaration, name: str, size: Size, settings: Sequence[str]) -> tuple[Axis, ...]:
    """The axes at this size; `--set` of an axis narrows it."""
    axes = {key: Axis(key, values, ("axes", key)) for key, values in declaration.tables.axes.items()}
    axes |= {key: Axis(key, values, (name, "axes", key)) for key, values in size.axes.items()}
    axes = {key: axis.checked(declaration) for key, axis in axes.items()}
    for setting in settings:
        key, written = _key_of(setting), setting.partition("=")[2]
        if key in axes:
            value = parse_value(written.strip())
            axes[key] = Axis(key, value if isinstance(value, list) else [value], None).checked(declaration)
    return tuple(axes.values())


def _key_of(setting: str) -> str:
    return setting.partition("=")[0].strip()


def _variants(declaration: Declaration, name: str, size: Size, requested: Sequence[str]) -> tuple[Variant | None, ...]:
    variants = {variant.name: variant for variant in declaration.tables.variants}
    for each in size.variants or ():
        if each not in variants:
            text = f'there is no variant "{each}"; the variants are {", ".join(variants)}'
            raise declaration.document.refusal((name, "variants"), text)
    for each in requested:
        if each not in variants:
            has = f"the variants are {', '.join(variants)}" if variants else "it has none"
            raise UsageError(f"--variant {each}: {declaration.document.name} has no such variant; {has}")
    return tuple(variants[each] for each in requested or size.variants or tuple(variants)) or (None,)


def _seeds_set(settings: Sequence[str]) -> int | None:
    """`--set seeds=5` means the number of seeds, as everywhere."""
    seeds = [setting.partition("=")[2] for setting in settings if _key_of(setting) == "seeds"]
    value = as_whole(parse_value(seeds[-1].strip())) if seeds else None
    return value if isinstance(value, int) else None


def _double(values: list[Any]) -> Any:
    """The first value that was in the list before; None without one."""
    seen = set()
    for value in values:
        key = json.dumps(value, sort_keys=True, default=str) if isinstance(value, list | dict) else value
        if key in seen:
            return value
        seen.add(key)
    return None


def _recorded(key: str, value: Any) -> Any:
    """An axis value as it is recorded: a TCP in its canonical spelling, so that two spellings of one TCP are a duplicate.
    An invalid TCP is reported by the check of its scenario."""
    if key.rpartition(".")[2] != "tcp" or not isinstance(value, str):
        return value
    try:
        return canonical(value)
    except TcpError:
        return value
