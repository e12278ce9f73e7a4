"""A run to do, and how it came out: the values that a campaign's automata pass on."""

from dataclasses import dataclass
from pathlib import Path

from testbed.campaigns.cells import Cell


@dataclass(frozen=True)
class Task:
    """One run to do."""

    experiment: str
    cell: Cell
    seed: int
    directory: Path  # <results>/<cell>/seed-<n>

    @property
    def results(self) -> Path:
        """The experiment's folder of results."""
        return self.directory.parent.parent

    @property
    def name(self) -> str:
        """Cell and seed, as messages name the run."""
        return f"{self.cell.name} seed {self.seed}"

    @property
    def full_name(self) -> str:
        """The name with the experiment, if runs of several experiments are side by side."""
        return f"{self.experiment}/{self.name}"


@dataclass
class Outcome:
    """The outcome of a task; `voids` counts its void runs so far."""

    task: Task
    status: str  # complete | failed | interrupted | kept
    verdict: str = ""
    reason: str = ""
    voids: int = 0
    host_late: bool = False

    @property
    def should_rerun(self) -> bool:
        """Whether a rerun may come out better: the run is void, or the host was late."""
        if self.task.cell.scenario.clock == "virtual":
            return False  # independent of the host: a rerun gives the same result
        return self.host_late or (self.status == "complete" and self.verdict == "void")

    def text(self) -> str:
        """The outcome as text for the progress line."""
        if self.status in ("failed", "interrupted"):
            return f"{'void' if self.host_late else self.status}: {self.reason}"
        return (f"{self.status}, " if self.status == "kept" else "") + self.verdict
