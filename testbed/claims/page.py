"""docs/claims.md from docs/claims.toml: a table of all claims, then each with its answers.

In a `note`, `{NAME}` is the number NAME of the claim in its usual form, `{NAME.FORM}` in another one (numbers.py): interval,
runs, percent, pairs. `{NAME|TEXT}` is TEXT while neither rows nor a table have the number, and `{|TEXT}` always. A TEXT is marked
as not recomputable, a number of a table of means as such, both at the first use of a name in a claim; one of rows has no mark.
"""

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from record.files import write_atomic
from testbed.campaigns.library import names
from testbed.claims import verdicts
from testbed.claims.numbers import NONE, ROWS, TABLES, Numbers
from testbed.claims.source import SOURCE, Answer, Asked, Between, Claim, Claims, Paper, read
from testbed.claims.verdicts import CANNOT, DECIDED, UNDECIDED, Margin, Part, Verdict
from testbed.errors import UsageError
from testbed.programs import ROOT

PAGE = ROOT / "docs" / "claims.md"
PLACE = re.compile(r"\{(?P<name>[a-z0-9_]*)(?:\.(?P<form>[a-z]+))?(?:\|(?P<text>[^{}]*))?\}")
MARKS = {ROWS: "", TABLES: "‡", NONE: "†"}
KINDS = {ROWS: "from kept rows", TABLES: "from tables of means", NONE: "not recomputable"}
NOTE = (
    "Made from [claims.toml](claims.toml) by `./manet report --claims`. Numbers without a mark are computed from kept rows "
    "([runs.csv](../formats/kept-rows.md) of each experiment). ‡: from a committed table of means, whose runs are not kept. "
    "†: of an earlier campaign or a single run; not recomputable until rows exist, and no claim is decided by it."
)
CHECK = (
    "**To check one claim**, take the name of its experiment from the link in its row, here `NAME`. `./manet report "
    "--claims` computes this page again from the kept rows (seconds; `git diff` shows what differs). By hand: pair the `valid` "
    "rows of two cells by `seed`, in all of `docs/results/*/runs.csv`, since a run that another experiment keeps of the same "
    "`scenario` counts too; an answer ends with the look that decided it, so later seeds are in no pair. `./manet campaign "
    "NAME --quick --fresh` measures again, until the experiment's questions are decided or `--time 1h` is over, with the "
    "answers in `results/campaign-NAME-quick/report.html`. Question, cells, metric and margin are in `claims.toml` and "
    "`experiments/NAME.toml`."
)
OURS = "ours: no paper says it"


@dataclass
class Page:
    """The page of the claims, and how many of its numbers are from each source."""

    claims: Claims
    numbers: Numbers
    sources: Counter[str] = field(default_factory=Counter)

    def text(self) -> str:
        """The page. UsageError for a number that is not defined, has no such form, or is not shown."""
        self.sources.clear()
        judged = [[verdicts.verdict(claim, self.numbers) for claim in paper.claims] for paper in self.claims.papers]
        tables = [self._table(paper, each) for paper, each in zip(self.claims.papers, judged, strict=True) if each]
        parts = [f"# {self.claims.title}", self.claims.head.strip(), NOTE, CHECK, self._summary(judged), *tables]
        parts += [_margins(part.margin for each in judged for verdict in each for part in verdict.parts), f"{self.line()}."]
        return "\n\n".join(filter(None, parts)) + "\n"

    def line(self) -> str:
        """The numbers by source, in words."""
        counted = (f"{self.sources[kind]} {label}" for kind, label in KINDS.items())
        return f"{self.sources.total()} numbers: {', '.join(counted)}"

    def _summary(self, judged: Sequence[Sequence[Verdict]]) -> str:
        """The table of all claims: how many of each paper are decided."""
        by_paper = [
            (paper.short, [verdict for claim, verdict in zip(paper.claims, each, strict=True) if not claim.ours])
            for paper, each in zip(self.claims.papers, judged, strict=True)
        ]
        papers = [verdict for _, each in by_paper for verdict in each]
        ours = [
            verdict for paper, each in zip(self.claims.papers, judged, strict=True)
            for claim, verdict in zip(paper.claims, each, strict=True) if claim.ours
        ]  # fmt: skip
        rows = [*by_paper, ("all papers", papers), (OURS, ours)]
        head = "| | claims | decided | yes | in part | no | undecided | pairs that would decide | cannot be |"
        return "\n".join([head, "|---|---|---|---|---|---|---|---|---|", *(_counts(name, each) for name, each in rows if each)])

    def _table(self, paper: Paper, judged: Sequence[Verdict]) -> str:
        rows = [
            f"| {paper.short} {number} | {claim.claim} ({claim.of}{'; ours' if claim.ours else ''}) | {verdict.holds} "
            f"| {self._measured(claim, verdict)} | {claim.differs} |"
            for number, (claim, verdict) in enumerate(zip(paper.claims, judged, strict=True), 1)
        ]
        table = "\n".join(["| | claim | holds? | measured | what differs |", "|---|---|---|---|---|", *rows])
        return "\n\n".join(filter(None, [f"## {paper.heading}", paper.before.strip(), table, paper.after.strip()]))

    def _measured(self, claim: Claim, verdict: Verdict) -> str:
        several = len(verdict.parts) > 1
        texts = [self._part(part, several) for part in verdict.parts]
        if len(texts) > 1 and all(part.source == NONE for part in verdict.parts):
            texts = [f"{len(texts)} comparisons: {verdicts.NO_ROWS}"]
        texts += [claim.cannot] if claim.cannot else []
        texts += [f"[{Path(claim.read).name}]({claim.read})"] if claim.read else []
        places = dict.fromkeys(name for answer in claim.answers for name in _experiments(answer))
        links = ", ".join(f"[{name}]({_page_of(name)})" for name in places)
        return (
            "; ".join(filter(None, texts)) + (f" ({links})" if links else "") + (f". {self._note(claim)}" if claim.note else "")
        )

    def _part(self, part: Part, several: bool) -> str:
        if part.source != NONE:
            self.sources[part.source] += 1
        label = f"{part.label}: " if part.label else ""
        verdict = f", {part.verdict}" if several and part.source != NONE else ""
        return f"{label}{part.text}{MARKS[part.source] if part.source != NONE else ''}{verdict}"

    def _note(self, claim: Claim) -> str:
        numbers = {name: self.numbers.find(number) for name, number in claim.numbers.items()}
        marked = set[tuple[str, str]]()

        def replacement(match: re.Match[str]) -> str:
            name, form = match["name"], match["form"] or ""
            if name and name not in numbers:
                raise UsageError(f'claims.toml, "{claim.claim}": there is no number "{name}"; define it in its numbers')
            formatted = numbers.get(name)
            text, source = (formatted.forms.get(form), formatted.source) if formatted is not None else (match["text"], NONE)
            if not text:
                raise UsageError(f'claims.toml, "{claim.claim}": {match[0]} has no value; give a text that stands for it')
            self.sources[source] += 1
            mark = "" if name and (name, source) in marked else MARKS[source]
            marked.add((name, source))
            return text + mark

        note = PLACE.sub(replacement, claim.note)
        unused = sorted(numbers.keys() - {match["name"] for match in PLACE.finditer(claim.note)})
        if unused:
            raise UsageError(f'claims.toml, "{claim.claim}": does not show its number "{unused[0]}"; leave it out')
        return note


def _counts(name: str, judged: Sequence[Verdict]) -> str:
    states = Counter(verdict.state for verdict in judged)
    holds = Counter(verdict.holds for verdict in judged if verdict.state == DECIDED)
    opened = [verdict for verdict in judged if verdict.state == UNDECIDED]
    needed = sorted(verdict.needed for verdict in opened if verdict.needed)
    unknown = len(opened) - len(needed)
    opened_text = [f"{needed[0]} to {needed[-1]}" if len(needed) > 1 else f"{needed[0]}"] if needed else []
    opened_text += [f"{unknown} not known yet"] if unknown else []
    part = holds["in part"] + holds["not everywhere"]
    cells = [len(judged), states[DECIDED], holds["yes"], part, states[DECIDED] - holds["yes"] - part, states[UNDECIDED]]
    return f"| {name} | {' | '.join(map(str, cells))} | {'; '.join(opened_text)} | {states[CANNOT]} |"


def _experiments(answer: Answer) -> list[str]:
    if isinstance(answer, Between):
        return [answer.compared.experiment, answer.base.experiment]
    return [answer.experiment]


def _page_of(experiment: str) -> str:
    page = f"results/{experiment}/README.md"
    return page if (PAGE.parent / page).exists() else f"../experiments/{experiment}.toml"


def _margins(margins: Iterable[Margin | None]) -> str:
    """The differences that matter, each with its reason and the experiments that ask with it."""
    distinct = sorted({margin for margin in margins if margin is not None})
    groups: dict[tuple[str, str, str], list[str]] = {}
    for margin in distinct:
        groups.setdefault((margin.metric, margin.text, margin.reason), []).append(margin.experiment)
    if not groups:
        return ""
    rows = [
        f"| `{metric}` | {text} | {', '.join(dict.fromkeys(names))} | {reason} |"
        for (metric, text, reason), names in sorted(groups.items())
    ]
    lead = 'A difference below its margin does not matter: the answer is then "no difference that matters".'
    return "\n".join(["## Margins", "", lead, "", "| metric | margin | experiments | reason |", "|---|---|---|---|", *rows])


def make(source: Path = SOURCE, numbers: Numbers | None = None) -> Page:
    """The page of a file of claims."""
    claims, numbers = read(source), numbers or Numbers()
    for paper in claims.papers:
        for pattern in paper.experiments:
            for name in fnmatch.filter(names(), pattern):
                paper.claims.extend(_questions_of(name, numbers))
    return Page(claims, numbers)


def _questions_of(experiment: str, numbers: Numbers) -> list[Claim]:
    asked = dict.fromkeys(each.asked.question.question for each in numbers.load(experiment, "quick").answers)
    return [Claim(claim=text, of=experiment, answers=[Asked(experiment=experiment, question=text)], ours=True) for text in asked]


def write() -> Page:
    """Write the page of docs/claims.toml."""
    page = make(SOURCE)
    write_atomic(PAGE, page.text())
    return page
