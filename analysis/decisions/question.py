"""A question of an experiment (`[[questions]]`, formats/scenario.md): which two cells are compared, by which metric, and the
smallest difference that matters."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from keys.models import KeyProblem, Strict

VARIANT = "variant"
MAX_PAIRS = 50  # without seeds of the full size
ENOUGH = 30  # pairs from which Student's t decides: an event of one pair in ten is missed by 0.9^30 = 4.2 %
SEEDS_FOR_T = ENOUGH + 2  # of the first look by Student's t: two pairs may be lost to runs that do not count


class Question(Strict):
    """The keys of the table. `compared` and `with` are values of `key`; a `reference` takes the place of `with`. Axes that
    `where` does not name give a question for each combination of their values. `range`: the largest difference that a pair can
    have, in the metric's unit, either way (analysis/decisions/rule.py)."""

    model_config = ConfigDict(populate_by_name=True)
    question: str
    claim: Literal["more", "less", "same"]
    metric: str
    compared: str | int | float | bool | None = None
    base: str | int | float | bool | None = Field(default=None, alias="with")
    reference: Literal["published", "ns2"] | None = None
    key: str = VARIANT
    where: dict[str, Any] = Field(default_factory=dict)
    matters: Annotated[float, Field(gt=0)]
    range: Annotated[float, Field(gt=0)] | None = None
    max_pairs: Annotated[int, Field(ge=2, le=10_000)] | None = None
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.base is None) == (self.reference is None):
            raise KeyProblem(("with",), 'needs one of with = VALUE and reference = "published" or "ns2"')
        if self.reference is None and self.compared is None:
            raise KeyProblem(("compared",), "is missing; name the value that is compared")
        if self.reference is None and self.compared == self.base:
            raise KeyProblem(("with",), f"is {self.base} as compared is; name two values of {self.key}")
        if self.range is not None and self.range < self.matters:
            text = f"is {self.range:g}, less than matters = {self.matters:g}; give the largest difference that a pair can have"
            raise KeyProblem(("range",), text)
        if self.key in self.where:
            raise KeyProblem(
                ("where", self.key), f"is the key that is compared; leave it out, or compare by another key than {self.key}"
            )
        return self

    @property
    def edge(self) -> float:
        """The difference from which the answer is `more` or `less`: a claim of equality fails only beyond what matters."""
        return self.matters if self.claim == "same" else 0.0

    def applies(self, cell: Mapping[str, Any]) -> bool:
        """Whether a cell (values of the axes and `variant`) is where the question is asked."""
        return all(cell.get(key) == value for key, value in self.where.items())
