"""The time limit of a campaign (`--time`): a deadline in a file beside the batches of a round.

A worker reads the file before each start of a run, so that the limit of a later call also holds for a worker that an earlier call
left. The deadline is absolute (Unix time, s): the nodes of a cluster need clocks that agree, as NTP keeps them.
"""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record.files import read_object, write_atomic

FILE = "deadline.json"


@dataclass(frozen=True)
class TimeLimit:
    """The end of a campaign's starts, infinite without `--time`. `now`: Unix time, s."""

    deadline_s: float = math.inf
    now: Callable[[], float] = time.time

    @classmethod
    def of(cls, folder: Path, now: Callable[[], float] = time.time) -> "TimeLimit":
        """The limit of a round in its folder."""
        return cls(read_object(folder / FILE).get("deadline", math.inf), now)

    @property
    def is_reached(self) -> bool:
        """Whether no further run may start."""
        return self.now() >= self.deadline_s

    def write(self, folder: Path) -> None:
        """Set the limit of a round; an earlier one is replaced."""
        if self.deadline_s == math.inf:
            (folder / FILE).unlink(missing_ok=True)
        else:
            write_atomic(folder / FILE, json.dumps({"deadline": self.deadline_s}) + "\n")


@dataclass(frozen=True)
class Cut:
    """The round that the limit ended: `not_started` of its `runs` were not started or wait for their rerun."""

    round: int
    runs: int
    not_started: int

    def line(self) -> str:
        """The end and its remedy, in one line."""
        some = f"{self.not_started} of {self.runs} runs of round {self.round} were not started"
        return f"the time limit ended the campaign: {some}; the same command goes on, with a new --time or without"

    def to_json(self) -> dict[str, Any]:
        """`time_limit` of campaign.json."""
        return {"round": self.round, "runs": self.runs, "not_started": self.not_started}
