"""Whether a claim holds: from the answers to its questions, and from means, pairs and single runs.

Nothing here is judged by hand. Intervals of kept rows are those of the campaigns' rule (analysis/decisions/rule.py), sequential
for a question and of a single look else; those of a committed table are Student's, as they stand there.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.decisions.answers import HOLDS, Answered
from analysis.decisions.question import VARIANT
from analysis.decisions.rule import Method, Outcome, Rule, answer, collapses, comparison, outcome_of
from analysis.tables.digits import rounded
from analysis.tables.results import METRICS
from record.files import read_text
from testbed.campaigns.library import find
from testbed.claims.numbers import NONE, ROWS, TABLES, Numbers, agrees
from testbed.claims.source import Answer, Asked, Between, Claim, Level, Selection, Some
from testbed.errors import UsageError

YES, NO, SAME, OPEN = "holds", "does not hold", "no difference that matters", "undecided"
DECIDED, UNDECIDED, CANNOT = "decided", "undecided", "cannot be"
SOME_RUNS = 20  # as many runs without a case say that it happens in less than 14 % of them (95 %)
MOST_PERCENT = 1000  # a larger share is of next to nothing, and says no more than the difference
NO_ROWS = "no rows yet"


@dataclass(frozen=True)
class Part:
    """One of a claim's answers in one place. `needed`: pairs that would decide it, if it is open and has any; `margin`: of its
    question."""

    verdict: str
    text: str
    source: str
    label: str = ""
    needed: int | None = None
    margin: "Margin | None" = None


@dataclass(frozen=True, order=True)
class Margin:
    """The smallest difference that matters in a question, in words, with its reason."""

    experiment: str
    metric: str
    text: str
    reason: str


@dataclass(frozen=True)
class Verdict:
    """The state of a claim, in words (`holds`), with its parts."""

    state: str
    holds: str
    parts: tuple[Part, ...] = ()

    @property
    def needed(self) -> int | None:
        """Pairs that the open part with the most needs; None if none is known."""
        return max((part.needed for part in self.parts if part.needed), default=None)


def verdict(claim: Claim, numbers: Numbers) -> Verdict:
    """Whether a claim holds."""
    if claim.cannot is not None:
        return Verdict(CANNOT, CANNOT)
    if claim.holds is not None:
        return Verdict(DECIDED, claim.holds)
    parts = tuple(part for answer in claim.answers for part in _parts(answer, numbers))
    return Verdict(*_together([part.verdict for part in parts]), parts)


def _together(verdicts: Sequence[str]) -> tuple[str, str]:
    """A claim holds if all its parts do, and fails with the first that does not."""
    kinds = set(verdicts)
    if kinds == {YES}:
        return DECIDED, "yes"
    if OPEN in kinds:
        return (DECIDED, "not everywhere") if kinds & {NO, SAME} else (UNDECIDED, UNDECIDED)
    return DECIDED, "in part" if YES in kinds else SAME if kinds == {SAME} else "no"


def _parts(answer: Answer, numbers: Numbers) -> Iterable[Part]:
    if isinstance(answer, Asked):
        return _asked(answer, numbers)
    if isinstance(answer, Level):
        return [_level(answer, numbers)]
    return [_between(answer, numbers)] if isinstance(answer, Between) else [_some(answer, numbers)]


def _asked(answer: Asked, numbers: Numbers) -> Iterable[Part]:
    sized = numbers.sized(answer)
    answered = [
        each for each in sized.answers
        if each.asked.question.question == answer.question and agrees(each.asked.where, answer.where)
    ]  # fmt: skip
    if not answered:
        text = f'claims.toml: {answer.experiment} ({answer.size}) asks no "{answer.question}" where {answer.where}; correct it'
        raise UsageError(text)
    reason = reason_of(answer.experiment, answer.question)
    for each in answered:
        margin = _margin(answer.experiment, each.asked.question.metric, each.asked.question.matters, reason)
        label = " ".join(filter(None, [answer.label, _difference(each, answered)]))
        yield _of_rows(each, label, margin) or _of_table(answer, each, numbers, label, margin)


def _difference(each: Answered, answered: Sequence[Answered]) -> str:
    """What distinguishes the place of an answer from those of the others."""
    places = [other.asked.where for other in answered]
    keys = [key for key, value in each.asked.where.items() if any(place.get(key) != value for place in places)]
    return place_of({key: each.asked.where[key] for key in keys})


def place_of(where: Mapping[str, Any]) -> str:
    """Values of axes and the variant, in words."""
    return ", ".join(_value(key, value) for key, value in where.items() if value != "")


def _value(key: str, value: Any) -> str:
    text = str(value).split("(")[0] if not isinstance(value, int | float) else f"{value:g}"
    if key == "speed":
        return f"{text} m/s"
    return text if key in (VARIANT, "tcp", "routing", "flows") else f"{key.rsplit('.', 1)[-1].replace('_', ' ')} {text}"


def difference_of(each: Answered) -> str | None:
    """The mean difference of an answer with its interval, and in percent of the cell that is compared with; None without one."""
    result, metric = each.answer, each.asked.question.metric
    if result.mean is None or each.means is None:
        return None
    share = 100 * result.mean / each.means[1] if each.means[1] and METRICS[metric][0] != "%" else None
    percent = f" ({share:+.0f} %)" if share is not None and abs(share) < MOST_PERCENT else ""
    return f"{_interval(metric, result.mean, result.low, result.high)}{percent}"


def _of_rows(each: Answered, label: str, margin: Margin) -> Part | None:
    result, difference = each.answer, difference_of(each)
    if difference is None:
        return None
    text = f"{difference}, {result.pairs} pairs{needed_of(each)}"
    return Part(each.verdict, text, ROWS, label, result.needed, margin)


def needed_of(each: Answered) -> str:
    """Behind the pairs of an open answer: how many would decide it, and whether its experiment asks for so many."""
    needed = each.answer.needed
    if not needed:
        return ""
    return f"; some {needed} would decide{f', above the limit of {each.max_pairs}' if needed > each.max_pairs else ''}"


def _of_table(answer: Asked, each: Answered, numbers: Numbers, label: str, margin: Margin) -> Part:
    question, axes = each.asked.question, numbers.sized(answer).axes
    chosen = answer.model_copy(update={"where": each.asked.where})
    row = None
    if answer.table is not None and isinstance(each.asked.base, float):
        row = _beside(numbers.mean_of_table(answer, each.asked.compared, question.metric), each.asked.base)
    elif answer.table is not None:
        row = numbers.pair_of_table(chosen, axes, question.key, question.compared, question.base, question.metric, answer.table)
    if row is None or row[1] == row[2]:  # no spread in a few runs says nothing about the next one
        return Part(OPEN, NO_ROWS, NONE, label, margin=margin)
    outcome = outcome_of(question.matters, question.edge, row[1], row[2])
    return Part(_in_words(question.claim, outcome), _interval(question.metric, *row), TABLES, label, margin=margin)


def _beside(row: Mapping[str, str] | None, reference: float) -> tuple[float, float, float] | None:
    """The difference of a mean of a table to a reference value, with the mean's interval."""
    if row is None or not row["ci95"]:
        return None
    difference, half = float(row["mean"]) - reference, float(row["ci95"])
    return difference, difference - half, difference + half


def _in_words(claim: str, outcome: Outcome) -> str:
    holds = HOLDS.get((claim, outcome))
    return str(outcome) if holds is None else YES if holds else NO


def _by_seed(numbers: Numbers, selection: Selection, where: Mapping[str, Any], metric: str) -> dict[int, float]:
    """The metric of the runs that count in a cell."""
    numbers.require_cell(selection, where)
    return {run["seed"]: run[metric] for run in numbers.sized(selection).counted(where) if run[metric] is not None}


def _both(compared: Mapping[int, float], base: Mapping[int, float]) -> list[tuple[float, float]]:
    """Both values of each seed that both cells have."""
    return [(compared[seed], base[seed]) for seed in sorted(compared.keys() & base.keys())]


def _level(level: Level, numbers: Numbers) -> Part:
    values, few = list(_by_seed(numbers, level, level.where, level.mean).values()), False
    if len(values) > 1:
        result = comparison(values, (0.0, max(values)))  # a run can carry nothing
        mean, low, high, source, count = result.mean, result.low, result.high, ROWS, len(values)
        few = result.method == Method.FEW
    elif (row := numbers.mean_of_table(level, level.where, level.mean)) and row["ci95"] and float(row["ci95"]):
        mean, count, source = float(row["mean"]), int(float(row["n"])), TABLES
        low, high = mean - float(row["ci95"]), mean + float(row["ci95"])
    else:
        return Part(OPEN, NO_ROWS, NONE, level.label)
    assert mean is not None and low is not None and high is not None
    text = _interval(level.mean, mean, low, high, "").replace(" points", " %")
    return Part(OPEN if few else _within(level, low, high), f"{text}, {count} runs", source, level.label)


def _within(level: Level, low: float, high: float) -> str:
    least, most = (float("-inf") if level.least is None else level.least), (float("inf") if level.most is None else level.most)
    if least <= low and high <= most:
        return YES
    return NO if high < least or low > most else OPEN


def _between(between: Between, numbers: Numbers) -> Part:
    both = _both(*(_by_seed(numbers, cell, cell.where, between.metric) for cell in (between.compared, between.base)))
    edge = between.matters if between.claim == "same" else 0.0
    margin = _margin(between.compared.experiment, between.metric, between.matters, between.reason)
    pairs = len(both)
    if pairs < 2:
        return Part(OPEN, NO_ROWS, NONE, between.label, margin=margin)
    result = answer(Rule(between.matters, pairs, edge=edge), (pairs,), [value - other for value, other in both], collapses(both))
    assert result.mean is not None and result.low is not None and result.high is not None
    mean = sum(other for _, other in both) / pairs
    percent = f" ({100 * result.mean / mean:+.0f} %)" if mean else ""
    text = f"{_interval(between.metric, result.mean, result.low, result.high)}{percent}, {pairs} pairs"
    return Part(_in_words(between.claim, result.outcome), text, ROWS, between.label, margin=margin)


def _some(some: Some, numbers: Numbers) -> Part:
    if some.compared is None:
        values, noun = list(_by_seed(numbers, some, some.where, some.some).values()), "runs"
    else:
        places = [{**some.where, some.key: value} for value in (some.compared, some.base)]
        both = _both(*(_by_seed(numbers, some, where, some.some) for where in places))
        values, noun = [a - b for a, b in both], "pairs"
    if not values:
        return Part(OPEN, NO_ROWS, NONE, some.label)
    cases = [
        value for value in values
        if (some.above is not None and value > some.above) or (some.below is not None and value < some.below)
    ]  # fmt: skip
    edge = f"above {in_unit(some.some, some.above)}" if some.above is not None else f"below {in_unit(some.some, some.below)}"
    reach = f"from {_in(some.some, min(values))} to {in_unit(some.some, max(values))}"
    text = f"{edge} in {len(cases)} of {len(values)} {noun} ({reach})"
    if cases:
        return Part(NO if some.never else YES, text, ROWS, some.label)
    enough = len(values) >= SOME_RUNS
    return Part((YES if some.never else NO) if enough else OPEN, text, ROWS, some.label)


def _margin(experiment: str, metric: str, matters: float, reason: str) -> Margin:
    return Margin(experiment, metric, in_unit(metric, matters), re.sub(rf"^{re.escape(METRICS[metric][0])}[:,] ", "", reason))


def _interval(metric: str, mean: float, low: float | None, high: float | None, sign: str = "+") -> str:
    ends = f"{_in(metric, low, sign)}, {_in(metric, high, sign)}"
    return f"{_in(metric, mean, sign)} [{ends}]{_unit(metric)}"


def in_unit(metric: str, value: float | None) -> str:
    """A value with its unit, as the page shows it."""
    return _in(metric, value) + _unit(metric)


def _in(metric: str, value: float | None, sign: str = "") -> str:
    scale = 100 if metric.endswith("delivery") else 0.001 if METRICS[metric][0] == "bit/s" else 1
    return rounded(None if value is None else scale * value, sign)


def _unit(metric: str) -> str:
    unit = METRICS[metric][0]
    if unit == "%" or metric.endswith("delivery"):
        return " points"
    return {"1": "", "bit/s": " kbit/s"}.get(unit, f" {unit}")


def reason_of(experiment: str, question: str) -> str:
    """The reason of a question's margin: the comment behind its `matters` in the experiment's file, or in its base."""
    path: Path | None = find(experiment)
    while path is not None:
        text = read_text(path)
        for block in text.split("[[questions]]")[1:]:
            if f'question = "{question}"' in block:
                comment = re.search(r"^matters = [^#\n]*#\s*(.*)$", block, re.MULTILINE)
                return comment[1].strip() if comment else ""
        base = tomllib.loads(text).get("base")
        path = path.parent / base if base else None
    return ""
