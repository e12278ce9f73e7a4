"""The results of an experiment: its tables, comparisons, figures and runs (formats/results.md)."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import polars as pl
from matplotlib.figure import Figure

from analysis.decisions.pairs import VARIANT
from analysis.drawing import heat_map, style
from analysis.tables.results import METRICS, plain
from manet_testbed.errors import UnreadableResults, WrongRequest
from manet_testbed.lab import tables
from manet_testbed.lab.refusals import translated
from manet_testbed.lab.run import Run
from record.found_runs import known
from scenarios.key_models import unit_of
from testbed.campaigns.figures import drawn, is_own, misfit, module_of
from testbed.campaigns.report import GENERAL, Report
from testbed.errors import did_you_mean

METRIC = "acked_kbps"


class Results:
    """The results in a folder. Every mean is over the runs that are complete and not void, with the 95 % interval of Student's t.

    `runs`, `summary` and `flows` are frames of polars (`to_pandas()` makes one of pandas); `units` has the units of their
    columns.
    """

    def __init__(self, report: Report) -> None:
        """Of a report that has been made; `open` makes one."""
        assert report.results is not None, "make() comes first"
        self._report, self._tables = report, report.results

    @classmethod
    def open(cls, directory: Path | str) -> Self:
        """The results in a folder of `manet run`. Writes tables and figure again, as `manet report`; runs that were not measured
        yet are measured. Raises WrongRequest for another folder, UnreadableResults for damaged files."""
        with translated():
            report = Report(Path(directory))
            report.make()
            return cls(report)

    @property
    def directory(self) -> Path:
        """The folder."""
        return self._report.directory

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return str(self._report.description["name"])

    @property
    def question(self) -> str:
        """The question of the experiment; empty without one."""
        return str(self._report.description.get("question") or "")

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The values of each axis."""
        return dict(self._report.description["axes"])

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of the variants; empty without any."""
        return tuple(self._report.description["variants"])

    @property
    def profiles(self) -> tuple[str, ...]:
        """The TCP profiles of the cells: period, modern."""
        return tuple(dict.fromkeys(cell.get("profile", "period") for cell in self._report.description["cells"]))

    @cached_property
    def runs(self) -> pl.DataFrame:
        """A row for each run, void and failed ones too: the columns of table.csv, without the metrics that no run has."""
        return tables.runs_frame(self._tables)

    @cached_property
    def summary(self) -> pl.DataFrame:
        """A row for each cell and metric: the columns of summary.csv. `ci95` is the half width of the interval, empty for one
        run; `suspect` and `void` count the runs with that verdict."""
        return tables.summary_frame(self._tables)

    @cached_property
    def flows(self) -> pl.DataFrame:
        """A row for each flow of each run, with the metrics that any flow has."""
        return tables.flows_frame(self._tables)

    @cached_property
    def units(self) -> dict[str, str]:
        """The unit of each metric and axis that has one; "1" is a ratio."""
        return tables.UNITS | {axis: unit for axis in self.axes if (unit := unit_of(axis))}

    @property
    def verdict(self) -> str:
        """The overall verdict in a line, as `manet run` prints it: valid, suspect, void, failed or incomplete, and why."""
        return self._report.verdict_line()

    @property
    def left_out(self) -> dict[str, str]:
        """The runs that are in no table, as files of them were changed or damaged after the run, each with the reason."""
        return dict(self._report.found.left_out)

    @property
    def answers(self) -> list[str]:
        """The answer to each question of the experiment, a line each."""
        return [answer.line() for answer in self._report.answers]

    def of(self, metric: str = METRIC) -> pl.DataFrame:
        """The rows of `summary` for one metric: mean, interval and number of runs of each cell."""
        self._check_metric(metric)
        return self.summary.filter(pl.col("metric") == metric)

    def compare(self, compared: Any, base: Any, metric: str = METRIC, *, key: str = VARIANT) -> pl.DataFrame:
        """`compared` minus `base`, two variants or two values of the axis `key`, seed by seed: a row for each combination of the
        other keys. `difference` is the mean over the seeds that count in both, `low` and `high` its interval by the campaigns'
        rule, `method` how it was found; `outcome` is `more`, `less`, or `undecided` if the interval includes zero, or there are
        fewer than 30 seeds and the difference is not large beside the values. If a question of the experiment asks for the
        comparison, the row is the question's answer."""
        self._check_metric(metric)
        if key != VARIANT and key not in self._tables.experiment.axes:
            raise WrongRequest(f"key={key!r}: is no axis; give one of {', '.join([*self.axes, VARIANT])}")
        known_values = tables.values_of(self._tables, key)
        compared, base = plain(compared), plain(base)
        for value in (compared, base):
            if value not in known_values:
                raise WrongRequest(f"{key} {value!r}: no run has it; there are {', '.join(map(str, known_values))}")
        return tables.comparison_frame(self._tables, key, str(compared), str(base), metric, self._report.answers)

    def run(self, cell: str | None = None, seed: int = 1, **where: Any) -> Run:
        """One run: by the name of its cell (`results.run("vegas-hops4", seed=2)`), by axes and variant
        (`results.run(variant="vegas", hops=4)`), or of the only cell. Keys with dots: `**{"routing.link": "hello"}`."""
        axes = self._tables.experiment.axes
        stray = next((key for key in where if key != VARIANT and key not in axes), None)
        if stray is not None:
            raise WrongRequest(f"{stray}={where[stray]!r}: is no axis; give one of {', '.join([*axes, VARIANT])}")
        found = tables.cells_with(self._tables, where)
        if cell is not None:
            found = [row for row in found if row["run_dir"].split("/")[0] == cell]
        cells = ", ".join(tables.names_of_cells(self._tables))
        if not found:
            raise WrongRequest(f"{self.directory}: no run of this cell; the cells are {cells}")
        if not tables.is_one_cell(self._tables, found):
            raise WrongRequest(f"{self.directory}: several cells have these values; name one of {cells}")
        of_seed = next((row for row in found if row["seed"] == seed), None)
        if of_seed is None:
            seeds = ", ".join(str(row["seed"]) for row in found)
            raise WrongRequest(f"{self.directory}: no run with seed {seed}; this cell has {seeds}")
        return Run(self.directory / of_seed["run_dir"])

    def __iter__(self) -> Iterator[Run]:
        return (Run(self.directory / row["run_dir"]) for row in self._tables.rows)

    def __len__(self) -> int:
        return len(self._tables.rows)

    def figure(self, name: str | None = None) -> Figure:
        """A figure of analysis/figures, or of a Python file by its path, as an object (None: the experiment's own, else the
        general one), as `manet run` writes it into the folder; of several the first. Raises WrongRequest for one that does not
        fit the axes, UnreadableResults if the runs lack what it shows."""
        name = name or self._report.description.get("figure") or GENERAL
        name = str(Path(name).resolve()) if is_own(name) else name
        wrong = misfit(self.name, name, list(self.axes))
        if wrong is not None:
            raise WrongRequest(f"{self.directory}: {wrong}")
        with translated(), style.kept() as pages, known(self.directory, self._report.found):
            drawn(name, module_of(name), self.directory)
        if not pages:
            raise UnreadableResults(f"{self.directory}: figure {name} has nothing to draw in these runs")
        return pages[0]

    def heat_map(self, x: str, y: str, metric: str = METRIC, **where: Any) -> Figure:
        """The mean of a metric over two axes (or the variant), with interval and number of runs in each cell; `where` gives
        values of further axes. A cell with a suspect run has a frame; one without a run that counts is empty."""
        self._check_metric(metric)
        for key in (x, y, *where):
            if key != VARIANT and key not in self._tables.experiment.axes:
                raise WrongRequest(f"{key}: is no axis; give one of {', '.join([*self.axes, VARIANT])}")
        with translated():
            return heat_map.figure_of(self._tables, x, y, metric, where)

    @property
    def figures(self) -> tuple[Path, ...]:
        """The files of the figure in the folder."""
        return tuple(self._report.figures)

    def _check_metric(self, metric: str) -> None:
        if metric not in METRICS:
            close = did_you_mean(metric, METRICS) or "use one of the column `metric` of `summary`"
            raise WrongRequest(f"metric={metric!r}: there is no such metric; {close}")

    def __repr__(self) -> str:
        counted = sum(count for kind, count in self._report.verdicts().items() if kind in ("valid", "suspect"))
        seeds = sorted({row["seed"] for row in self._tables.rows if row["seed"] is not None})
        span = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}" if seeds else "no seeds"
        verdict = self.verdict.partition(":")[0]
        return (
            f"<Results {self.name}: {counted} of {len(self)} runs count, profile {' and '.join(self.profiles)}, {span}, "
            f"{verdict}; {self.directory}>"
        )
