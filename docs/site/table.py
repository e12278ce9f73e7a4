"""Rows and cells of a Markdown table."""


def row(*cells: str) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"


def cell(text: str) -> str:
    """A text in one cell: on one line, its pipes and angle brackets escaped."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
