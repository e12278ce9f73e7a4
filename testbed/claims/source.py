"""docs/claims.toml: the papers' claims, and the results by which each is answered."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from analysis.decisions.question import VARIANT
from keys.models import Strict
from record.files import read_text
from testbed.errors import UsageError
from testbed.programs import ROOT

SOURCE = ROOT / "docs" / "claims.toml"
Size = Literal["quick", "full"]
Value = str | int | float


class Selection(Strict):
    """Cells of an experiment: those where the axes and the variant have these values."""

    experiment: str
    where: dict[str, Any] = Field(default_factory=dict)
    size: Size = "quick"


class Asked(Selection):
    """The answers to a question of the experiment, in each place where it is asked. Without kept rows they follow from the
    differences of the committed `table`, if it is named: it must be of the same scenario."""

    question: str
    label: str = ""
    table: str | None = None


class Level(Selection):
    """The mean of a metric in a cell lies from `least` to `most`: by kept rows, else by the committed `table`."""

    mean: str
    least: float | None = None
    most: float | None = None
    label: str = ""
    table: str | None = "summary.csv"


class Between(Strict):
    """Two cells, which may be of two experiments, seed by seed: by kept rows, in a single look."""

    metric: str
    claim: Literal["more", "less", "same"]
    compared: Selection
    base: Annotated[Selection, Field(alias="with")]
    matters: Annotated[float, Field(gt=0)]
    reason: str
    label: str = ""


class Some(Selection):
    """In some run the metric is above or below a value, or in none (`never`). With `compared` and `with`, values of `key`: the
    difference of the two cells of a seed."""

    some: str
    above: float | None = None
    below: float | None = None
    never: bool = False
    compared: Value | None = None
    base: Annotated[Value | None, Field(alias="with")] = None
    key: str = VARIANT
    label: str = ""


class Mean(Selection):
    """A number of the page: the mean of a metric in a cell, by its kept rows, else of the committed `table`. It is shown times
    `scale`, with `digits` behind the point, or with three digits in all."""

    mean: str
    table: str = "summary.csv"
    scale: float = 1.0
    digits: int | None = None


class Pair(Selection):
    """A number of the page: the mean difference of a metric (`pair`) between two values of an axis or the variant (`key`), seed
    by seed, by kept rows, else of the committed `table`."""

    pair: str
    compared: Value
    base: Annotated[Value, Field(alias="with")]
    key: str = VARIANT
    table: str = "pairs.csv"
    scale: float = 1.0
    digits: int | None = None


Answer = Asked | Level | Between | Some
Number = Mean | Pair


class Claim(Strict):
    """A claim, in our words, `of` a figure, table or section. It has one of

    - `answers`: results from which follows whether it holds; it holds if all of them say so;
    - `read` and `holds`: a committed file that shows it, and what it shows;
    - `cannot`: why these experiments cannot answer it.

    `note`: Markdown about the results, with numbers as {NAME.FORM|FALLBACK} (page.py). `differs`: what differs from the paper's
    set-up. `ours`: the paper does not say it."""

    claim: str
    of: str
    answers: list[Answer] = Field(default_factory=list)
    read: str | None = None
    holds: Literal["yes", "no", "in part"] | None = None
    cannot: str | None = None
    note: str = ""
    differs: str = ""
    ours: bool = False
    numbers: dict[str, Number] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = [bool(self.answers), self.read is not None, self.cannot is not None]
        if sum(ways) != 1 or (self.holds is None) != (self.read is None):
            raise ValueError(f'"{self.claim}": needs one of answers, cannot, and read with holds')
        if self.read is not None and not (ROOT / "docs" / self.read).exists():
            raise ValueError(f'"{self.claim}": docs/{self.read} does not exist; name a committed file')
        return self


class Paper(Strict):
    """A table of the page, with Markdown before and behind it. `short` begins the numbers of its claims. Each question of the
    `experiments` (names, or patterns such as "today-*") is a claim of ours, without a word here."""

    short: str
    heading: str
    before: str = ""
    after: str = ""
    experiments: list[str] = Field(default_factory=list)
    claims: list[Claim] = Field(default_factory=list)


class Claims(Strict):
    """The file."""

    title: str
    head: str
    papers: list[Paper]

    def of(self, kind: type) -> Iterator[Any]:
        """All answers of a kind."""
        for paper in self.papers:
            for claim in paper.claims:
                yield from (answer for answer in claim.answers if isinstance(answer, kind))


def read(path: Path = SOURCE) -> Claims:
    """The claims of the file; UsageError names the first wrong key."""
    try:
        return Claims.model_validate(tomllib.loads(read_text(path)))
    except tomllib.TOMLDecodeError as problem:
        raise UsageError(f"{path}: is no TOML: {problem}") from None
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False)[0]
        raise UsageError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
