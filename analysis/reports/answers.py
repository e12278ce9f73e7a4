"""The questions of an experiment with their answers and repeated intervals: answers.json (formats/answers.md)."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from analysis.decisions.answers import in_words
from analysis.tables.digits import exact, rounded
from record.errors import RunFileError
from record.files import read_bytes

NAME = "answers.json"
FORMAT = "manet-answers/1"
MINUS = "\N{MINUS SIGN}"
OTHERS = {"published": "the published value", "ns2": "ns-2.35"}

Text = Annotated[str, BeforeValidator(exact)]  # of an axis


class AnswerEntry(BaseModel):
    """A question with its answer. Means, `difference`, `low` and `high` are in `unit`; None with too few pairs."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)
    question: str
    claim: str
    metric: str
    unit: str
    compared: Text
    matters: float
    answer: str
    outcome: str
    confidence: float = 0.95
    pairs: int
    base: Text = Field("", alias="with")
    key: str | None = None
    where: dict[str, Any] = {}
    max_pairs: int | None = None
    mean_compared: float | None = None
    mean_with: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    method: str | None = None
    bounds: tuple[float, float] | None = None
    needed: int | None = None
    looks: list[int] = []
    wall_s: float | None = None
    emulated_s: float | None = None

    @property
    def comparison(self) -> str:
        """`elfn-2s minus reno, speed 20`; `speed 30 minus 2`."""
        axis = f"{self.key} " if self.key not in (None, "variant") else ""
        return ", ".join(filter(None, (f"{axis}{self.compared} minus {OTHERS.get(self.base, self.base)}", self.place)))

    @property
    def place(self) -> str:
        """`speed 20`: the other axes and the variant."""
        return ", ".join(f"{key} {value}" for key, value in self.where.items())

    @property
    def interval(self) -> str:
        """`5.8 [1.2, 10.4] %`; empty without a difference."""
        if self.difference is None:
            return ""
        within = "" if self.low is None or self.high is None else f" [{_number(self.low)}, {_number(self.high)}]"
        return f"{_number(self.difference)}{within} {self.unit}".strip()

    @property
    def how(self) -> str:
        """`Student's t`, `bounds of the runs -640 to +450`: how the interval was found; empty in files without it."""
        return in_words(self.method, self.bounds).replace("-", MINUS)

    @property
    def means(self) -> str:
        """`61 and 55.2 %`; empty without both."""
        if self.mean_compared is None or self.mean_with is None:
            return ""
        return f"{_number(self.mean_compared)} and {_number(self.mean_with)} {self.unit}".strip()

    @property
    def smallest(self) -> str:
        """`5 %`: the smallest difference that matters."""
        return f"{exact(self.matters)} {self.unit}".strip()

    @property
    def tone(self) -> str:
        """The class of its mark on the page."""
        return {"holds": "good", "does not hold": "bad", "undecided": "open"}.get(self.answer, "even")


class Answers(BaseModel):
    """The answers of an experiment; empty without questions."""

    model_config = ConfigDict(frozen=True)
    answers: list[AnswerEntry] = []

    @property
    def confidence(self) -> float:
        """The lowest confidence of the answers' intervals, which each of them has at least."""
        return min((each.confidence for each in self.answers), default=0.95)

    def timed(self, pace: float | None) -> "Answers":
        """These answers with the wall time of each at `pace` emulated seconds a second, where the file gives none."""
        if pace is None:
            return self
        timed = [
            each.model_copy(update={"wall_s": each.emulated_s / pace}) if each.wall_s is None and each.emulated_s else each
            for each in self.answers
        ]
        return self.model_copy(update={"answers": timed})


class _File(Answers):
    format: Literal["manet-answers/1"]


def read_answers(directory: Path) -> Answers:
    """The answers in a folder of results, none without the file; RunFileError if it has another format."""
    path = directory / NAME
    if not path.exists():
        return Answers()
    try:
        return _File.model_validate_json(read_bytes(path))
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RunFileError(f"{path}: is no {FORMAT} ({where}: {first['msg']}); `manet campaign` writes it again") from None


def _number(value: float) -> str:
    return rounded(value).replace("-", MINUS)
