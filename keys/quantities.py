"""Numbers with a unit, which scenario keys accept as well as bare numbers.

A bare number is in the key's own unit (metres, seconds, bit/s, m/s, bytes). A string carries its unit ("0.2 km",
"500 kbit/s"); one of another dimension is refused, so that a time can never be read as a distance. "m" alone is
metres: minutes are written "min". A count takes a float of integral value, since TOML has no other way to write 1e3.
"""

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from mobility.trace import plain_number
from topologies.layouts import MAX_COORDINATE_M

UNITS: dict[str, dict[str, float]] = {
    "m": {"m": 1.0, "km": 1000.0, "cm": 0.01},
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0},
    "bit/s": {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6},
    "m/s": {"m/s": 1.0, "km/h": 1 / 3.6},
    "bytes": {"bytes": 1.0, "B": 1.0, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3},
}
NAMES = {"m": "distance", "s": "time", "bit/s": "rate", "m/s": "speed", "bytes": "size"}
_WRITTEN = re.compile(r"\s*([-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z/]*)\s*")
MAX_SPEED_MPS = 1000.0  # of a station


def parse_quantity(value: object, unit: str) -> object:
    """`value` as a float in `unit`; a value that is no quantity is returned unchanged, for the type check to refuse. ValueError
    for another unit."""
    if isinstance(value, str):
        return _from_text(value, unit)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number; give a {NAMES[unit]} in {unit}")
    return value


def _from_text(text: str, unit: str) -> float:
    match = _WRITTEN.fullmatch(text)
    known = ", ".join(UNITS[unit])
    if match is None:
        raise ValueError(f'"{text}" is not a {NAMES[unit]}; give a number in {unit}, or text with one of {known}')
    number, written = float(match.group(1)), match.group(2)
    if written not in UNITS[unit]:
        problem = f'has the unit "{written}"' if written else "has no unit"
        raise ValueError(
            f'"{text}" {problem}, but a {NAMES[unit]} is expected; give a number in {unit}, or text with one of {known}'
        )
    return number * UNITS[unit][written]


def of_word(word: str) -> float | str:
    """A word of a command as the value of a key: a number, or the text, which may have a unit."""
    value = plain_number(word)
    return word if math.isnan(value) and word.lower() != "nan" else value


def text_pattern(unit: str) -> str:
    """A regular expression (ECMA-262) for text with a unit, for JSON Schema."""
    written = _WRITTEN.pattern.replace("[A-Za-z/]*", "|".join(UNITS[unit]))
    return f"^{written}$"


def _quantity(unit: str) -> BeforeValidator:
    return BeforeValidator(lambda value: parse_quantity(value, unit))


def as_whole(value: object) -> object:
    """`1e3` and `50.0` as integers; any other value is returned unchanged, for the type check."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True)
class Unit:
    """Annotation of a key: the unit of its bare numbers."""

    name: str

    def __get_pydantic_json_schema__(self, inner: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(inner), "unit": self.name}


Whole = Annotated[int, BeforeValidator(as_whole)]
Metres = Annotated[float, _quantity("m"), Unit("m")]
Seconds = Annotated[float, _quantity("s"), Unit("s")]
BitsPerSecond = Annotated[float, _quantity("bit/s"), Unit("bit/s")]
MetresPerSecond = Annotated[float, _quantity("m/s"), Unit("m/s")]
Coordinate = Annotated[Metres, Field(ge=-MAX_COORDINATE_M, le=MAX_COORDINATE_M)]
Length = Annotated[Metres, Field(gt=0, le=MAX_COORDINATE_M)]
Speed = Annotated[MetresPerSecond, Field(gt=0, le=MAX_SPEED_MPS)]
Bytes = Annotated[int, BeforeValidator(lambda value: as_whole(parse_quantity(value, "bytes"))), Unit("bytes")]


def unit_within(annotation: Any) -> str | None:
    """The unit of an annotation's numbers; None without one."""
    own = (part for part in getattr(annotation, "__metadata__", ()) if isinstance(part, Unit))
    own_unit = next((unit.name for unit in own), None)
    return own_unit or next((name for part in get_args(annotation) if (name := unit_within(part))), None)
