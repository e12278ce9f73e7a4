"""The subjects of `manet view`: a recorded run, one under way, a folder of runs, or what could be run; and its page."""

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from record import records
from record.errors import RecordError
from record.found_runs import folders_of_runs, title_of
from testbed.campaigns.experiment import load
from testbed.campaigns.library import find
from testbed.campaigns.request import Request
from testbed.errors import UsageError, shortened
from testbed.runs.under_way import under_way
from testbed.view.actions import Actions
from testbed.view.app import View
from testbed.view.live import LiveRun
from testbed.view.open_runs import OpenRuns
from testbed.view.plan import Plan
from testbed.view.recorded import RecordedRun
from testbed.view.viewed import Folder, Runs, Viewed, entry_of
from testbed.web.guard import Rules
from testbed.web.server import NICE, Listener

KEPT = 3  # runs of a folder whose files stay in memory


@dataclass
class Site:
    """The runs of a view by their paths below its folder; one run has the path `.`."""

    title: str
    folder: Path
    runs: list[Path]
    actions: Actions | None = None
    _open: OpenRuns[LiveRun | RecordedRun] = field(default_factory=lambda: OpenRuns(KEPT))

    @property
    def control(self) -> bool:
        """Whether the page may act."""
        return self.actions is not None

    def read_ahead(self) -> None:
        """Begin to read the air log of a recorded run, and to compute what a page needs first, while the browser opens it."""
        if len(self.runs) > 1:
            return
        viewed = self.viewed(None)
        if isinstance(viewed, RecordedRun):
            threading.Thread(target=_read, args=(viewed,), daemon=True).start()

    def viewed(self, name: str | None) -> Viewed:
        """The run of this path; without one the only run, or the folder. Raises UsageError."""
        if name is None and len(self.runs) > 1:
            return Folder(self.title)
        directory = self._directory(name)

        def make() -> LiveRun | RecordedRun:
            return LiveRun(directory) if under_way(directory) is not None else RecordedRun(directory)

        return self._open.opened(directory, make, lambda run: not isinstance(run, LiveRun) or run.is_running)

    def _directory(self, name: str | None) -> Path:
        by_name = {self._name(run): run for run in self.runs}
        if name is not None and name not in by_name:
            raise UsageError(
                f"run={shortened(name)}: is not one of this view's runs; /api/campaign lists them, `.` is a single one"
            )
        return self.runs[0] if name is None else by_name[name]

    def about(self, _name: str | None) -> dict[str, Any]:
        """`control`: whether the run takes actions now; then the choices for a flow too."""
        if self.actions is None or not self.actions.are_possible:
            return {"control": False}
        return {"control": True, **self.actions.choices()}

    def listing(self) -> list[dict[str, Any]] | None:
        """The runs of a folder."""
        return [entry_of(run, self._name(run)) for run in self.runs] if len(self.runs) > 1 else None

    def act(self, name: str | None, action: object) -> dict[str, Any]:
        """Have the run carry out an action. Raises UsageError, also for the name of another run, and RunError."""
        assert self.actions is not None
        self._directory(name)
        return self.actions.do(action)

    def close(self) -> None:
        """Do nothing: nothing has to end."""

    def _name(self, run: Path) -> str:
        return str(run.relative_to(self.folder))


def _read(run: RecordedRun) -> None:
    with suppress(RecordError):  # the page's own question says so
        run.read_ahead()


def app_of(runs: Runs, listener: Listener) -> ASGIApp:
    """The application. It gives way to everything else on this machine."""
    os.nice(NICE)
    methods = frozenset({"GET", "HEAD", "POST"}) if runs.control else frozenset({"GET", "HEAD"})
    rules = Rules(listener.address, listener.token, lambda path: path == "/" or path.startswith("/static/"), methods)
    return View(runs).app(rules)


def plan_of(name: str, request: Request, command: Sequence[str], folder: Path, *, control: bool) -> Plan:
    """The runs of an experiment or a scenario, by name or file, which `manet run COMMAND` would put into `folder`. Raises
    UsageError."""
    return Plan(load(find(name), request), list(command), folder, control)


def site_of(path: str | None, *, control: bool = False) -> Site:
    """The site of a run's directory, of a folder of runs, or (None) of the run under way. Raises UsageError."""
    if path is None:
        state = under_way(None)
        assert state is not None
        folder = Path(state.directory)
    else:
        folder = Path(path).resolve()
        if not folder.is_dir():
            raise UsageError(f"{path}: there is no such folder; name a run's, results/NAME/CELL/seed-N, or a folder of runs")
    runs = [folder] if (folder / records.RUN).exists() else sorted(folders_of_runs(folder))
    if not runs:
        raise UsageError(f"{folder}: no run in it (no run.json); name the directory of a run, results/NAME/CELL/seed-N")
    if control and (len(runs) > 1 or under_way(runs[0]) is None):
        raise UsageError("--control: is for a run under way; start one, then `manet view --control`")
    return Site(title_of(folder), folder, runs, Actions(runs[0]) if control else None)
