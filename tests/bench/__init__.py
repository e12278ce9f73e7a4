"""How fast and how punctual the testbed is on this machine: `make bench`.

Nothing here passes or fails, since the figures are as much the machine's as ours; the aims stand beside them.
One file for each question, each with `measure() -> Table`.
"""

from dataclasses import dataclass, field


@dataclass
class Table:
    """What one question gave: `aim` is what the project wants on two cores."""

    title: str
    columns: list[str]
    aim: str
    rows: list[list[str | float]] = field(default_factory=list)
