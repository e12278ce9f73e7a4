"""The content of a report's page as plain data; every text is shown as it is, escaped by the template.

Only `Figure.markup` is markup: the project's own (inline_svg.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from analysis.reports.answers import Answers


@dataclass(frozen=True)
class Figure:
    """A figure inside of the page; `files` are (label, path relative to the page) of the same figure beside it."""

    markup: Markup
    caption: str
    files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class NumberTable:
    """Numbers as text; the first `names` columns name a row."""

    caption: str
    headings: tuple[str, ...]
    names: int
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class NamedRun:
    """A run that is not valid: `ending` is suspect, void, failed, interrupted, missing or left out."""

    run: str
    ending: str
    reason: str


@dataclass(frozen=True)
class Command:
    """A command line to copy; `of` says for what, such as a cell."""

    of: str
    line: str


@dataclass(frozen=True)
class ExpectedOutcome:
    """An outcome expected beforehand, with what was found: `word` is pass, FAIL or none."""

    word: str
    text: str
    detail: str


@dataclass(frozen=True)
class ExperimentPart:
    """An experiment on the page. `problem` says what could not be made; `verdict` is one word, `verdict_line` its meaning.
    `resume`: the command that adds the missing runs, empty if none is missing; `made_by`: the command that made the results."""

    anchor: str
    name: str
    question: str = ""
    source: str = ""
    size: str = ""
    problem: str = ""
    verdict: str = ""
    verdict_line: str = ""
    endings: tuple[tuple[str, int], ...] = ()
    answers: Answers = field(default_factory=Answers)
    forest: Figure | None = None
    figures: tuple[Figure, ...] = ()
    tables: tuple[NumberTable, ...] = ()
    outcome: str = ""
    checks: tuple[ExpectedOutcome, ...] = ()
    doubtful: tuple[NamedRun, ...] = ()
    remarks: tuple[str, ...] = ()
    provenance: tuple[tuple[str, str], ...] = ()
    resume: str = ""
    made_by: str = ""
    commands: tuple[Command, ...] = ()


@dataclass(frozen=True)
class PaperPart:
    """The experiments of a paper, by the code in front of their names."""

    anchor: str
    heading: str
    experiments: tuple[ExperimentPart, ...]


@dataclass(frozen=True)
class Page:
    """The whole page. `pace` are (label, value), `rounds` and `command` the campaign's."""

    title: str
    lead: str
    papers: tuple[PaperPart, ...]
    pace: Sequence[tuple[str, str]] = ()
    rounds: NumberTable | None = None
    command: Command | None = None

    @property
    def experiments(self) -> tuple[ExperimentPart, ...]:
        """Every experiment, in the order of the page."""
        return tuple(part for paper in self.papers for part in paper.experiments)
