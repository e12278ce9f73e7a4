"""An experiment or a scenario before it is run, as a view shows and starts it: its runs by `CELL/seed-N`, as below the results.

A started run is `manet run` as a child process, with the folder of results that `manet run` takes. One runs at a time.
"""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from record import records
from testbed.campaigns.experiment import Experiment
from testbed.errors import UsageError, shortened
from testbed.runs.child import RunChild
from testbed.runs.under_way import actions_of, under_way
from testbed.view.actions import Actions
from testbed.view.live import LiveRun
from testbed.view.open_runs import OpenRuns
from testbed.view.planned import PlannedRun
from testbed.view.recorded import RecordedRun
from testbed.view.viewed import Folder, Viewed, planned_entry

MAX_SEED = 10_000  # of a scenario (seeds)
NAME = re.compile(r"(?P<cell>.+)/seed-(?P<seed>[1-9][0-9]{0,4})")
LOG = Path("log") / "view"  # in the folder of results: what `manet run` prints
ENDS_WITHIN_S = 60.0
MAX_FOLDERS = 1000  # of one name
KEPT = 3  # runs whose files stay in memory


def free_folder(results: Path, stem: str) -> Path:
    """STEM, STEM-2, ... in the folder of results: the first that does not exist. Raises UsageError."""
    for number in range(1, MAX_FOLDERS):
        folder = results / (stem if number == 1 else f"{stem}-{number}")
        if not folder.exists():
            return folder
    raise UsageError(f"{results}: has {MAX_FOLDERS} folders of {stem}; remove some, or give another with --out")


@dataclass
class Plan:
    """`command`: the name, file and options of `manet run`; `folder`: of the results."""

    experiment: Experiment
    command: list[str]
    folder: Path
    control: bool
    _child: RunChild | None = None
    _started: str | None = None
    _begun: bool = False  # whether the results in the folder are of this view
    _shown: OpenRuns[LiveRun | RecordedRun] = field(default_factory=lambda: OpenRuns(KEPT))
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _starter: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "start"))

    def __post_init__(self) -> None:
        # a thread inherits the nice value of the one that makes it, and the server's threads are made at nice 10 (site.py)
        self._starter.submit(lambda: None).result()

    @property
    def title(self) -> str:
        """The name of the experiment or scenario."""
        return self.experiment.name

    def listing(self) -> list[dict[str, Any]] | None:
        """The cells, each with its first seed; None for a single one."""
        if len(self.experiment.cells) == 1:
            return None
        return [planned_entry(cell, 1) for cell in self.experiment.cells]

    def viewed(self, name: str | None) -> Viewed:
        """The run of this name; without one that of the only cell with seed 1, or the cells. Raises UsageError."""
        if name is None and len(self.experiment.cells) > 1:
            return Folder(self.title)
        name, planned = self._planned(name)
        run = self.folder / name
        with self._turn:
            if not self._begun or not (run / records.RUN).exists():
                return planned
            if under_way(run) is not None:
                is_up = actions_of(run) is not None or isinstance(self._shown.kept(run), LiveRun)
                return self._opened(LiveRun, run) if is_up else planned
            has_ended = records.read(run / records.RUN).get("ended") is not None or self._child_ended
            return self._opened(RecordedRun, run) if has_ended else planned

    def about(self, name: str | None) -> dict[str, Any]:
        """What `/api/run` adds of a run that can be started: `name`, `seed`, `startable`, `starting`, and `failure`, the last
        lines of a start that brought no run."""
        if name is None and len(self.experiment.cells) > 1:
            return {}
        name, planned = self._planned(name)
        child = self._child if name == self._started else None
        ended = child.poll() if child is not None else None
        failed = ended not in (None, 0) and not (self.folder / name / records.RUN).exists()
        actions = Actions(self.folder / name)
        possible = self.control and self._begun and actions.are_possible
        return {
            "control": possible, "name": name, "seed": planned.seed, "startable": self.control,
            "starting": child is not None and ended is None,
            "failure": " ".join(child.last_lines(2)) if child is not None and failed else None,
            **(actions.choices() if possible and actions_of(self.folder / name) is not None else {}),
        }  # fmt: skip

    def act(self, name: str | None, action: object) -> dict[str, Any]:
        """Start or stop a run, or act on the one under way. Raises UsageError, RunError."""
        name, planned = self._planned(name)
        op = action.get("op") if isinstance(action, dict) else None
        if isinstance(action, dict) and op in ("start", "stop") and (more := [key for key in action if key != "op"]):
            raise UsageError(f"{shortened(more[0])}: is no key of an action {op}, which has none")
        if op == "start":
            return self._start(name, planned.seed)
        if op == "stop":
            return self._stop(name)
        return Actions(self.folder / name).do(action)

    def read_ahead(self) -> None:
        """Do nothing: no data exist yet."""

    def close(self) -> None:
        """End the run under way, in order."""
        if self._child is not None:
            self._child.stop()
            self._child.wait(ENDS_WITHIN_S)

    @property
    def is_running(self) -> bool:
        """Whether a run that was started here is under way."""
        return not self._child_ended

    @property
    def _child_ended(self) -> bool:
        return self._child is None or self._child.poll() is not None

    def _planned(self, name: str | None) -> tuple[str, PlannedRun]:
        cells = {cell.name: cell for cell in self.experiment.cells}
        name = f"{self.experiment.cells[0].name}/seed-1" if name is None else name
        match = NAME.fullmatch(name)
        if match is None or match["cell"] not in cells or not 1 <= int(match["seed"]) <= MAX_SEED:
            raise UsageError(f"run={name[:100]}: is no CELL/seed-N of {self.title}, N from 1 to {MAX_SEED}")
        cell, seed = cells[match["cell"]], int(match["seed"])
        title = "/".join([self.title, *([cell.name] if len(cells) > 1 else []), f"seed-{seed}"])
        return name, PlannedRun(title, cell.scenario, seed, self.folder / name)

    def _opened(self, kind: type[LiveRun] | type[RecordedRun], run: Path) -> LiveRun | RecordedRun:
        return self._shown.opened(run, lambda: kind(run), lambda found: isinstance(found, kind))

    def _start(self, name: str, seed: int) -> dict[str, Any]:
        with self._turn:
            if not self._child_ended:
                raise UsageError(f"{self._started} is under way; stop it, or wait for its end")
            self._check_free(name)
            seeds = max(seed, self.experiment.seeds)
            command = [*self.command, "--seeds", str(seeds), "--only", name, "--out", str(self.folder), "--resume"]
            self._child, self._started, self._begun = self._child_of(command), name, True
        return {"started": name, "directory": str(self.folder / name)}

    def _check_free(self, name: str) -> None:
        try:
            holds_results = not self._begun and self.folder.exists() and any(self.folder.iterdir())
        except OSError as problem:
            raise self._no_folder(problem) from None
        if holds_results:
            raise UsageError(
                f"{self.folder}: holds results already; see them with `manet view {self.folder}`, remove them, or give another "
                "folder with --out"
            )
        if (self.folder / name).exists():
            raise UsageError(f"{self.folder / name}: holds a run already; take another seed")

    def _child_of(self, command: list[str]) -> RunChild:
        try:
            return self._starter.submit(RunChild, command, self.folder / LOG).result()
        except OSError as problem:
            raise self._no_folder(problem) from None

    def _no_folder(self, problem: OSError) -> UsageError:
        return UsageError(f"{self.folder}: {problem.strerror}; give another folder with --out")

    def _stop(self, name: str) -> dict[str, Any]:
        if self._child is None or self._child_ended or self._started != name:
            raise UsageError(f"{name}: is not under way by this view")
        self._child.stop()
        return {"stopped": name}
