"""Which runs a campaign wants next: an automaton without files and without a clock.

Each run enters once, when it has ended; what is wanted and what is answered follows from all that entered. A round costs what it
brought: a run that entered earlier is not looked at again, but in the pairs of questions that are still open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.decisions.answers import (
    ENDED,
    Answered,
    answer_by_seed,
    asked_of,
    cells_wanted,
    chosen_cells,
    seeds_of_cells,
    values_of_cells,
)
from analysis.decisions.question import VARIANT
from analysis.tables.results import counts
from testbed.campaigns.cells import Cell
from testbed.campaigns.task import Task

OF_ALL = ("seed", "status", "verdict", "emulated_s")
Values = tuple[Any, ...]  # of a cell: its axes' and its variant's
Row = Mapping[str, Any]  # of table.csv


@dataclass
class MemberPlan:
    """The runs of one experiment. `description`: the content of its experiment.json; `seeds`: of the size; `kept`: rows of
    earlier runs that count as done, by cell and seed."""

    experiment: str
    description: Mapping[str, Any]
    cells: Sequence[Cell]
    seeds: int
    directory: Path
    kept: Mapping[tuple[str, int], Row] = field(default_factory=dict)
    _by_cell: dict[Values, dict[int, Row]] = field(default_factory=dict)
    _answers: dict[int, Answered] = field(default_factory=dict)  # the last ones, by the question's number
    _wanted: dict[str, int] = field(default_factory=dict)  # seeds of each cell up to which runs were wanted
    _open: dict[tuple[str, int], Task] = field(default_factory=dict)  # wanted, and not over
    _over: set[tuple[str, int]] = field(default_factory=set)  # runs that will not be repeated

    def __post_init__(self) -> None:
        self._keys = [*self.description["axes"], VARIANT]
        self._asked = asked_of(self.description)
        self._values = {name: tuple(values.values()) for name, values in values_of_cells(self.description).items()}
        chosen = chosen_cells(self.description)
        self._chosen = [cell for cell in self.cells if cell.name in chosen]
        self._columns = {*OF_ALL, *self._keys, *(each.question.metric for each in self._asked)}
        self._by_cell = seeds_of_cells(map(self._part, self.kept.values()), self._keys)

    def ended(self, cell: str, seed: int, row: Row | None, is_over: bool) -> None:
        """A run has ended. `row`: of table.csv, None for a run that is left out of all tables; `is_over`: it is not repeated."""
        if is_over:
            self._over.add((cell, seed))
            self._open.pop((cell, seed), None)
        if row is not None and row["status"] in ENDED and (counts(row) or (cell, seed) not in self.kept):
            runs = self._by_cell.setdefault(self._values[cell], {})
            if seed in runs:
                self._answers.clear()  # a look may have counted the row that is replaced
            runs[seed] = self._part(row)

    def answers(self) -> list[Answered]:
        """The answers so far. A look that took place is not replayed, and a question that it decided stays decided."""
        first, limit = self.description["looks"] if self._asked else (0, 0)
        for number, each in enumerate(self._asked):
            before = self._answers.get(number)
            if before is None or before.seeds is not None:
                self._answers[number] = answer_by_seed(each, self._by_cell, first, limit, before)
        return [self._answers[number] for number in range(len(self._asked))]

    def wanted(self) -> list[Task]:
        """The runs that the size and the open questions want and that have not ended."""
        more, seeds = cells_wanted(self.answers()), dict[str, int]()
        for cell in self._chosen:
            key = tuple(zip(self._keys, self._values[cell.name], strict=True))
            seeds[cell.name] = max(self.seeds, more.get(key, 0))
            before = self._wanted.get(cell.name, 0)
            for seed in range(before + 1, seeds[cell.name] + 1):
                if (cell.name, seed) not in self.kept and (cell.name, seed) not in self._over:
                    directory = self.directory / cell.name / f"seed-{seed}"
                    self._open[cell.name, seed] = Task(self.experiment, cell, seed, directory)
            self._wanted[cell.name] = max(before, seeds[cell.name])
        return [task for (cell_name, seed), task in self._open.items() if seed <= seeds[cell_name]]

    def _part(self, row: Row) -> Row:
        """The columns that answers need, of some 150: a campaign may have a million runs."""
        return {key: row[key] for key in self._columns if key in row}


def next_round(members: Sequence[MemberPlan]) -> list[Task]:
    """The runs that the experiments want, all cells of all of them at one seed before the next seed: a round that the time limit
    ends is balanced."""
    places = {
        (member.directory, cell.name): place
        for place, (member, cell) in enumerate((member, cell) for member in members for cell in member.cells)
    }
    tasks = [task for member in members for task in member.wanted()]
    return sorted(tasks, key=lambda task: (task.seed, places[task.results, task.cell.name]))
