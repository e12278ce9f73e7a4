"""The key `antenna` of an entry of `radios`: an antenna whose gain depends on the direction (docs/medium.md).

Patterns, their keys and limits are those of formats/schema/medium.json: a new pattern of the medium needs only its keys here.
"""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from keys.models import KeyProblem, Strict, as_tuple
from scenarios import owned

MAX_ANGLES = 3600  # of a table: a tenth of a degree each
KEY = "stations.antenna"
_TABLES = [table["properties"] for table in owned.node("medium", KEY)["oneOf"] if "properties" in table]
PATTERNS: dict[str, owned.Node] = {table["pattern"]["const"]: table for table in _TABLES}


def _each(key: str) -> Any:
    """The limits of each element of a list."""
    return Field(**owned.limits(owned.node("medium", f"{KEY}.{key}")["items"]))


class Antenna(Strict):
    """An antenna; of its keys those of its pattern are given."""

    pattern: Annotated[str, owned.OneOf(tuple(PATTERNS))]
    gain_dbi: Annotated[float, owned.number("medium", f"{KEY}.gain_dbi")] | None = None
    beamwidth_deg: Annotated[float, owned.number("medium", f"{KEY}.beamwidth_deg")] | None = None
    front_to_back_db: Annotated[float, owned.number("medium", f"{KEY}.front_to_back_db")] | None = None
    azimuth_deg: Annotated[float, owned.number("medium", f"{KEY}.azimuth_deg")] | None = None
    angles_deg: Annotated[tuple[Annotated[float, _each("angles_deg")], ...], BeforeValidator(as_tuple)] | None = Field(
        None, max_length=MAX_ANGLES
    )
    gains_dbi: Annotated[tuple[Annotated[float, _each("gains_dbi")], ...], BeforeValidator(as_tuple)] | None = Field(
        None, max_length=MAX_ANGLES
    )

    @model_validator(mode="after")
    def _fits_pattern(self) -> Self:
        """Refuse keys of another pattern, and complete those with a default."""
        keys = PATTERNS[self.pattern]
        for key, value in self:
            if value is not None and key not in keys:
                raise KeyProblem((key,), f'the pattern "{self.pattern}" has no "{key}"; remove it')
        for key, owner in keys.items():
            if getattr(self, key) is None and "default" not in owner:
                raise KeyProblem((), f'the pattern "{self.pattern}" needs "{key}"; add it')
            if getattr(self, key) is None:
                object.__setattr__(self, key, float(owner["default"]))
        if len(self.angles_deg or ()) != len(self.gains_dbi or ()):
            counts = f"{len(self.gains_dbi or ())} gains for {len(self.angles_deg or ())} angles"
            raise KeyProblem(("gains_dbi",), f"{counts}; give one for each angle")
        return self

    def for_medium(self) -> dict[str, Any]:
        """The object `antenna` of medium.json."""
        return self.model_dump(exclude_none=True, mode="json")
