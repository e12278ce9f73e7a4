"""Keys that a program of ours owns: limits, units, choices and defaults, read from formats/schema.

The medium owns radio, propagation, links, queue and wires; each routing daemon its options. `PROGRAM schema` prints what
formats/schema holds (`make schema`), from the declarations that the program checks with. No limit of such a key stands in
Python; a key of a scenario that goes by another name or unit than its owner's names the owner's here.
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

from scenarios.quantities import BitsPerSecond, Bytes, Metres, Seconds, Whole

FOLDER = Path(__file__).resolve().parents[1] / "formats" / "schema"
# JSON Schema's words for limits, and pydantic's
LIMITS = {"minimum": "ge", "exclusiveMinimum": "gt", "maximum": "le", "exclusiveMaximum": "lt"}
WORDS = {
    "minimum": ("at least", operator.ge),
    "exclusiveMinimum": ("more than", operator.gt),
    "maximum": ("at most", operator.le),
    "exclusiveMaximum": ("less than", operator.lt),
}
FORMULAS: dict[str, Callable[[Iterable[float]], float]] = {"sum": sum, "product": math.prod, "max": max}
# units that a scenario takes as text, too
NUMBERS = {"s": Seconds, "m": Metres, "bit/s": BitsPerSecond}
Node = Mapping[str, Any]
Fields = dict[str, tuple[Any, Any]]


@dataclass(frozen=True)
class OneOf:
    """In a key's annotation: the names that it takes."""

    names: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.literal_schema(list(self.names))


@cache
def schema(name: str) -> dict[str, Any]:
    """Of `medium` (medium.json), `radio` (a profile), or the options of a daemon by its protocol's name."""
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return document


def node(name: str, path: str) -> Node:
    """The schema of a key, dotted where it is in a table or in the tables of a list: `links.error_rate`."""
    found: Node = schema(name)
    for part in path.split("."):
        tables = found.get("oneOf", [found.get("items", found)])
        found = next(table["properties"][part] for table in tables if part in table["properties"])
    return found


def limits(owner: Node, per: float = 1.0) -> dict[str, Any]:
    """As arguments of pydantic's Field. `per`: how many of the owner's units a unit of the scenario's key has."""
    return {word: owner[key] / per if per != 1.0 else owner[key] for key, word in LIMITS.items() if key in owner}


def bounds(name: str, path: str, per: float = 1.0) -> tuple[float, float]:
    """The least and the greatest value of a number that has both, whether or not the least itself is allowed."""
    owner = node(name, path)
    return owner.get("minimum", owner.get("exclusiveMinimum")) / per, owner["maximum"] / per


def number(name: str, path: str, per: float = 1.0) -> Any:
    """The limits of a number, for an annotation."""
    return Field(**limits(node(name, path), per))


def choice(name: str, path: str) -> OneOf:
    """The names of a key, for an annotation."""
    return OneOf(tuple(node(name, path)["enum"]))


def default(name: str, path: str) -> Any:
    return _default(node(name, path))


def fields(properties: Mapping[str, Node], own: Mapping[str, Any], required: bool = True) -> Fields:
    """For `create_model`, in their order. `own` has the annotations of keys that are written otherwise in a scenario.
    Without `required`, each key may be left out, and is None then."""
    made = {}
    for key, owner in properties.items():
        annotation = own.get(key) or annotation_of(owner)
        made[key] = (annotation, _default(owner)) if required else (Optional[annotation], None)  # noqa: UP045
    return made


def derived(formula: Any, values: Mapping[str, Any]) -> Any:
    """What a key is that was not given: its owner's `derived`, with the values of other keys (engine/src/formula.rs).
    Times are in seconds, to the nanosecond."""
    if isinstance(formula, str):
        return values[formula]
    if not isinstance(formula, dict):
        return formula
    if "by" in formula:
        return derived(formula["cases"][values[formula["by"]]], values)
    ((word, parts),) = formula.items()
    return round(FORMULAS[word](derived(part, values) for part in parts), 9)


def problem(owner: Node, value: object) -> str | None:
    """What is wrong with a value that is handed to its owner as it is, in one line; None if nothing is."""
    if "enum" in owner:
        names = ", ".join(f'"{name}"' for name in owner["enum"])
        return None if value in owner["enum"] else f"{json.dumps(value)} is not known; use one of {names}"
    if owner["type"] not in ("integer", "number"):
        right = isinstance(value, {"boolean": bool, "string": str}[owner["type"]])
        return None if right else f"{json.dumps(value)} is of the wrong type; give a {owner['type']}"
    unit = f" {owner['unit']}" if "unit" in owner else ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{json.dumps(value)} is of the wrong type; give a number{unit and ' in'}{unit}"
    if owner["type"] == "integer" and value != int(value):
        return f"{value} is of the wrong type; give a whole number{unit and ' in'}{unit}"
    wrong = next((word for word in WORDS if word in owner and not WORDS[word][1](value, owner[word])), None)
    return f"{value} is out of range; give {WORDS[wrong][0]} {owner[wrong]:g}{unit}" if wrong else None


def annotation_of(owner: Node) -> Any:
    """What the key is in Python."""
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
    """A field without one is `...`, which pydantic reads as required."""
    value = owner.get("default", ...)
    if isinstance(value, list):
        return tuple(value)
    return float(value) if owner.get("type") == "number" and isinstance(value, int) else value
