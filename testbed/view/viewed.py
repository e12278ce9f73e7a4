"""A folder of runs, or an experiment, before one of its runs is chosen."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Folder:
    """Its answer to the first question of the page."""

    title: str
    kind: str = "campaign"

    def about(self) -> dict[str, Any]:
        """`/api/run`."""
        return {"kind": self.kind, "title": self.title, "control": False, "running": False}
