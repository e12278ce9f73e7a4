"""The report of an experiment's runs: metrics, tables, figure, and the printed text (`manet run`, `manet report`)."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from record import records
from record.doubt import doubt
from record.errors import RecordError, RunFileError
from record.files import read_text
from record.found_runs import FoundRuns, find_runs, known
from testbed.campaigns import missing
from testbed.campaigns.expectations import Comparison, Expected, compare
from testbed.campaigns.experiment import EXPERIMENT_FORMAT
from testbed.campaigns.figures import drawn, is_own, misfit, module_of
from testbed.campaigns.measuring import is_measured, measure_runs
from testbed.columns import hanging
from testbed.errors import UsageError, shortened
from testbed.output import console, plain
from testbed.programs import INSTALLATION

if TYPE_CHECKING:  # importing these imports Polars, which most verbs do not need
    from analysis.decisions.answers import Answered
    from analysis.tables.results import Results

FORMAT = "manet-answer/1"
GENERAL = "general"  # analysis/figures/general.py
NAMED_RUNS = 5  # at most so many runs that are not valid in the verdict, so many remarks


def answer_lines(answers: Sequence["Answered"], name: str) -> list[str]:
    """A line for each question that has pairs, and one for the others, for which `manet run` has too few seeds."""
    without = sum(not answer.answer.pairs for answer in answers)
    lines = [answer.line() for answer in answers if answer.answer.pairs]
    if without:
        subject = "question has" if without == 1 else "questions have"
        command = INSTALLATION.reworded(f"./manet campaign {name}")
        lines.append(f"{without} {subject} too few seeds; `{command}` runs as many as an answer needs")
    return lines


class Report:
    """The results in a folder, recalculated from the runs each time; UsageError for a folder without experiment.json,
    RunFileError for one with values of another type. `figure`: that of a command or experiment (None: the folder's, if that is
    no program of a user)."""

    def __init__(self, directory: Path, figure: str | None = None) -> None:
        self.directory, self._figure = directory, figure
        try:
            self.description: dict[str, Any] = json.loads(read_text(directory / "experiment.json"))
        except OSError:
            text = "holds no experiment.json; give a folder that `manet run` has made"
            raise UsageError(f"{shortened(str(directory))}: {text}") from None
        except ValueError:
            raise UsageError(f"{directory}/experiment.json: is not JSON; run again with --resume to rewrite it") from None
        if not isinstance(self.description, dict) or self.description.get("format") != EXPERIMENT_FORMAT:
            raise UsageError(f'{directory}/experiment.json: is no "{EXPERIMENT_FORMAT}"; run again with --resume to rewrite it')
        records.checked(directory / records.EXPERIMENT, self.description)
        self.figures: list[Path] = []
        self.caption = ""  # of the figures: the head of their module
        self.no_figure: str | None = None  # why the figure could not be drawn
        self.comparisons: list[Comparison] = []
        self.answers: list[Answered] = []
        self.outcome = ""  # expected, in words
        self.results: Results | None = None  # once `make` has collected them
        self.found = FoundRuns()
        self.endings: Counter[str] = Counter()  # of the existing runs: valid, suspect, void, failed, interrupted
        self.kept_tables = False  # table.csv and summary.csv were left unchanged
        self.contradicted = 0  # runs of which a cross-check failed
        self.reason = ""  # of a single suspect, void or failed run
        self.missing: dict[tuple[str, int], bool] = {}
        self.kept: dict[tuple[str, int], dict[str, Any]] = {}  # rows of earlier runs, by cell and seed
        self.doubtful: list[str] = []  # the runs that are not valid, as `<cell>/seed-<n> suspect`

    def make(self, analyse_again: bool = False) -> None:
        """Write metrics.json if it is missing or older than its run, table.csv, summary.csv, the result store and the figure."""
        from analysis.store import files, rows
        from analysis.tables import results as tables
        from analysis.tables.kept_rows import runs_in

        began = rows.now()
        self._measure(analyse_again)
        # if every run was changed or lost files, the earlier tables are all that is left
        self.kept_tables = not self.found.runs and bool(self.found.left_out) and (self.directory / "table.csv").exists()
        self.kept = runs_in(self.directory, self.description)
        self.results = tables.collect(self.directory, self.description, self.found.runs, self.kept)
        runs, summary = self.results.rows, [] if self.kept_tables else self.results.summary
        if not self.kept_tables:
            tables.write_tables(self.results)
            files.write(self.results, began)
        self.endings = Counter(tables.ending(run) for run in runs)
        self.contradicted = sum(run["contradicted"] for run in runs)
        judged = [run["run_dir"] for run in runs if tables.ending(run) in ("suspect", "void", "failed")]
        self.reason = (doubt(self.directory / judged[0]) or "").partition(": ")[2] if len(judged) == 1 else ""
        missed = missing.missing_runs(self.directory, self.description, self.found)
        self.missing = {place: begun for place, begun in missed.items() if place not in self.kept}
        self.doubtful = [
            f"{run['run_dir']} {(run['verdict'] if run['status'] == 'complete' else run['status']) or 'without verdict'}"
            for run in runs
            if run["status"] != "complete" or run["verdict"] != "valid"
        ]
        expected = Expected.model_validate(self.description.get("expect", {}))
        profiles = {cell["variant"]: cell.get("profile", "period") for cell in self.description["cells"]}
        self.outcome = " ".join((expected.outcome or "").split())
        checks = [check.of_size(self.description["quick"]) for check in expected.checks]
        self.comparisons = compare(checks, summary, list(self.description["axes"]), profiles)
        self.answers = self._answer(runs)
        self._draw(summary, runs)

    def _answer(self, runs: list[dict[str, Any]]) -> list["Answered"]:
        """The answers to the experiment's questions, written to answers.json; none without questions."""
        if not self.description.get("questions"):
            return []
        from analysis.decisions.answers import answers_of, write_answers
        from analysis.tables.results import joined

        answers = answers_of(self.description, joined(runs, self.kept))
        if answers:
            write_answers(self.directory, self.description["name"], answers)
        return answers

    def _draw(self, summary: list[dict[str, Any]], runs: list[dict[str, Any]]) -> None:
        """Draw the figure that the experiment names; without a name the general one, if there are several cells. Without a run
        in this folder only a figure that does not read the files of runs (`RUN_FILES`)."""
        recorded = self.description.get("figure") or (GENERAL if len(self.description["cells"]) > 1 else None)
        name = self._figure or recorded
        if name is None or all(row["mean"] is None for row in summary):
            return
        if self._figure is None and is_own(name):
            text = f"its figure {name} is a program, which is not executed because results name it"
            self.no_figure = f"{self.directory}: {text}; if you trust it, ./manet report {self.directory} --figure {name}"
            return
        wrong = misfit(self.description["name"], name, self.description["axes"])
        if wrong is not None:
            self.no_figure = f"{self.directory}: {wrong}"
            return
        try:
            figure = module_of(name)
            if not runs and getattr(figure, "RUN_FILES", False):
                return
            self.caption = " ".join((figure.__doc__ or "").split())
            with known(self.directory, self.found):
                self.figures = drawn(name, figure, self.directory)
        except RecordError as problem:
            self.no_figure = str(problem) if is_own(name) else f"figure {name}: {problem}"

    def _measure(self, again: bool) -> None:
        """Write metrics.json of every run that counts; with `again` also of runs whose metrics.json alone was changed."""
        from record.manifest import dropped_files, only_derived_differ

        self.found = find_runs(self.directory)
        todo = [run for run in self.found.runs if (again or not is_measured(run)) and not dropped_files(run)]
        derived = [run for name in self.found.left_out if again and only_derived_differ(run := self.directory / name)]
        errors = measure_runs([*todo, *derived])
        if errors:
            raise RunFileError(next(iter(errors.values())))
        if derived:
            self.found = find_runs(self.directory)

    def verdicts(self) -> dict[str, int]:
        """The number of valid, suspect, void, failed and interrupted runs."""
        from analysis.tables.results import ENDINGS

        return {kind: self.endings[kind] for kind in ENDINGS}

    @property
    def is_complete(self) -> bool:
        """Whether every run of the experiment exists and counts, and the figure was drawn: exit status 0."""
        return not self.has_bad_runs and not self.missing and self.no_figure is None

    @property
    def has_bad_runs(self) -> bool:
        """Whether some of the runs do not count (void, failed or left out), or contradict themselves (a cross-check failed)."""
        return bool(self.endings["void"] + self.endings["failed"] + len(self.found.left_out) + self.contradicted)

    def put_aside(self) -> int:
        """The number of void or incomplete runs, and of those of another scenario, in `<cell>/void/`, which are in no table."""
        return sum(1 for cell in self.description["cells"] for _ in (self.directory / cell["name"] / "void").glob("seed-*"))

    def capture(self) -> Path | None:
        """An example of a capture: the first flow's sender in the first run; None without one."""
        for run in self.found.runs:
            scenario = json.loads(read_text(run / "scenario.json"))
            path = run / "captures" / f"{scenario['flows'][0]['from']}.pcap"
            if path.exists():
                return path
        return None

    def as_json(self, runs: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        """The answer to `--json`; paths as strings."""
        capture = self.capture()
        return {
            "format": FORMAT,
            "experiment": self.description["name"],
            "directory": str(self.directory),
            "table": str(self.directory / "table.csv"),
            "summary": str(self.directory / "summary.csv"),
            "store": str(self.directory / "runs.parquet"),
            "figures": [str(path) for path in self.figures],
            "no_figure": self.no_figure,
            "capture": None if capture is None else str(capture),
            "verdicts": self.verdicts(),
            "missing": [{"cell": cell, "seed": seed, "interrupted": begun} for (cell, seed), begun in self.missing.items()],
            "left_out": [{"run": name, "reason": reason} for name, reason in self.found.left_out.items()],
            "not_checked": self.found.not_checked,
            "put_aside": self.put_aside(),
            "remarks": self.remarks(),
            "expect": [asdict(comparison) for comparison in self.comparisons],
            "runs": runs,
        }

    def print(self) -> None:
        """Table, files, verdict and expectations on standard output."""
        from analysis.reports.printed import flows_table, result_table

        # a pipe or file has no width of its own: wide enough for every column
        tables = console(None if sys.stdout.isatty() else 120)
        if self.description.get("question"):
            tables.print(plain(self.description["question"]))
        assert self.results is not None, "make() comes first"
        tables.print(result_table(self.results))
        flows = flows_table(self.results)
        if flows is not None:
            tables.print(flows)
        if self.outcome:
            print(hanging("expected: ", self.outcome))
        for comparison in self.comparisons:
            print(f"expected  {comparison.line()}")
        for line in answer_lines(self.answers, self.description["name"]):
            print(hanging("answer    ", line))
        unchanged = " (as it was: no run is left to make it of)" if self.kept_tables else ""
        print(f"table     {self.directory / 'table.csv'}{unchanged}")
        print(f"summary   {self.directory / 'summary.csv'}{unchanged}")
        for path in self.figures:
            print(f"figure    {path}")
        if self.no_figure:
            print(f"figure    none: {self.no_figure}")
        capture = self.capture()
        if capture is not None:
            print(f"capture   {capture}")
        for line in [*self.kept_lines(), *self.remark_lines(), *self.left_out_lines()]:
            print(line)
        if self.missing:
            print(f"runs      {missing.line(self.directory, self.description, self.missing)}")
        print(f"verdict   {self.verdict_line()}")

    def remarks(self) -> list[dict[str, str]]:
        """The remarks of the runs: a flow that never connected, which no verdict names."""
        rows = self.results.rows if self.results else []
        return [{"run": row["run_dir"], "remark": remark} for row in rows for remark in row["remarks"]]

    def remark_lines(self) -> list[str]:
        """A line for each of the first remarks, and one for the others."""
        remarks = self.remarks()
        lines = [f"remark    {remark['run']}: {remark['remark']}" for remark in remarks[:NAMED_RUNS]]
        more = len(remarks) - NAMED_RUNS
        return lines + ([f"remark    and {more} more: `remarks` of each run's metrics.json"] if more > 0 else [])

    def kept_lines(self) -> list[str]:
        """A line about the rows of earlier runs; none without any."""
        return [f"kept      {self.kept_text()}"] if self.kept else []

    def kept_text(self) -> str:
        """Describe the rows of earlier runs."""
        count = len(self.results.kept) if self.results else 0
        rows = f"{count} {'row' if count == 1 else 'rows'} of earlier runs"
        return f"{rows} (kept.csv) count in means, answers and paired differences; table.csv has none of them"

    def left_out_lines(self) -> list[str]:
        """A line for each excluded run, and one for the runs without a manifest."""
        lines = [f"left out  {name}: {reason}" for name, reason in self.found.left_out.items()]
        if any("move it" not in reason and "--again" not in reason for reason in self.found.left_out.values()):
            lines.append(f"remedy    run what is left out again: {missing.resume(self.directory, self.description)}")
        unchecked = self.found.not_checked
        if unchecked:
            more = f" and {len(unchecked) - NAMED_RUNS} more" if len(unchecked) > NAMED_RUNS else ""
            lines.append(f"unchecked {', '.join(unchecked[:NAMED_RUNS])}{more}: no manifest.json, by which changes would show")
        return lines

    def verdict_line(self) -> str:
        """The overall verdict, counts and their meaning; `valid` only if all runs are."""
        count, left_out = self.verdicts(), len(self.found.left_out)
        never = sum(not begun for begun in self.missing.values())
        others = {kind: count[kind] for kind in ("failed", "interrupted")} | {"left out": left_out, "missing": never}
        counts = ", ".join(f"{count[kind]} {kind}" for kind in ("valid", "suspect", "void"))
        counts += "".join(f", {number} {kind}" for kind, number in others.items() if number)
        worst, meaning = next((word, text) for word, text, applies in self._judgements() if applies)
        aside = self.put_aside()
        reruns = f"; {aside} void, incomplete or of another scenario before (kept in <cell>/void)" if aside else ""
        return f"{worst} ({counts}{reruns}): {meaning}{self._named()}"

    def _judgements(self) -> list[tuple[str, str, bool]]:
        """Each verdict with its meaning and whether it applies, the worst first."""
        count = self.endings
        failed = "some runs failed; they are left out of every mean, and `error` in run.json of each says why"
        void = "some runs cannot be trusted (verdict.json of each says why); they are left out of every mean"
        changed = "some runs are not what was measured (left out); they are in no table or figure"
        unfinished = "runs are missing or were interrupted; they are in no mean"
        late = "some runs are in doubt; verdict.json of each says why"
        if self.contradicted:
            late = "the sources of some runs contradict each other (`checks` of table.csv); verdict.json of each says how"
        if count["suspect"] + count["void"] + count["failed"] == 1 and self.reason:
            failed = void = late = self.reason
        return [
            ("failed", failed, count["failed"] > 0),
            ("void", void, count["void"] > 0),
            ("void", changed, bool(self.found.left_out)),
            ("incomplete", unfinished, bool(self.missing or count["interrupted"])),
            ("suspect", late, count["suspect"] > 0),
            ("none", self._without_runs(), not count.total()),
            ("valid", "the host kept up with the air in every run", True),
        ]

    def _without_runs(self) -> str:
        """What there is instead of runs, and how many cells have not even that."""
        if not self.kept:
            return "there are no runs"
        cells = {cell["name"] for cell in self.description["cells"]}
        empty = len(cells - {cell for cell, _ in self.kept})
        some = f", of which {empty} of {len(cells)} cells {'has' if empty == 1 else 'have'} none" if empty else ""
        return f"there are no runs but kept rows{some}"

    def _named(self) -> str:
        """The runs that are not valid, in brackets; empty without any."""
        more = len(self.doubtful) - NAMED_RUNS
        named = self.doubtful[:NAMED_RUNS] + ([f"and {more} more"] if more > 0 else [])
        return f" [{', '.join(named)}]" if named else ""
