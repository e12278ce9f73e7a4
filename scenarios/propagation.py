"""The keys `propagation` and `fading` of a scenario: a model's name, or a table with its keys, which are the medium's
(formats/medium.md). And `walls`.

The models, their keys and limits are those of formats/schema/medium.json: a new model of the medium needs no change here.
"""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, create_model, model_validator

from keys.models import KeyProblem, Strict, as_tuple
from keys.quantities import Coordinate
from scenarios import owned

LINKS_FILE = "links.csv"  # in a run's folder: the measured links that the medium reads


def _tables(key: str) -> dict[str, owned.Node]:
    return {table["properties"]["model"]["const"]: table for table in owned.node("medium", key)["oneOf"]}


TABLES, FADINGS = _tables("propagation"), _tables("fading")


class MatrixEntry(Strict):
    """Path loss between two stations for `propagation.model = "matrix"`."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    loss_db: Annotated[float, owned.number("medium", "propagation.matrix.loss_db")]


class Wall(Strict):
    """A wall of `walls`, as high as any station."""

    start: Annotated[tuple[Coordinate, Coordinate], BeforeValidator(as_tuple)] = Field(alias="from")
    end: Annotated[tuple[Coordinate, Coordinate], BeforeValidator(as_tuple)] = Field(alias="to")
    loss_db: Annotated[float, owned.number("medium", "walls.loss_db")]


class Selected(Strict):
    """A table of the medium that its key `model` selects."""

    OF: ClassVar[dict[str, owned.Node]]
    FIRST: ClassVar[str]  # the medium's default
    model: str

    @model_validator(mode="after")
    def _fits_model(self) -> Self:
        keys = {key: owner for key, owner in self.OF[self.model]["properties"].items() if key != "model"}
        required = set(self.OF[self.model]["required"]) - {"model"}
        given_keys = {key for key in type(self).model_fields if key != "model" and getattr(self, key) is not None}
        for key in sorted(given_keys - set(keys)):
            raise KeyProblem((key,), f'the model "{self.model}" has no "{key}"; remove it')
        for key in sorted(required - given_keys):
            raise KeyProblem((), f'the model "{self.model}" needs "{key}"; add it')
        for key in sorted(set(keys) - given_keys):
            default = keys[key].get("default")
            object.__setattr__(self, key, float(default) if type(default) is int else default)
        return self

    def for_medium(self) -> dict[str, Any]:
        """The object in medium.json."""
        return self.model_dump(by_alias=True, exclude_none=True, mode="json")


class Model(Selected):
    """Received power as a function of distance, or of links as given."""

    OF = TABLES
    FIRST = next(iter(TABLES))
    model: Annotated[str, owned.OneOf(tuple(TABLES))] = FIRST

    def for_medium(self) -> dict[str, Any]:
        """The object `propagation` of medium.json; a file of links is there under its name in the run's folder."""
        own = super().for_medium()
        return {**own, "file": LINKS_FILE} if "file" in own else own


class FadingModel(Selected):
    """Small-scale fading of each link."""

    OF = FADINGS
    FIRST = next(iter(FADINGS))
    model: Annotated[str, owned.OneOf(tuple(FADINGS))] = FIRST


if TYPE_CHECKING:

    class Propagation(Model):
        matrix: tuple[MatrixEntry, ...] | None
        file: str | None

    class Fading(FadingModel): ...

else:

    def _model(name: str, base: type[Selected], **own: Any) -> type[Selected]:
        keys = {key: owner for table in base.OF.values() for key, owner in table["properties"].items() if key != "model"}
        fields = owned.fields(keys, own, required=False)
        return create_model(name, __base__=base, __module__=__name__, __doc__=base.__doc__, **fields)

    Propagation = _model("Propagation", Model, matrix=Annotated[tuple[MatrixEntry, ...], BeforeValidator(as_tuple)])
    Fading = _model("Fading", FadingModel)


def as_model(value: object) -> object:
    """A name as a table with that model."""
    return {"model": value} if isinstance(value, str) else value
