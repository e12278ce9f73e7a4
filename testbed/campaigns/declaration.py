"""The tables of an experiment's file (formats/scenario.md), with the checks that need neither size nor request."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from analysis.decisions.question import VARIANT, Question
from keys.errors import did_you_mean, shortened
from keys.models import Strict, as_tuple
from keys.toml_lines import Path as KeyPath
from scenarios.document import Document
from scenarios.refusal import validated
from testbed.campaigns.expectations import Expected
from testbed.campaigns.figures import is_own

# entries of a folder of results other than cells, and of a cell other than seeds
RESERVED_NAMES = {"void", "experiment.json", "table.csv", "summary.csv", "runs.parquet", "flows.parquet", "answers.json"}
FILE_ENDINGS = (".csv", ".json", ".png", ".pdf", ".svg", ".html")
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


class Variant(Strict):
    """A named alternative: keys that replace the scenario's."""

    name: str = Field(pattern=NAME)
    set: dict[str, Any] = Field(default_factory=dict)


class Plot(Strict):
    """The general figure: what it shows, and its size and words, for a page or a paper's column."""

    metric: str | None = None  # of summary.csv; None: the first that is printed
    x_label: str | None = Field(None, max_length=200)
    y_label: str | None = Field(None, max_length=200)
    width: float | None = Field(None, ge=1.5, le=20)  # in
    height: float | None = Field(None, ge=1, le=20)  # in
    legend: dict[str, str] = Field(default_factory=dict)  # words for values of axes and names of variants
    origin: bool = True  # whether the line with the runs stands below


class Tables(Strict):
    """The tables of the file. `full` and `quick` also take scenario keys, hence are plain tables here."""

    question: str
    source: str | None = None
    figure: str | None = None
    plot: Plot | None = None
    published: str | None = None
    ns2: str | None = None
    shown: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = ()  # printed before the metrics of the traffic kinds
    expected: bool = False  # whether throughput is compared with the expected throughput of the movement (testbed/curves)
    scenario: dict[str, Any]
    flow_sets: dict[str, list[dict[str, Any]]] = Field(default_factory=dict)
    axes: dict[str, list[Any]] = Field(default_factory=dict)
    variants: Annotated[tuple[Variant, ...], BeforeValidator(as_tuple)] = ()
    full: dict[str, Any] = Field(default_factory=dict)
    quick: dict[str, Any] = Field(default_factory=dict)
    expect: Expected = Expected()
    questions: Annotated[tuple[Question, ...], BeforeValidator(as_tuple)] = ()  # what a campaign decides


@dataclass(frozen=True)
class Declaration:
    """The tables, and the document that later errors name."""

    document: Document
    tables: Tables

    @classmethod
    def of(cls, document: Document) -> "Declaration":
        """The checked declaration; UsageError names the file and the key of what is wrong."""
        declaration = cls(document, validated(Tables, document.tables, document.refusal))
        declaration._check_variants()
        declaration._check_expectations()
        for index, name in enumerate(declaration.tables.shown):
            declaration._check_metric(("shown", index), name)
        declaration._check_questions()
        declaration._check_plot()
        return declaration

    @property
    def figure(self) -> str | None:
        """The figure's name, or the full path of a user's own: relative to the file that names it."""
        written = self.tables.figure
        if written is None or not is_own(written):
            return written
        place = self.document.place(("figure",))
        return str(((place.path if place else self.document.path).parent / written).resolve())

    def _check_plot(self) -> None:
        plot = self.tables.plot
        if plot is None:
            return
        if self.tables.figure is not None:
            raise self.document.refusal(("plot",), "is of the general figure; remove it, or the key figure")
        if plot.metric is not None:
            self._check_metric(("plot", "metric"), plot.metric)

    def _check_variants(self) -> None:
        seen: set[str] = set()
        for index, name in enumerate(variant.name for variant in self.tables.variants):
            if name in RESERVED_NAMES or name.endswith(FILE_ENDINGS):
                text = f'"{name}" is a file or folder of the results; give the variant another name'
                raise self.document.refusal(("variants", index, "name"), text)
            if name in seen:
                text = f'two variants are named "{name}"; give each its own name'
                raise self.document.refusal(("variants", index, "name"), text)
            seen.add(name)

    def _check_expectations(self) -> None:
        variants = {variant.name for variant in self.tables.variants}
        for index, check in enumerate(self.tables.expect.checks):
            unknown = next((name for name in check.variants or () if name not in variants), None)
            if unknown is not None:
                text = f'there is no variant "{unknown}"; the variants are {", ".join(sorted(variants))}'
                raise self.document.refusal(("expect", "checks", index, "variants"), text)

    def _check_metric(self, path: KeyPath, name: str) -> None:
        from analysis.tables.results import METRICS  # imports Polars, which many experiments do not need here

        if name not in METRICS:
            hint = did_you_mean(name, METRICS) or "use one of summary.csv (formats/results.md)"
            raise self.document.refusal(path, f'there is no metric "{shortened(name)}"; {hint}')

    def _check_questions(self) -> None:
        """Check that the metrics, values and axes of the questions exist at one of the sizes."""
        values = self._values()
        for index, question in enumerate(self.tables.questions):
            path: KeyPath = ("questions", index)
            self._check_metric((*path, "metric"), question.metric)
            if question.reference is not None and getattr(self.tables, question.reference) is None:
                text = f'the experiment names no table "{question.reference}"; add {question.reference} = NAME at the top'
                raise self.document.refusal((*path, "reference"), text)
            if question.key not in values:
                text = f'"{shortened(question.key)}" is no axis; give one of {", ".join(values)}'
                raise self.document.refusal((*path, "key"), text)
            named = {"compared": (question.key, question.compared), "with": (question.key, question.base)}
            places: list[tuple[KeyPath, str, Any]] = [((key,), *of) for key, of in named.items() if of[1] is not None]
            places += [(("where", key), key, value) for key, value in question.where.items()]
            for place, key, value in places:
                if value not in values.get(key, ()):
                    existing = ", ".join(map(str, values[key])) if values.get(key) else "none"
                    text = f'the experiment has no {key} "{shortened(str(value))}"; there are: {existing}'
                    raise self.document.refusal((*path, *place), text)

    def _values(self) -> dict[str, list[Any]]:
        """The values of each axis at any size, and the names of the variants."""
        values: dict[str, list[Any]] = {key: list(axis_values) for key, axis_values in self.tables.axes.items()}
        for size in (self.tables.full, self.tables.quick):
            for key, axis_values in (size.get("axes") or {}).items():
                values.setdefault(key, []).extend(axis_values)
        return values | {VARIANT: [variant.name for variant in self.tables.variants]}
