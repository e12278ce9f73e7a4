"""The subject of a page: the first page, a folder, or a run that is planned, live or recorded."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from record import records
from record.errors import RecordError
from testbed.campaigns.cells import Cell
from testbed.runs.verdict import verdict_of
from testbed.view.live import LiveRun
from testbed.view.planned import PlannedRun
from testbed.view.recorded import RecordedRun

KEYS = ("cell", "seed", "variant", "status", "started")  # of run.json, in a listing
TimedRun = PlannedRun | RecordedRun  # its whole time is known
Run = TimedRun | LiveRun


@dataclass(frozen=True)
class Folder:
    """A folder of runs, or an experiment, before one of its runs is chosen."""

    title: str
    kind: ClassVar[str] = "campaign"

    def about(self) -> dict[str, Any]:
        """`/api/run`."""
        return {"kind": self.kind, "title": self.title, "control": False, "running": False}


@dataclass(frozen=True)
class FirstPage(Folder):
    """What there is, before anything is chosen (home.py)."""

    contents: Callable[[], dict[str, Any]]
    picture: Callable[[str], dict[str, Any]]
    kind: ClassVar[str] = "home"


Viewed = Run | Folder


def entry_of(run: Path, name: str) -> dict[str, Any]:
    """A run that has begun, in a listing: `path` (its name), KEYS of its record, `verdict`; of one that cannot be read `path` and
    `error`."""
    try:
        record = records.read(run / records.RUN)
        verdict = verdict_of(run)
    except RecordError as problem:
        return {"path": name, "error": str(problem)}
    return {"path": name, **{key: record.get(key) for key in KEYS}, "verdict": verdict}


def planned_entry(cell: Cell, seed: int) -> dict[str, Any]:
    """A run that has not begun, with the same keys."""
    name = f"{cell.name}/seed-{seed}"
    known = {"path": name, "cell": cell.name, "seed": seed, "variant": cell.variant}
    return {**known, "status": "planned", "started": None, "verdict": None}


class Runs(Protocol):
    """The runs of a view. Methods raise ManetError or RecordError, one line each."""

    @property
    def title(self) -> str:
        """The name of what is shown."""

    @property
    def folder(self) -> Path:
        """The folder in which the runs are."""

    @property
    def control(self) -> bool:
        """Whether the page may act."""

    def viewed(self, name: str | None) -> Viewed:
        """The run of this name; None: the only one, or the folder."""

    def about(self, name: str | None) -> dict[str, Any]:
        """The keys that `/api/run` has beside those of the run: `control` and more."""

    def listing(self) -> list[dict[str, Any]] | None:
        """The runs to choose from; None for a single one."""

    def act(self, name: str | None, action: object) -> dict[str, Any]:
        """Carry out an action of the page."""
