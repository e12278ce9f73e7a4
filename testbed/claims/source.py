"""docs/claims.toml: the papers' claims, the words about them, and the results that their numbers are computed from."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from analysis.decisions.question import VARIANT
from analysis.files import read_text
from scenarios.models import STRICT
from testbed.errors import UsageError
from testbed.programs import ROOT

SOURCE, PAGE = ROOT / "docs" / "claims.toml", ROOT / "docs" / "claims.md"
Size = Literal["quick", "full"]


class Source(BaseModel):
    """What all numbers have. `where`: values of axes and variant that select one place; the number is shown times `scale`, with
    `digits` behind the point, or with three digits in all."""

    model_config = STRICT
    experiment: str
    where: dict[str, Any] = Field(default_factory=dict)
    size: Size = "quick"
    scale: float = 1.0
    digits: int | None = None


class Answer(Source):
    """The answer to a question of an experiment, by its kept rows."""

    question: str


class Mean(Source):
    """The mean of a metric in a cell: by its kept rows, else of the committed `table`."""

    mean: str
    table: str = "summary.csv"


class Pair(Source):
    """The mean difference of a metric (`pair`) between two values of an axis or the variant (`key`), seed by seed: by kept rows,
    else of the committed `table`."""

    pair: str
    compared: str | int | float
    base: Annotated[str | int | float, Field(alias="with")]
    key: str = VARIANT
    table: str = "pairs.csv"


Number = Answer | Mean | Pair


class Claim(BaseModel):
    """A row of the page. `measured` has the numbers as {NAME.FORM|FALLBACK}: see page.py."""

    model_config = STRICT
    claim: str
    holds: str
    measured: str
    numbers: dict[str, Number] = Field(default_factory=dict)


class Paper(BaseModel):
    """A table of the page, with Markdown before and behind it."""

    model_config = STRICT
    heading: str
    before: str = ""
    after: str = ""
    claims: list[Claim]


class Claims(BaseModel):
    """The file."""

    model_config = STRICT
    title: str
    head: str
    papers: list[Paper]


def read(path: Path = SOURCE) -> Claims:
    """The claims of the file; UsageError names the first wrong key."""
    try:
        return Claims.model_validate(tomllib.loads(read_text(path)))
    except tomllib.TOMLDecodeError as problem:
        raise UsageError(f"{path}: is no TOML: {problem}") from None
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False)[0]
        raise UsageError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
