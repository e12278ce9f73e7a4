"""What `manet view` shows: a recorded run, one under way, or a folder of runs; and the page that goes with it."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from analysis import records
from analysis.errors import AnalysisError
from analysis.found_runs import folders_of_runs
from testbed.errors import UsageError
from testbed.runs.under_way import under_way
from testbed.runs.verdict import verdict_of
from testbed.view.actions import Actions
from testbed.view.app import View
from testbed.view.live import UnderWay
from testbed.view.recorded import Recorded
from testbed.web.guard import Rules
from testbed.web.server import Listener

NICE = 10  # the run comes first
KEPT = 3  # runs of a folder whose files stay in memory


@dataclass
class Site:
    """The runs of a view by their paths below its folder; one run has the path `.`."""

    title: str
    folder: Path
    runs: list[Path]
    actions: Actions | None = None
    _open: dict[Path, Any] = field(default_factory=dict)

    def app(self, listener: Listener) -> ASGIApp:
        """The application. It gives way to everything else on this machine."""
        os.nice(NICE)
        methods = frozenset({"GET", "HEAD", "POST"}) if self.actions is not None else frozenset({"GET", "HEAD"})
        rules = Rules(listener.place, listener.token, lambda path: path == "/" or path.startswith("/static/"), methods)
        return View(self.viewed, self.actions, [self._entry(run) for run in self.runs] if len(self.runs) > 1 else None).app(rules)

    def viewed(self, name: str | None) -> Any:
        """The run of this path; without one the only run, or the folder. Raises UsageError."""
        if name is None and len(self.runs) > 1:
            return Folder(self.title)
        by_name = {self._name(run): run for run in self.runs}
        if name is not None and name not in by_name:
            raise UsageError(f"run={name[:100]}: is not one of this view's runs")
        directory = self.runs[0] if name is None else by_name[name]
        found = self._open.get(directory)
        if found is None or (isinstance(found, UnderWay) and not found.is_running):
            found = UnderWay(directory) if under_way(directory) is not None else Recorded(directory)
            self._open[directory] = found
            for old in list(self._open)[:-KEPT]:
                del self._open[old]
        return found

    def _name(self, run: Path) -> str:
        return str(run.relative_to(self.folder))

    def _entry(self, run: Path) -> dict[str, Any]:
        try:
            record = records.read(run / records.RUN)
            verdict = verdict_of(run)
        except AnalysisError as problem:
            return {"path": self._name(run), "error": str(problem)}
        return {
            "path": self._name(run), "cell": record.get("cell"), "seed": record.get("seed"), "variant": record.get("variant"),
            "status": record.get("status"), "verdict": verdict,
        }  # fmt: skip


@dataclass(frozen=True)
class Folder:
    """A folder of runs, before one is chosen."""

    title: str
    kind: str = "campaign"

    def about(self) -> dict[str, Any]:
        """`/api/run`."""
        return {"kind": self.kind, "title": self.title, "control": False, "running": False}


def site_of(what: str | None, *, control: bool = False) -> Site:
    """The site of a run's directory, of a folder of runs, or (None) of the run under way. Raises UsageError."""
    if what is None:
        state = under_way(None)
        assert state is not None
        folder = Path(state.directory)
    else:
        folder = Path(what).resolve()
        if not folder.is_dir():
            raise UsageError(f"{what}: there is no such folder; name a run's, results/NAME/CELL/seed-N, or a folder of runs")
    runs = [folder] if (folder / records.RUN).exists() else sorted(folders_of_runs(folder))
    if not runs:
        raise UsageError(f"{folder}: no run in it (no run.json); name the directory of a run, results/NAME/CELL/seed-N")
    if control and (len(runs) > 1 or under_way(runs[0]) is None):
        raise UsageError("--control: is for a run under way; start one, then `manet view --control`")
    return Site("/".join(folder.parts[-3:]), folder, runs, Actions(runs[0]) if control else None)
