"""After the runs: metrics of each, tables, figure, and what is printed of them (`manet run`, `manet report`)."""

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis.errors import AnalysisError
from testbed.campaigns.expectations import Comparison, compare
from testbed.campaigns.experiment import Expected, misfit
from testbed.errors import UsageError

FORMAT = "manet-answer/1"
GENERAL = "general"  # analysis/figures/general.py
NAMED_RUNS = 5  # how many runs that are not valid the verdict names


class Report:
    """The results in a folder; made anew from the runs each time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            self.description: dict[str, Any] = json.loads((directory / "experiment.json").read_text())
        except OSError:
            raise UsageError(f"{directory}: holds no experiment.json; give a folder that `manet run` has made") from None
        except ValueError:
            raise UsageError(f"{directory}/experiment.json: is not JSON; run again with --resume to write it anew") from None
        self.figures: list[Path] = []
        self.no_figure: str | None = None  # why the figure could not be drawn
        self.comparisons: list[Comparison] = []
        self.summary: list[dict[str, Any]] = []
        self.doubtful: list[str] = []  # the runs that are not valid, as `<cell>/seed-<n> suspect`

    def make(self, analyse_again: bool = False) -> None:
        """metrics.json where it is missing or older than the run, table.csv, summary.csv, the figure."""
        from analysis import tables
        from analysis.metrics import analyse_run

        for run in self._runs():
            metrics = run / "metrics.json"
            if analyse_again or not metrics.exists() or metrics.stat().st_mtime < (run / "run.json").stat().st_mtime:
                analyse_run(run)
        tables.write_tables(self.directory)
        self.summary = tables.read_summary(self.directory)
        self.doubtful = [
            f"{run['run_dir']} {(run['verdict'] if run['status'] == 'complete' else run['status']) or 'without verdict'}"
            for run in tables.collect_runs(self.directory, self.description["axes"])
            if run["status"] != "complete" or run["verdict"] != "valid"
        ]
        expected = Expected.model_validate(self.description.get("expect", {}))
        profiles = {cell["variant"]: cell.get("profile", "period") for cell in self.description["cells"]}
        checks = [check.of_size(self.description["quick"]) for check in expected.checks]
        self.comparisons = compare(checks, self.summary, list(self.description["axes"]), profiles)
        if any(row["mean"] is not None for row in self.summary):
            self._draw()

    def _draw(self) -> None:
        """The figure that the experiment names; of one with axes or variants that names none, the general one."""
        name = self.description.get("figure") or (GENERAL if len(self.description["cells"]) > 1 else None)
        if name is None:
            return
        wrong = misfit(self.description["name"], name, self.description["axes"])
        if wrong is not None:
            self.no_figure = f"{self.directory}: {wrong}"
            return
        figure = importlib.import_module(f"analysis.figures.{name}")
        try:
            self.figures = [Path(path) for path in figure.draw(self.directory)]
        except AnalysisError as problem:
            self.no_figure = f"figure {name}: {problem}"

    def verdicts(self) -> dict[str, int]:
        """How many cells' runs are valid, suspect and void (or failed)."""
        rows = [row for row in self.summary if row["metric"] == "acked_kbps"]
        return {kind: round(sum(row[kind] for row in rows)) for kind in ("valid", "suspect", "void")}

    def put_aside(self) -> int:
        """How many void or incomplete runs were done over; they are kept in `<cell>/void/` and are in no table."""
        return sum(1 for cell in self.description["cells"] for _ in (self.directory / cell["name"] / "void").glob("seed-*"))

    def capture(self) -> Path | None:
        """One capture worth opening: the first flow's sender in the first run."""
        for run in self._runs():
            scenario = json.loads((run / "scenario.json").read_text())
            path = run / "captures" / f"{scenario['flows'][0]['from']}.pcap"
            if path.exists():
                return path
        return None

    def as_json(self, runs: list[dict[str, Any]]) -> dict[str, Any]:
        """The answer to `--json`; paths as strings."""
        capture = self.capture()
        return {
            "format": FORMAT,
            "experiment": self.description["name"],
            "directory": str(self.directory),
            "table": str(self.directory / "table.csv"),
            "summary": str(self.directory / "summary.csv"),
            "figures": [str(path) for path in self.figures],
            "no_figure": self.no_figure,
            "capture": None if capture is None else str(capture),
            "verdicts": self.verdicts(),
            "put_aside": self.put_aside(),
            "expect": [asdict(comparison) for comparison in self.comparisons],
            "runs": runs,
        }

    def print(self) -> None:
        """Table, files, verdict and expectations on standard output."""
        from rich.console import Console

        from analysis.printed import flows_table, result_table

        # a pipe or file has no width of its own: wide enough for every column
        console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
        if self.description.get("question"):
            console.print(self.description["question"], style="bold")
        console.print(result_table(self.directory))
        flows = flows_table(self.directory)
        if flows is not None:
            console.print(flows)
        for comparison in self.comparisons:
            print(f"expected  {comparison.line()}")
        print(f"table     {self.directory / 'table.csv'}")
        print(f"summary   {self.directory / 'summary.csv'}")
        for path in self.figures:
            print(f"figure    {path}")
        if self.no_figure:
            print(f"figure    none: {self.no_figure}")
        capture = self.capture()
        if capture is not None:
            print(f"capture   {capture}")
        print(f"verdict   {self.verdict_line()}")

    def verdict_line(self) -> str:
        """`valid` only if every run that counts is."""
        count = self.verdicts()
        counts = ", ".join(f"{number} {kind}" for kind, number in count.items())
        worst = "void" if count["void"] else "suspect" if count["suspect"] else "valid"
        meaning = {
            "valid": "the host kept up with the air in every run",
            "suspect": "in some runs the host was late at times; their verdict.json says how much",
            "void": "some runs failed or the host fell behind; they are left out of every mean",
        }[worst]
        aside = self.put_aside()
        done_over = f"; {aside} void or incomplete before, done over (kept in <cell>/void)" if aside else ""
        return f"{worst if sum(count.values()) else 'none'} ({counts}{done_over}): {meaning}{self._named()}"

    def _named(self) -> str:
        """Which runs are not valid; nothing where all are."""
        more = len(self.doubtful) - NAMED_RUNS
        named = self.doubtful[:NAMED_RUNS] + ([f"and {more} more"] if more > 0 else [])
        return f" [{', '.join(named)}]" if named else ""

    def _runs(self) -> list[Path]:
        """Run folders, in the order of cells and seeds, those put aside left out."""
        found: list[Path] = []
        for cell in self.description["cells"]:
            seeds = (self.directory / cell["name"]).glob("seed-*/run.json")
            found += sorted((path.parent for path in seeds), key=lambda run: int(run.name.removeprefix("seed-")))
        return found
