"""docs/claims.md from docs/claims.toml: the words of the file, with the numbers computed.

`{NAME}` in `measured` is the number NAME of the claim in its usual form, `{NAME.FORM}` in another one (numbers.py): pairs, end,
percent, answer, compared, with, runs, interval, lost. `{NAME|TEXT}` is TEXT while neither rows nor a table have the number, and
`{|TEXT}` always. A TEXT is marked as not recomputable, a number of a table of means as such, both at the first use of a name in a
claim; a number of kept rows needs no mark.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from analysis.files import write_atomic
from testbed.claims.numbers import NONE, ROWS, TABLES, Numbers
from testbed.claims.source import PAGE, SOURCE, Claim, Claims, Paper, read
from testbed.errors import UsageError

PLACE = re.compile(r"\{(?P<name>[a-z0-9_]*)(?:\.(?P<form>[a-z]+))?(?:\|(?P<text>[^{}]*))?\}")
MARKS = {ROWS: "", TABLES: "‡", NONE: "†"}
KINDS = {ROWS: "from kept rows", TABLES: "from tables of means", NONE: "not recomputable"}
NOTE = (
    "Made from [claims.toml](claims.toml) by `./manet report --claims`. Numbers without a mark are computed from kept rows "
    "([runs.csv](../formats/kept-rows.md) of each experiment). ‡: from a committed table of means, whose runs are not kept. "
    "†: of an earlier campaign or a single run; not recomputable until rows exist."
)


@dataclass
class Page:
    """The page of the claims, and how many of its numbers are from each source."""

    claims: Claims
    numbers: Numbers
    sources: Counter[str] = field(default_factory=Counter)

    def text(self) -> str:
        """The page. UsageError for a number that is not defined, has no such form, or is not shown."""
        self.sources.clear()
        tables = [self._table(paper) for paper in self.claims.papers]
        parts = [f"# {self.claims.title}", self.claims.head.strip(), NOTE, *tables, f"{self.line()}."]
        return "\n\n".join(parts) + "\n"

    def line(self) -> str:
        """The numbers by source, in words."""
        counted = (f"{self.sources[kind]} {words}" for kind, words in KINDS.items())
        return f"{self.sources.total()} numbers: {', '.join(counted)}"

    def _table(self, paper: Paper) -> str:
        rows = [f"| {claim.claim} | {claim.holds} | {self._measured(claim)} |" for claim in paper.claims]
        table = "\n".join(["| claim | holds? | measured |", "|---|---|---|", *rows])
        return "\n\n".join(filter(None, [f"## {paper.heading}", paper.before.strip(), table, paper.after.strip()]))

    def _measured(self, claim: Claim) -> str:
        found = {name: self.numbers.find(number) for name, number in claim.numbers.items()}
        marked = set[tuple[str, str]]()

        def words(match: re.Match[str]) -> str:
            name, form = match["name"], match["form"] or ""
            if name and name not in found:
                raise UsageError(f'claims.toml, "{claim.claim}": there is no number "{name}"; define it in its numbers')
            known = found.get(name)
            text, source = (known.forms.get(form), known.source) if known is not None else (match["text"], NONE)
            if not text:
                raise UsageError(f'claims.toml, "{claim.claim}": {match[0]} has no value; give a text that stands for it')
            self.sources[source] += 1
            mark = "" if name and (name, source) in marked else MARKS[source]
            marked.add((name, source))
            return text + mark

        made = PLACE.sub(words, claim.measured)
        unused = sorted(found.keys() - {match["name"] for match in PLACE.finditer(claim.measured)})
        if unused:
            raise UsageError(f'claims.toml, "{claim.claim}": does not show its number "{unused[0]}"; leave it out')
        return made


def make(source: Path = SOURCE, numbers: Numbers | None = None) -> Page:
    """The page of a file of claims."""
    return Page(read(source), numbers or Numbers())


def write() -> Page:
    """Write the page of docs/claims.toml."""
    page = make(SOURCE)
    write_atomic(PAGE, page.text())
    return page
