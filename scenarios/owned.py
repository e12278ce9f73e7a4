"""Keys that one of our programs owns: limits, units, choices and defaults, read from formats/schema.

The medium owns radio, propagation, links, queue and wires; each routing daemon its options. `PROGRAM schema` prints the files of
formats/schema (`make schema`) from the declarations that the program checks with. Python has no limits of such keys; a
scenario's key with another name or unit refers to its owner's key here.
"""

import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Optional

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from keys.errors import did_you_mean, shortened
from keys.quantities import BitsPerSecond, Bytes, Metres, Seconds, Whole

FOLDER = Path(__file__).resolve().parents[1] / "formats" / "schema"
# names of limits: JSON Schema's, pydantic's
LIMITS = {"minimum": "ge", "exclusiveMinimum": "gt", "maximum": "le", "exclusiveMaximum": "lt"}
WORDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", operator.ge),
    "exclusiveMinimum": ("more than", operator.gt),
    "maximum": ("at most", operator.le),
    "exclusiveMaximum": ("less than", operator.lt),
}
FORMULAS: dict[str, Callable[[Iterable[float]], float]] = {"sum": sum, "product": math.prod, "max": max}
# of a type of JSON: Python's, and what a key takes, for a message
KINDS: dict[str, Any] = {
    "object": dict, "array": list | tuple, "boolean": bool, "integer": int | float, "number": int | float, "string": str,
}  # fmt: skip
WANTED = {"boolean": "true or false", "integer": "a whole number", "number": "a number", "string": "text in quotes"}
# units that a scenario takes as text, too
NUMBERS = {"s": Seconds, "m": Metres, "bit/s": BitsPerSecond}
Node = Mapping[str, Any]
Fields = dict[str, tuple[Any, Any]]
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class OneOf:
    """Annotation of a key: its allowed names."""

    names: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.literal_schema(list(self.names))


@cache
def schema(name: str) -> dict[str, Any]:
    """The schema of `medium` (medium.json), `radio` (a profile), or of a daemon's options, by its protocol's name."""
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return document


def node(name: str, path: str) -> Node:
    """The schema of a key, dotted for tables and lists of tables: `links.error_rate`."""
    schema_of_key: Node = schema(name)
    for part in path.split("."):
        tables = schema_of_key.get("oneOf", [schema_of_key.get("items", schema_of_key)])
        schema_of_key = next(table["properties"][part] for table in tables if part in table.get("properties", ()))
    return schema_of_key


def limits(owner: Node, per: float = 1.0) -> dict[str, Any]:
    """The limits as arguments of pydantic's Field. `per`: the owner's units per unit of the scenario's key."""
    return {word: owner[key] / per if per != 1.0 else owner[key] for key, word in LIMITS.items() if key in owner}


def in_words(given: Mapping[str, Any]) -> list[str]:
    """The limits among `given` as text, by JSON Schema's names or pydantic's: `at least 1`."""
    return [f"{WORDS[key][0]} {given[name]:g}" for key, word in LIMITS.items() for name in (key, word) if name in given]


def bounds(name: str, path: str, per: float = 1.0) -> tuple[float, float]:
    """Lower and upper limit of a number that has both; the lower one may be exclusive."""
    owner = node(name, path)
    return owner.get("minimum", owner.get("exclusiveMinimum")) / per, owner["maximum"] / per


def number(name: str, path: str, per: float = 1.0) -> Any:
    """A pydantic field with the limits of a number, for an annotation."""
    return Field(**limits(node(name, path), per))


def choice(name: str, path: str) -> OneOf:
    """The allowed names of a key, for an annotation."""
    return OneOf(tuple(node(name, path)["enum"]))


def default(name: str, path: str) -> Any:
    """The owner's default of a key."""
    return _default(node(name, path))


def fields(properties: Mapping[str, Node], own: Mapping[str, Any], required: bool = True) -> Fields:
    """Fields for `create_model`, in order. `own`: annotations of keys with another form in a scenario. Without `required` all
    keys are optional, with default None."""
    fields_by_key = {}
    for key, owner in properties.items():
        annotation = own.get(key) or annotation_of(owner)
        fields_by_key[key] = (annotation, _default(owner)) if required else (Optional[annotation], None)  # noqa: UP045
    return fields_by_key


def derived(formula: Any, values: Mapping[str, Any]) -> Any:
    """Value of a key that was not given: its owner's `derived`, with the values of other keys (engine/src/formula.rs).

    Times are in seconds, to the nanosecond.
    """
    if isinstance(formula, str):
        return values[formula]
    if not isinstance(formula, dict):
        return formula
    if "by" in formula:
        return derived(formula["cases"][values[formula["by"]]], values)
    ((word, parts),) = formula.items()
    return round(FORMULAS[word](derived(part, values) for part in parts), 9)


def misfit(owner: Node, value: object, path: KeyPath = ()) -> tuple[KeyPath, str] | None:
    """Path and error of the first wrong value in a value, a table's keys one by one; None if it is valid. Keys that are required
    may be missing: the tables of a profile are replaced in parts."""
    if "anyOf" in owner:
        fitting = [each for each in owner["anyOf"] if _is_of(value, each)]
        return misfit(fitting[0], value, path) if fitting else (path, _mistyped(value, owner))
    if "properties" in owner:
        if not isinstance(value, dict):
            return path, _mistyped(value, owner)
        known = owner["properties"]
        if unknown := next((key for key in value if key not in known), None):
            return (*path, unknown), f"unknown key; {did_you_mean(unknown, known) or 'use one of ' + ', '.join(known)}"
        return next(filter(None, (misfit(known[key], inner, (*path, key)) for key, inner in value.items())), None)
    if "items" in owner:
        if not isinstance(value, list | tuple):
            return path, _mistyped(value, owner)
        each = owner["items"]
        return next(filter(None, (misfit(each, inner, (*path, place)) for place, inner in enumerate(value))), None)
    text = problem(owner, value)
    return (path, text) if text else None


def _kind(owner: Node) -> str:
    kind: str | list[str] = owner["type"]
    return kind if isinstance(kind, str) else kind[0]  # the other one is null


def _is_of(value: object, owner: Node) -> bool:
    kind = KINDS[_kind(owner)]
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _mistyped(value: object, owner: Node) -> str:
    shown = "a table" if isinstance(value, dict) else shortened(json.dumps(value, default=str, ensure_ascii=False))
    return f"{shown} is of the wrong type; give {_wanted(owner)}"


def _wanted(owner: Node) -> str:
    """What a key takes, for a message."""
    if "anyOf" in owner:
        return ", or ".join(_wanted(each) for each in owner["anyOf"])
    if "properties" in owner:
        return f"a table with {', '.join(owner['properties'])}"
    unit = f" in {owner['unit']}" if "unit" in owner else ""
    return f"a list, each {_wanted(owner['items'])}" if "items" in owner else WANTED[_kind(owner)] + unit


def problem(owner: Node, value: object) -> str | None:
    """The error of a value by its owner's schema, in one line; None if it is valid."""
    if "enum" in owner:
        names = ", ".join(f'"{name}"' for name in owner["enum"])
        return None if value in owner["enum"] else f"{json.dumps(value)} is not known; use one of {names}"
    is_fraction = isinstance(value, float) and not value.is_integer()
    if not _is_of(value, owner) or (_kind(owner) == "integer" and is_fraction):
        return _mistyped(value, owner)
    unit = f" {owner['unit']}" if "unit" in owner else ""
    wrong = next((word for word in WORDS if word in owner and not WORDS[word][1](value, owner[word])), None)
    return f"{value} is out of range; give {WORDS[wrong][0]} {owner[wrong]:g}{unit}" if wrong else None


def annotation_of(owner: Node) -> Any:
    """The Python type of a key, with its limits."""
    if "enum" in owner:
        return Annotated[str, OneOf(tuple(owner["enum"]))]
    kinds = [owner["type"]] if isinstance(owner["type"], str) else owner["type"]
    unit = owner.get("unit", "")
    whole = Bytes if unit == "bytes" else Whole
    plain: dict[str, Any] = {"boolean": bool, "integer": whole, "number": NUMBERS.get(unit, float), "string": str}
    annotation = plain[kinds[0]]
    if limits(owner):
        annotation = Annotated[annotation, Field(**limits(owner))]
    return Optional[annotation] if "null" in kinds else annotation  # noqa: UP045


def _default(owner: Node) -> Any:
    """The default of a key; `...` (required) without one."""
    value = owner.get("default", ...)
    if isinstance(value, list):
        return tuple(value)
    return float(value) if owner.get("type") == "number" and isinstance(value, int) else value
