"""Runs of the saved scenario, as a view: `manet run FILE --seeds N` as a child process, each time into a folder of its own.

The view of the same server shows them, live and recorded; before the first start it shows the scenario as planned.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.captures.rundir import RunDirectory
from analysis.story.story import flow_named, read_story
from record import records
from record.errors import RecordError
from record.files import plain_file
from testbed.campaigns.cells import Cell
from testbed.campaigns.experiment import load
from testbed.campaigns.request import Request
from testbed.errors import UsageError, shortened
from testbed.runs.under_way import ended
from testbed.view.plan import MAX_SEED, Plan, free_folder
from testbed.view.viewed import Folder, Viewed, entry_of, planned_entry

FIGURES = {".png": "image/png"}
LAST_LINES = 3
MAX_PRINTED = 4000  # characters


@dataclass
class SeedsPlan(Plan):
    """A plan whose seeds run one after another by one `manet run`."""

    seeds: int = 1

    def begin(self) -> None:
        """Start `manet run`. Raises UsageError."""
        cells = [cell.name for cell in self.experiment.cells]
        words = [*self.command, "--seeds", str(self.seeds), "--out", str(self.folder), "--resume"]  # its log is there
        self._child, self._started, self._begun = self._child_of(words), f"{cells[0]}/seed-1", True

    def listing(self) -> list[dict[str, Any]] | None:
        """The runs of all seeds; None for a single one."""
        runs = self.runs()
        return runs if len(runs) > 1 else None

    def runs(self) -> list[dict[str, Any]]:
        """Each run's `path`, `cell`, `seed`, `variant`, `status`, `verdict`; one that has not begun is `planned`."""
        return [self._entry(cell, seed) for cell in self.experiment.cells for seed in range(1, self.seeds + 1)]

    def progress(self) -> dict[str, Any]:
        """`running`, and the last lines of `manet run` if it failed."""
        ended = self._child.poll() if self._child is not None else None
        failed = self._child is not None and ended not in (None, 0)
        return {
            "running": self._child is not None and ended is None,
            "failure": " ".join(self._child.last_lines(LAST_LINES)) if failed and self._child is not None else None,
        }

    def printed(self) -> str:
        """The end of what `manet run` printed: its table, files and verdict."""
        return self._child.output.read_text(errors="replace")[-MAX_PRINTED:] if self._child is not None else ""

    def stop_all(self) -> None:
        """Ask `manet run` to end in order."""
        if self._child is not None:
            self._child.stop()

    def viewed(self, name: str | None) -> Viewed:
        """As of a plan; without a name the list of several seeds."""
        if name is None and self.seeds > 1:
            return Folder(self.title)
        return super().viewed(name)

    def _entry(self, cell: Cell, seed: int) -> dict[str, Any]:
        planned = planned_entry(cell, seed)
        run = self.folder / planned["path"]
        return planned | entry_of(run, planned["path"]) if (run / records.RUN).exists() else planned


class Starts:
    """The runs of an editor, for a view. `results`: the folder in which each start gets a folder; `file`: the saved scenario;
    `within`: the folder outside of which no file that it names is opened without `control`, which allows runs."""

    def __init__(self, file: Callable[[], Path], results: Path, *, control: bool, within: Path) -> None:
        self._file, self._results, self.control = file, results, control
        self._within = None if control else within
        # a thread inherits the nice value of the one that makes it, and the server's threads are made at nice 10 (../site.py)
        self._starter = ThreadPoolExecutor(1, "start")
        self._starter.submit(lambda: None).result()
        self._plan: SeedsPlan | None = None
        self._drawing = threading.Lock()  # pyplot draws one figure at a time

    @property
    def title(self) -> str:
        """The name of the scenario."""
        return self._file().stem

    @property
    def folder(self) -> Path:
        """The folder in which each start gets a folder."""
        return self._results

    def start(self, seeds: object) -> dict[str, Any]:
        """Run the saved scenario with seeds 1 to `seeds`, into results/NAME or the next free NAME-2, ... Raises UsageError."""
        if not self.control:
            raise UsageError("this editor starts no runs; start it with --control")
        if isinstance(seeds, bool) or not isinstance(seeds, int) or not 1 <= seeds <= MAX_SEED:
            raise UsageError(f"seeds: give a whole number from 1 to {MAX_SEED}")
        if self._plan is not None and self._plan.progress()["running"]:
            raise UsageError("a run is under way; stop it, or wait for its end")
        file = self._file()
        experiment = load(file, Request(seeds=seeds))
        folder = free_folder(self._results, file.stem)
        plan = SeedsPlan(experiment, [str(file)], folder, True, _starter=self._starter, seeds=experiment.seeds)
        plan.begin()
        self._plan = plan
        return self.progress()

    def stop(self) -> dict[str, Any]:
        """End the runs under way, in order. Raises UsageError."""
        if not self.control or self._plan is None:
            raise UsageError("no run of this editor is under way")
        self._plan.stop_all()
        return self.progress()

    def progress(self) -> dict[str, Any]:
        """`folder`, `runs`, `running`, `failure`, `figures` (PNG files), `printed` of the last start; empty before it."""
        if self._plan is None:
            nothing: dict[str, Any] = {"folder": None, "runs": [], "figures": [], "printed": ""}
            return {**nothing, "running": False, "failure": None, "control": self.control}
        folder = self._plan.folder
        figures = sorted(path.name for path in folder.glob("*") if path.suffix in FIGURES and path.is_file())
        begun = {"folder": str(folder), "runs": self._plan.runs(), "figures": figures, "control": self.control}
        return {**begun, "printed": self._plan.printed(), **self._plan.progress()}

    def figure(self, name: str) -> tuple[bytes, str]:
        """A figure of the last start, and its media type. Raises UsageError."""
        if self._plan is None or name not in self.progress()["figures"]:
            raise UsageError(f"{shortened(name)}: is no figure of the last runs")
        path = self._plan.folder / name
        try:
            with plain_file(path, beneath=self._plan.folder) as file:
                return file.read(), FIGURES[path.suffix]
        except (OSError, RecordError) as problem:
            raise UsageError(f"{name}: cannot be read ({problem})") from None

    def plot(self, name: str, flow: int) -> tuple[bytes, str]:
        """The figure of a flow that `manet plot` draws of an ended run, and its media type. Raises UsageError, RecordError."""
        from analysis.drawing.flow_plots import draw  # matplotlib, which no other page of the server needs

        if self._plan is None or name not in [run["path"] for run in self._plan.runs()]:
            raise UsageError(f"run={shortened(name)}: is no run of the last start")
        directory = RunDirectory(ended(self._plan.folder / name), keeps_captures=False)
        with self._drawing:
            story = read_story(directory, flow_named(directory, flow))
            file = directory.path / f"plot-flow{flow}-story.png"
            draw(story, "story", file, None, None)
            with plain_file(file, beneath=self._plan.folder) as drawn:
                return drawn.read(), "image/png"

    def viewed(self, name: str | None) -> Viewed:
        """A run of the last start; before it, the saved scenario as planned. Raises UsageError."""
        return self._shown().viewed(name)

    def about(self, name: str | None) -> dict[str, Any]:
        """As of a plan; runs are started by the editor alone."""
        return {**self._shown().about(name), "startable": False}

    def listing(self) -> list[dict[str, Any]] | None:
        """The runs of the last start."""
        return self._shown().listing()

    def act(self, name: str | None, action: object) -> dict[str, Any]:
        """Act on the run under way; it is started and stopped at the editor. Raises UsageError, RunError."""
        if isinstance(action, dict) and action.get("op") in ("start", "stop"):
            raise UsageError("the editor starts and stops these runs; see its page, /edit")
        return self._shown().act(name, action)

    def read_ahead(self) -> None:
        """Do nothing: no data exist yet."""

    def close(self) -> None:
        """End the runs under way, in order."""
        if self._plan is not None:
            self._plan.close()

    def _shown(self) -> SeedsPlan:
        if self._plan is not None:
            return self._plan
        file = self._file()
        return SeedsPlan(
            load(file, within=self._within), [str(file)], self._results / file.stem, self.control, _starter=self._starter
        )
