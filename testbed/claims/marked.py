"""The part of a page that is computed: it stands between two lines of the page, the rest of which is written by hand."""

from pathlib import Path

from record.files import read_text, write_atomic
from testbed.errors import UsageError


def lines(name: str) -> tuple[str, str]:
    """The two lines around the part."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def with_part(page: Path, name: str, part: str) -> str:
    """The page with its part. UsageError for a page without the two lines."""
    begin, end = lines(name)
    before, begun, rest = read_text(page).partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise UsageError(f"{page}: has no {begin} and {end}; the tables stand between them")
    return f"{before}{begin}\n{part}\n{end}{after}"


def write(page: Path, content: str) -> None:
    """Write the page if it changed."""
    if content != read_text(page):
        write_atomic(page, content)


def table(head: list[str], rows: list[str]) -> str:
    """A table of Markdown; `rows` are lines (row)."""
    return "\n".join([row(head), "|" + "---|" * len(head), *rows])


def row(cells: list[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"
