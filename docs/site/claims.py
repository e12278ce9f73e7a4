"""The page of claims: counts of those that were met and not, from the rows of docs/validation.md, and each that was not met."""

import re
from dataclasses import dataclass

from docs.site.repository import ROOT
from docs.site.table import row

ROWS = ROOT / "docs" / "validation.md"
COLUMNS = ["claim", "command", "measured", "date", "compared with", "met?"]
KINDS = {
    "met": "met",
    "part": "met in part, or with a limit",
    "open": "undecided",
    "not": "not met",
    "none": "measured, without a bound",
}
HEAD = """# Claims, met and not

Counted from the rows of [docs/validation.md](../docs/validation.md), which have command, measurement and reference of each claim.
A row counts as *met* if its last column is "yes" alone; with any further word it is *met in part*.
Earlier measurements: [archive](../docs/archive/validation.md).
"""


@dataclass(frozen=True)
class Claim:
    """One row of docs/validation.md."""

    part: str
    text: str
    date: str
    answer: str

    @property
    def kind(self) -> str:
        """A key of KINDS."""
        answer = self.answer.lower()
        if answer in ("yes", "caught", "yes: no difference"):
            return "met"
        if answer in ("", "-") or answer.startswith(("comparison", "see the next")):
            return "none"
        if answer.startswith(("undecided", "incomplete", "compiled; not run")):
            return "open"
        return "not" if re.match(r"(no\b|not\b)", answer) else "part"


def page() -> str:
    """The page, in Markdown."""
    claims = read()
    return "\n".join([HEAD, *_counts(claims), "", "## Not met, or undecided", "", *_listed(claims, ("not", "open")), "",
                      "## Met in part, or with a limit", "", *_listed(claims, ("part",)), ""])  # fmt: skip


def read() -> list[Claim]:
    """All rows. Raises ValueError for a row that does not have the six columns."""
    found, part = [], ""
    for number, line in enumerate(ROWS.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("## "):
            part = line[3:]
        elif line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", _code_hidden(line))[1:-1]]
            if len(cells) != len(COLUMNS):
                raise ValueError(f"{ROWS}: line {number}: {len(cells)} columns instead of {len(COLUMNS)}; write a pipe as \\|")
            if cells != COLUMNS and not set(cells[0]) <= set("-: "):
                found.append(Claim(part, _code_shown(cells[0]), cells[3], _code_shown(cells[5])))
    return found


def _counts(claims: list[Claim]) -> list[str]:
    parts = list(dict.fromkeys(claim.part for claim in claims))
    lines = [row("part", *KINDS.values(), "rows"), row(*["---"] * (len(KINDS) + 2))]
    for part in parts:
        own = [claim for claim in claims if claim.part == part]
        lines.append(row(f"[{part}](../docs/validation.md#{_anchor(part)})", *_numbers(own)))
    return [*lines, row("**all**", *_numbers(claims))]


def _numbers(claims: list[Claim]) -> list[str]:
    kinds = [claim.kind for claim in claims]
    return [*(str(kinds.count(kind)) for kind in KINDS), str(len(claims))]


def _listed(claims: list[Claim], kinds: tuple[str, ...]) -> list[str]:
    wanted = [claim for claim in claims if claim.kind in kinds]
    rows = [row(claim.part, _linked(claim.text), claim.date, _linked(claim.answer)) for claim in wanted]
    return [row("part", "claim", "date", "met?"), row("---", "---", "---", "---"), *rows]


def _linked(text: str) -> str:
    """Links of docs/validation.md, from here."""
    return re.sub(r"\]\((?!https?:|\.\./|#)([^)]+)\)", r"](../docs/\1)", re.sub(r"\]\(#", "](validation.md#", text))


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _code_hidden(line: str) -> str:
    r"""The line with the pipes inside of code replaced, so that they do not separate columns; viewers need no backslash there."""
    return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "\0").replace("|", "\0"), line)


def _code_shown(text: str) -> str:
    return text.replace("\0", "\\|")
