"""How fast and how punctual the testbed is on this machine: `make bench`.

Nothing here passes or fails, since the figures depend on the machine as much as on the code; the aims stand beside them.
One file for each question, each with `measure() -> Table`.
"""

from dataclasses import dataclass, field


@dataclass
class Table:
    """The answer to one question; `aim` is the project's aim on two cores."""

    title: str
    columns: list[str]
    aim: str
    rows: list[list[str | float]] = field(default_factory=list)
