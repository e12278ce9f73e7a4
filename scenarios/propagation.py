"""The key `propagation` of a scenario: a model's name, or a table with its keys, which are the medium's (formats/medium.md).

The models, their keys and limits are those of formats/schema/medium.json: a new model of the medium needs no change here.
"""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, create_model, model_validator

from keys.models import KeyProblem, Strict, as_tuple
from scenarios import owned

TABLES: dict[str, owned.Node] = {
    table["properties"]["model"]["const"]: table for table in owned.node("medium", "propagation")["oneOf"]
}


class MatrixEntry(Strict):
    """Path loss between two stations for `propagation.model = "matrix"`."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    loss_db: Annotated[float, owned.number("medium", "propagation.matrix.loss_db")]


class Model(Strict):
    """Received power as a function of distance."""

    FIRST: ClassVar[str] = next(iter(TABLES))  # the medium's default
    model: Annotated[str, owned.OneOf(tuple(TABLES))] = FIRST

    @model_validator(mode="after")
    def _fits_model(self) -> Self:
        keys = {key: owner for key, owner in TABLES[self.model]["properties"].items() if key != "model"}
        required = set(TABLES[self.model]["required"]) - {"model"}
        given_keys = {key for key in type(self).model_fields if key != "model" and getattr(self, key) is not None}
        for key in sorted(given_keys - set(keys)):
            raise KeyProblem((key,), f'the model "{self.model}" has no "{key}"; remove it')
        for key in sorted(required - given_keys):
            raise KeyProblem((), f'the model "{self.model}" needs "{key}"; add it')
        for key in sorted(set(keys) - given_keys):
            object.__setattr__(self, key, float(keys[key]["default"]))
        return self

    def for_medium(self) -> dict[str, Any]:
        """The object `propagation` of medium.json."""
        return self.model_dump(by_alias=True, exclude_none=True, mode="json")


if TYPE_CHECKING:

    class Propagation(Model):
        matrix: tuple[MatrixEntry, ...] | None

else:
    _keys = {key: owner for table in TABLES.values() for key, owner in table["properties"].items() if key != "model"}
    _own = {"matrix": Annotated[tuple[MatrixEntry, ...], BeforeValidator(as_tuple)]}
    Propagation = create_model(
        "Propagation", __base__=Model, __module__=__name__, __doc__=Model.__doc__, **owned.fields(_keys, _own, required=False)
    )


def as_propagation(value: object) -> object:
    """A name as a table with that model."""
    return {"model": value} if isinstance(value, str) else value
