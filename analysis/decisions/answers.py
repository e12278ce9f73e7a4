"""The answers to an experiment's questions from its runs (answers.json, formats/answers.md).

An answer follows from the runs alone: the looks are replayed from the first one, so that a campaign that was interrupted answers
as an undisturbed one. A question that a look has decided keeps its answer, whatever later seeds of its cells say.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from analysis.decisions.question import ENOUGH, SEEDS_FOR_T, VARIANT, Question
from analysis.decisions.rule import Answer, Method, Outcome, Rule, answer, collapses
from analysis.references import Reference, references_of
from analysis.tables.digits import rounded
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import METRICS, Row, plain, standing
from record.files import read_object, write_atomic

FORMAT = "manet-answers/1"
FILE = "answers.json"
FIRST_LOOK = 4  # seeds at the first look, at least: three degrees of freedom
GROWTH = 1.5  # of the seeds from one look to the next
ENDED = ("complete", "failed")  # status of a run that has ended; one that was interrupted has not
HOLDS = {  # claim and outcome -> whether the claim holds
    ("more", Outcome.MORE): True, ("more", Outcome.LESS): False,
    ("less", Outcome.LESS): True, ("less", Outcome.MORE): False,
    ("same", Outcome.SAME): True, ("same", Outcome.MORE): False, ("same", Outcome.LESS): False,
}  # fmt: skip


def schedule(first: int, limit: int) -> list[int]:
    """The numbers of seeds at which one looks: `first` (at least FIRST_LOOK), then half as many again each time, up to `limit`.
    From ENOUGH seeds on there is none before that of SEEDS_FOR_T."""
    looks = [min(max(first, FIRST_LOOK), limit)]
    while looks[-1] < limit:
        seeds = max(looks[-1] + 1, round(looks[-1] * GROWTH))
        if looks[-1] < SEEDS_FOR_T and seeds >= ENOUGH:
            seeds = SEEDS_FOR_T
        looks.append(min(limit, seeds))
    return looks


@dataclass(frozen=True)
class Asked:
    """A question in one place: the cells compared, each as the values of axes and variant. `base` is a cell, or the reference
    value."""

    question: Question
    where: dict[str, Any]
    compared: dict[str, Any]
    base: dict[str, Any] | float

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells whose runs it needs."""
        return [self.compared, self.base] if isinstance(self.base, dict) else [self.compared]


@dataclass(frozen=True)
class Answered:
    """A question with its answer at the last look. `seeds`: the seeds of the next look, None if there is none (decided, or at the
    limit of seeds)."""

    asked: Asked
    max_pairs: int
    answer: Answer
    looks: list[int] = field(default_factory=list)
    means: tuple[float, float] | None = None
    seeds: int | None = None
    emulated_s: float = 0.0  # of the runs up to the last look

    @property
    def verdict(self) -> str:
        """`holds`, `does not hold`, `no difference that matters` or `undecided`."""
        holds = HOLDS.get((self.asked.question.claim, self.answer.outcome))
        return str(self.answer.outcome) if holds is None else "holds" if holds else "does not hold"

    @property
    def method(self) -> str:
        """How the interval was found, in words; empty without one."""
        return in_words(self.answer.method, self.answer.bounds)

    def line(self) -> str:
        """One line: question, answer, difference with its interval, pairs, and what an open question would take."""
        question, answer = self.asked.question, self.answer
        place = ", ".join(f"{key} {value}" for key, value in self.asked.where.items() if key != VARIANT or value)
        text = f"{question.question}{f' ({place})' if place else ''}: {self.verdict}"
        if answer.mean is not None:
            mean, low, high = (rounded(value, "+") for value in (answer.mean, answer.low, answer.high))
            text += f"; {question.metric} {mean} {METRICS[question.metric][0]} [{low}, {high}]"
        text += f", {answer.pairs} {'pair' if answer.pairs == 1 else 'pairs'}"
        text += f", {self.method}" if self.method else ""
        text += f"; it would take about {answer.needed}" if answer.needed else ""
        return text + (f"; its next look needs seeds 1 to {self.seeds} of each cell" if self.seeds else "")

    def to_json(self) -> dict[str, Any]:
        """An entry of answers.json."""
        question, answer, reference = self.asked.question, self.answer, self.asked.question.reference
        compared = self.asked.compared.get(question.key) if question.compared is None else question.compared
        return {
            "question": question.question,
            "claim": question.claim,
            "metric": question.metric,
            "unit": METRICS[question.metric][0],
            "compared": compared,
            "with": reference or question.base,
            "key": None if reference else question.key,
            "where": self.asked.where,
            "matters": question.matters,
            "range": question.range,
            "confidence": question.confidence,
            "max_pairs": self.max_pairs,
            "outcome": str(answer.outcome),
            "answer": self.verdict,
            "pairs": answer.pairs,
            "mean_compared": self.means[0] if self.means else None,
            "mean_with": self.means[1] if self.means else None,
            "difference": answer.mean,
            "low": answer.low,
            "high": answer.high,
            "method": None if answer.method is None else str(answer.method),
            "bounds": answer.bounds,
            "needed": answer.needed,
            "looks": self.looks,
            "emulated_s": round(self.emulated_s, 1),
        }


def in_words(method: str | None, bounds: tuple[float, float] | None) -> str:
    """`Student's t`, `bounds of the runs -640 to +450`; empty without a method."""
    if method is None or bounds is None:
        return ""
    if method == Method.FEW:
        return f"Student's t of fewer than {ENOUGH} pairs: assumes that no rare event was missed"
    return "Student's t" if method == Method.T else f"{method} {rounded(bounds[0], '+')} to {rounded(bounds[1], '+')}"


def answers_of(description: Mapping[str, Any], rows: Sequence[Row]) -> list[Answered]:
    """The answers of an experiment (experiment.json) by its runs, the rows of table.csv."""
    if not description.get("questions"):
        return []
    by_cell = seeds_of_cells(rows, [*description["axes"], VARIANT])
    return [answer_by_seed(each, by_cell, *description["looks"]) for each in asked_of(description)]


def asked_of(description: Mapping[str, Any]) -> list[Asked]:
    """The questions of an experiment (experiment.json), each in each place."""
    questions = [Question.model_validate(each) for each in description.get("questions", ())]
    return asked(questions, list(values_of_cells(description).values()), references_of(description)) if questions else []


def chosen_cells(description: Mapping[str, Any]) -> set[str]:
    """The names of the cells whose runs an experiment (experiment.json) has: all, or with `asked_only` those that a question
    compares."""
    cells = values_of_cells(description)
    if not description.get("asked_only"):
        return set(cells)
    compared = [cell for each in asked_of(description) for cell in each.cells]
    return {name for name, values in cells.items() if values in compared}


def values_of_cells(description: Mapping[str, Any]) -> dict[str, Row]:
    """By the name of each cell, the values of its axes and its variant."""
    axes = description["axes"]
    return {
        cell["name"]: {axis: plain(cell["axes"].get(axis)) for axis in axes} | {VARIANT: cell["variant"] or ""}
        for cell in description["cells"]
    }


def answers_in(out_dir: Path) -> list[Answered]:
    """The answers of the experiment in a folder of results, by its runs and kept rows; none without questions."""
    description = read_object(out_dir / "experiment.json")
    if not description.get("questions"):
        return []
    return answers_of(description, rows_in(out_dir, tuple(description["axes"])))


def asked(questions: Iterable[Question], cells: Sequence[Row], references: Mapping[str, Reference | None]) -> list[Asked]:
    """Each question in each place: `cells` have the values of all axes and `variant` of the experiment's cells. A question
    without cells of its values is not asked."""
    return [each for question in questions for each in _places(question, cells, references)]


def _places(question: Question, cells: Sequence[Row], references: Mapping[str, Reference | None]) -> list[Asked]:
    places = []
    for cell in cells:
        if not question.applies(cell) or (question.compared is not None and cell.get(question.key) != question.compared):
            continue
        base: dict[str, Any] | float | None
        if question.reference is not None:
            table = references.get(question.reference)
            base = table.value(question.metric, cell) if table else None
            where = {key: value for key, value in cell.items() if value != ""}
        else:
            base = next((dict(other) for other in cells if other == {**cell, question.key: question.base}), None)
            where = {key: value for key, value in cell.items() if key != question.key and value != ""}
        if base is not None:
            places.append(Asked(question, where, dict(cell), base))
    return places


# The runs that have ended, by the values of a cell and by seed. A campaign adds to it what each round brings.
ByCell = Mapping[tuple[Any, ...], Mapping[int, Row]]


def seeds_of_cells(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], dict[int, Row]]:
    """The rows of runs that have ended, by the values of `keys` and by seed."""
    found: dict[tuple[Any, ...], dict[int, Row]] = {}
    for row in rows:
        if row["status"] in ENDED:
            found.setdefault(tuple(row.get(key) for key in keys), {})[row["seed"]] = row
    return found


def answer_by_seed(each: Asked, by_cell: ByCell, first: int, max_seeds: int, before: Answered | None = None) -> Answered:
    """The answer by the runs that have ended. `first`: seeds of the first look; `max_seeds`: the limit of a question without its
    own; `before`: the answer by the same runs without the newest ones, whose looks are not replayed."""
    limit = each.question.max_pairs or max_seeds
    rule = Rule(each.question.matters, max(2, limit), each.question.confidence, each.question.edge, each.question.range)
    by_seed = [by_cell.get(tuple(cell.values()), {}) for cell in each.cells]
    last, looks, means, emulated_s = Answer(Outcome.UNDECIDED, 0), list[int](), None, 0.0
    if before is not None:
        last, looks, means, emulated_s = before.answer, list(before.looks), before.means, before.emulated_s
    begun = 0 if before is None else before.seeds or limit + 1
    for seeds in (seeds for seeds in schedule(first, limit) if seeds >= begun):
        if not all(seed in runs for runs in by_seed for seed in range(1, seeds + 1)):
            return Answered(each, limit, last, looks, means, seeds, emulated_s)
        values = _values(each, by_seed, seeds)
        if not values or (looks and len(values) <= looks[-1]):
            continue  # no new pair is of valid runs
        looks.append(len(values))
        emulated_s = sum(runs[seed].get("emulated_s", 0.0) for runs in by_seed for seed in range(1, seeds + 1))
        means = (fmean(one for one, _ in values), fmean(other for _, other in values))
        last = answer(rule, looks, [one - other for one, other in values], collapses(values))
        if last.outcome != Outcome.UNDECIDED:
            break
    return Answered(each, limit, last, looks, means, None, emulated_s)


def _values(each: Asked, by_seed: Sequence[Mapping[int, Row]], seeds: int) -> list[tuple[float, float]]:
    """Both values of each pair of valid runs, as kept rows count (a suspect run may be in a mean, and decides nothing); the
    reference stands in each pair."""
    metric = each.question.metric
    values = list[tuple[float, float]]()
    for seed in range(1, seeds + 1):
        compared, *others = [runs[seed][metric] if standing(runs[seed]) == "valid" else None for runs in by_seed]
        base = each.base if isinstance(each.base, float) else others[0]
        if compared is not None and base is not None:
            values.append((compared, base))
    return values


def write_answers(out_dir: Path, experiment: str, answers: Iterable[Answered]) -> Path:
    """Write answers.json; returns its path."""
    path = out_dir / FILE
    content = {"format": FORMAT, "experiment": experiment, "answers": [each.to_json() for each in answers]}
    write_atomic(path, json.dumps(content, indent=1) + "\n")
    return path


def cells_wanted(answers: Iterable[Answered]) -> dict[tuple[tuple[str, Any], ...], int]:
    """The seeds that each cell of an open question needs at its next look."""
    wanted: dict[tuple[tuple[str, Any], ...], int] = {}
    for each in answers:
        for cell in each.asked.cells if each.seeds else ():
            key = tuple(cell.items())
            wanted[key] = max(wanted.get(key, 0), each.seeds or 0)
    return wanted
