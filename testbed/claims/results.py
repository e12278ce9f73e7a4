"""The answers on the pages of results, docs/results/NAME/README.md (`manet report --claims`).

A table has each question of the experiment at quick size with its answer by the kept rows, as docs/claims.md has it: one
comparison has one answer, however many pairs the campaign behind a page had. A page without the lines around the table has none.
"""

from collections.abc import Iterable
from pathlib import Path

from analysis.decisions.answers import Answered
from analysis.decisions.question import ENOUGH
from analysis.decisions.rule import Method
from record.files import read_text
from testbed.campaigns import kept
from testbed.claims import marked
from testbed.claims.numbers import Numbers
from testbed.claims.verdicts import NO_ROWS, difference_of, needed_of, place_of

PART = "answers"
METHODS = {Method.T: "Student's t", Method.FEW: "few pairs", Method.RANGE: "bounds", Method.RUNS: "bounds"}
RULE = "[how a campaign decides](../../campaigns.md#when-it-stops)"


def pages() -> list[Path]:
    """The pages that have a place for answers."""
    begin, _ = marked.lines(PART)
    return [page for page in sorted(kept.FOLDER.glob("*/README.md")) if begin in read_text(page)]


def text(page: Path, numbers: Numbers) -> str:
    """The page with its table."""
    return marked.with_part(page, PART, table(numbers.load(page.parent.name, "quick").answers))


def write() -> str:
    """Write the pages whose tables changed; returns their number and that of their answers, in words."""
    numbers, answers = Numbers(kept.FOLDER), 0
    for page in (found := pages()):
        marked.write(page, text(page, numbers))
        answers += len(numbers.load(page.parent.name, "quick").answers)
    return f"{answers} answers on {len(found)} pages"


def table(answers: Iterable[Answered]) -> str:
    """The answers that have rows, what their intervals are by, and how many questions have no rows."""
    every = [(each, difference_of(each)) for each in answers]
    shown = [(each, difference) for each, difference in every if difference is not None]
    missing = len(every) - len(shown)
    notes = []
    if shown:
        methods = {each.answer.method for each, _ in shown}
        notes.append(f"Intervals of 95 % for each answer, however many looks it took ({RULE}).")
        if methods & {Method.RUNS, Method.RANGE}:
            notes.append("*Bounds* reckon with a collapse that no pair has shown, so they are wide.")
        if Method.FEW in methods:
            notes.append(
                f"*Few pairs*: of fewer than {ENOUGH}, which decide by bounds only; the answer is open even if its interval has "
                "no zero."
            )
    if missing:
        notes.append(f"{missing} {'comparison has' if missing == 1 else 'comparisons have'} {NO_ROWS}.")
    head = ["question", "of", "difference", "pairs", "interval by", "answer"]
    rows = [
        marked.row([each.asked.question.question, place_of(each.asked.where), difference, *_answer(each)])
        for each, difference in shown
    ]
    return "\n\n".join(filter(None, [marked.table(head, rows) if rows else "", " ".join(notes)]))


def _answer(each: Answered) -> list[str]:
    method = each.answer.method
    return [str(each.answer.pairs), METHODS[method] if method else "", f"{each.verdict}{needed_of(each)}"]
