"""The DSCP of a flow's packets (RFC 2474): a number or the name of its per-hop behaviour, by which EDCA has a category for it."""

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from keys.models import KeyProblem
from keys.quantities import Whole

# RFC 2474, 4.2.2 (class selectors), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VOICE-ADMIT), RFC 8622 (LE)
NAMES = {
    **{f"CS{number}": 8 * number for number in range(8)},
    **{f"AF{number}{drop}": 8 * number + 2 * drop for number in range(1, 5) for drop in range(1, 4)},
    "EF": 46,
    "VOICE-ADMIT": 44,
    "LE": 1,
}


def _as_number(value: object) -> object:
    """The number of a name."""
    if not isinstance(value, str):
        return value
    if value.upper() not in NAMES:
        raise KeyProblem((), f'"{value}" is no name of a DSCP; use a number of 0 to 63, or one of {", ".join(NAMES)}')
    return NAMES[value.upper()]


SCHEMA = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 63}, {"enum": list(NAMES)}]}
Dscp = Annotated[Whole, Field(ge=0, le=63), BeforeValidator(_as_number), WithJsonSchema(SCHEMA)]
