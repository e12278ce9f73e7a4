"""The subject of a page, in one of four states: a folder, or a run that is planned, live or recorded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from testbed.view.live import LiveRun
from testbed.view.planned import PlannedRun
from testbed.view.recorded import RecordedRun

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


Viewed = Run | Folder


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
