"""GitHub's Markdown as Python-Markdown takes it: contents of list items four columns further in, a blank line before lists and
tables."""

import re

ITEM = re.compile(r"^( *)([-*+]|\d+[.)])( +)(?=\S)")
FENCE = re.compile(r"^ *(```+|~~~+)")
COLUMNS = 4  # by which Python-Markdown wants the contents of an item indented
CODE = re.compile(r"(`+)(.+?)\1")


def adapted(text: str) -> str:
    """The text of a page in Python-Markdown's dialect."""
    return "\n".join(_Page().lines(text.split("\n")))


class _Page:
    """The list items that contain the current line, each by the column of its contents."""

    def __init__(self) -> None:
        self.columns: list[int] = []
        self.fence = ""
        self.out: list[str] = []

    def lines(self, lines: list[str]) -> list[str]:
        for line in lines:
            self._add(line)
        return self.out

    def _add(self, line: str) -> None:
        if self.fence:
            mark = FENCE.match(line)
            if mark and mark[1].startswith(self.fence) and line.strip() == mark[1]:
                self.fence = ""
            self._put(line)
        elif not line.strip():
            self.out.append("")
        elif mark := FENCE.match(line):
            self._leave(_indent(line))
            self.fence = mark[1]
            self._put(line)
        elif (item := ITEM.match(line)) and not self._wrapped(line, item):
            self._item(line, item)
        else:
            self._paragraph(line)

    def _item(self, line: str, item: re.Match[str]) -> None:
        if _indent(line) >= (self.columns[-1] if self.columns else 0) + COLUMNS:  # indented code
            return self._put(line)
        begins = not self.columns
        self._leave(_indent(line))
        if begins and self.out and self.out[-1].strip():
            self.out.append("")
        self.out.append(" " * COLUMNS * len(self.columns) + item[2].replace(")", ".") + " " + _pipes(line[item.end() :]))
        self.columns.append(item.end())

    def _wrapped(self, line: str, item: re.Match[str]) -> bool:
        """Whether the line goes on with a paragraph and happens to begin with a number and a period."""
        inside = _indent(line) >= (self.columns[-1] if self.columns else 0)
        return self._lazy() and inside and item[2][0].isdigit() and int(item[2][:-1]) != 1

    def _paragraph(self, line: str) -> None:
        lazy = self._lazy()
        if not lazy:
            self._leave(_indent(line))
        table = line.lstrip().startswith("|")
        if table and lazy and not self.out[-1].lstrip().startswith("|"):
            self.out.append("")
        self._put(_pipes(line) if table else line)

    def _lazy(self) -> bool:
        """Whether the line before belongs to a paragraph, an item or a table that this line may continue."""
        return bool(self.out and self.out[-1].strip())

    def _leave(self, indent: int) -> None:
        while self.columns and indent < self.columns[-1]:
            self.columns.pop()

    def _put(self, line: str) -> None:
        """The line, as far inside of its list item as it was."""
        column = self.columns[-1] if self.columns else 0
        inside = line[min(column, _indent(line)) :]
        self.out.append(" " * COLUMNS * len(self.columns) + inside if inside.strip() else "")


def _pipes(line: str) -> str:
    r"""A row of a table; within code GitHub writes `\|` for a pipe, Python-Markdown `|`."""
    return CODE.sub(lambda code: code[0].replace("\\|", "|"), line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
