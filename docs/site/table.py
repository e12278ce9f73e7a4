"""Rows and cells of a Markdown table, and text that is not Markdown."""

import re

CODE = re.compile(r"(`[^`]*`)")


def row(*cells: str) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"


def cell(text: str) -> str:
    """A text in one cell: on one line, its pipes and angle brackets escaped."""
    return prose(" ".join(text.split())).replace("|", "\\|")


def prose(text: str) -> str:
    """The text with the angle brackets escaped that are not within code."""
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in CODE.split(text))
