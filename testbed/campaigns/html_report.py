"""The page of a campaign or of one experiment: each folder's report (report.py) as parts of a page (analysis/reports)."""

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from record import records
from record.doubt import doubt
from record.errors import RecordError
from testbed.campaigns import missing
from testbed.campaigns.report import Report
from testbed.campaigns.time_limit import Cut
from testbed.columns import hanging
from testbed.errors import ManetError, UsageError, shortened

if TYPE_CHECKING:
    from analysis.reports.content import Command, ExperimentPart, Figure, NamedRun, NumberTable, Page

FORMAT = "manet-page/1"
LEFT_OUT, MISSING = "left out", "missing"
FOREST = "Each difference (mark) with its interval (line), numbered as in the table below; filled: decided, open: undecided."
PART_OPTIONS = ("--variant", "--out")  # replaced by the cell's
# unknown to `manet run`
CAMPAIGN_OPTIONS = ("--max-pairs", "--batch", "--cluster", "--snakemake", "--captures", "--disk", "--time")
CAMPAIGN_FLAGS = ("--asked", "--fresh")
VALUE_OPTIONS = ("--set", "--seeds", "--jobs", "--profile", "--clock", "--kernel")


class HtmlReport:
    """The report on a folder: of one experiment, or of a campaign with a folder for each of its experiments. `figures`: those
    that a command or experiment names, by folder (Report)."""

    def __init__(self, directory: Path, figures: Mapping[str, str] | None = None) -> None:
        self.directory, self._figures = directory, figures or {}
        self.reports: list[Report] = []
        self.problems: dict[str, str] = {}  # of experiments whose report could not be made, by folder
        self.path: Path | None = None  # of the page, once it is written

    def make(self, analyse_again: bool = False) -> Path:
        """Make tables and figures of every experiment and write the page; returns its path. UsageError without experiments."""
        from analysis.reports.page import write_page

        folders = self._folders()
        parts = [self._part(folder, analyse_again) for folder in folders]
        self.path = write_page(self.directory, self._page(_with_folders(parts, folders)))
        return self.path

    @property
    def is_complete(self) -> bool:
        """Whether every experiment's report is complete (Report.is_complete)."""
        return not self.problems and all(report.is_complete for report in self.reports)

    @property
    def has_bad_runs(self) -> bool:
        """Whether an experiment has runs that do not count, or no report."""
        return bool(self.problems) or any(report.has_bad_runs for report in self.reports)

    def as_json(self) -> dict[str, Any]:
        """The answer to `--json`: the page, each experiment's answer, and the experiments that could not be read."""
        experiments = [report.as_json() for report in self.reports]
        return {"format": FORMAT, "page": str(self.path), "experiments": experiments, "problems": self.problems}

    def print(self) -> None:
        """A line for each experiment and the page's path, on standard output."""
        for report in self.reports:
            print(hanging(f"{report.description['name']:<16}", report.verdict_line()))
        for name, problem in self.problems.items():
            print(hanging(f"{name:<16}", problem))
        print(f"page      {self.path}")

    def _pace(self) -> float | None:
        """The campaign's emulated seconds a second; None without a campaign."""
        campaign = records.read(self.directory / records.CAMPAIGN)
        return campaign["emulated_s"] / campaign["wall_s"] if campaign.get("wall_s") and campaign.get("emulated_s") else None

    def _folders(self) -> list[Path]:
        """The experiments' folders, in the campaign's order, then by name."""
        if (self.directory / records.EXPERIMENT).exists():
            return [self.directory]
        folders = sorted(path.parent for path in self.directory.glob(f"*/{records.EXPERIMENT}"))
        if not folders:
            text = "holds no experiment.json, nor folders with one; give a folder that `manet run` or `manet campaign` has made"
            raise UsageError(f"{shortened(str(self.directory))}: {text}")
        listed = records.read(self.directory / records.CAMPAIGN).get("experiments") or []
        return sorted(folders, key=lambda folder: listed.index(folder.name) if folder.name in listed else len(listed))

    def _part(self, folder: Path, analyse_again: bool) -> "ExperimentPart":
        """An experiment on the page; one whose folder cannot be read is there with the reason."""
        from analysis.reports.content import ExperimentPart

        try:
            report = Report(folder, self._figures.get(folder.resolve().name))
            report.make(analyse_again)
            part = self._part_of(report)
        except (RecordError, ManetError) as problem:
            name = folder.resolve().name
            self.problems[name] = str(problem)
            return ExperimentPart(_anchor(name), name, problem=str(problem))
        self.reports.append(report)
        return part

    def _part_of(self, report: Report) -> "ExperimentPart":
        from analysis.reports.answers import read_answers
        from analysis.reports.content import ExpectedOutcome, ExperimentPart
        from analysis.reports.forest import draw
        from analysis.reports.numbers import number_tables
        from analysis.reports.provenance import provenance
        from analysis.tables.results import size_of

        assert report.results is not None, "make() comes first"
        description, anchor = report.description, _anchor(report.directory.resolve().name)
        answers = read_answers(report.directory).timed(self._pace())
        drawn = [path for path in draw(report.directory, answers.answers) if path.suffix == ".svg"]
        verdict, _, line = report.verdict_line().partition(" ")
        svgs = [path for path in report.figures if path.suffix == ".svg"]
        return ExperimentPart(
            anchor=anchor,
            name=description["name"],
            question=description.get("question") or "",
            source=description.get("source") or "",
            size=size_of(description),
            problem=report.no_figure or "",
            verdict=verdict,
            verdict_line=line,
            endings=_endings(report),
            answers=answers,
            forest=self._figure(drawn[0], f"{anchor}-answers", FOREST) if drawn else None,
            figures=tuple(self._figure(svg, f"{anchor}-{number}", report.caption) for number, svg in enumerate(svgs, start=1)),
            tables=number_tables(report.results),
            outcome=report.outcome,
            checks=tuple(
                ExpectedOutcome(comparison.mark, comparison.text, comparison.detail) for comparison in report.comparisons
            ),
            doubtful=tuple(_doubtful(report)),
            remarks=(
                *([report.kept_text()] if report.kept else []),
                *(f"{remark['run']}: {remark['remark']}" for remark in report.remarks()),
            ),
            provenance=provenance(description, report.results),
            resume=missing.resume(report.directory, description) if report.missing or report.has_bad_runs else "",
            made_by="" if report.missing or report.has_bad_runs else missing.made_by(report.directory, description),
            commands=tuple(cell_commands(report.directory, description)),
        )

    def _figure(self, svg: Path, anchor: str, caption: str) -> "Figure":
        from analysis.reports.content import Figure
        from analysis.reports.inline_svg import inline_figure

        files = [(kind.upper(), svg.with_suffix(f".{kind}")) for kind in ("pdf", "png")]
        there = tuple((kind, str(path.relative_to(self.directory))) for kind, path in files if path.exists())
        return Figure(inline_figure(svg, anchor, caption), caption, there)

    def _page(self, parts: "list[ExperimentPart]") -> "Page":
        from analysis.reports.content import Page, PaperPart
        from analysis.reports.papers import OTHER, PAPERS, paper_of

        campaign = records.read(self.directory / records.CAMPAIGN)
        papers = [(paper, tuple(part for part in parts if paper_of(part.name) == paper)) for paper in (*PAPERS, OTHER)]
        name = campaign.get("name") or (parts[0].name if len(parts) == 1 else self.directory.resolve().name)
        return Page(
            title=f"Report: {name}",
            lead=_lead(campaign, parts),
            papers=tuple(PaperPart(f"paper-{p.code}", p.heading, members) for p, members in papers if members),
            pace=_pace(campaign),
            rounds=_rounds(campaign),
            command=_command(campaign),
        )


def _with_folders(parts: "list[ExperimentPart]", folders: list[Path]) -> "list[ExperimentPart]":
    """The parts; those of one experiment, such as its two sizes, with their folders after the name."""
    counts = Counter(part.name for part in parts)
    return [
        replace(part, name=f"{part.name} ({folder.name})") if counts[part.name] > 1 else part
        for part, folder in zip(parts, folders, strict=True)
    ]


def _anchor(name: str) -> str:
    return "x-" + "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)


def _endings(report: Report) -> tuple[tuple[str, int], ...]:
    """(verdict, number of runs), with those left out and those that are missing."""
    never = sum(not begun for begun in report.missing.values())
    counted = report.verdicts() | {LEFT_OUT: len(report.found.left_out), MISSING: never}
    return tuple((kind, count) for kind, count in counted.items() if count)


def _lead(campaign: dict[str, Any], parts: "list[ExperimentPart]") -> str:
    runs = sum(count for part in parts for kind, count in part.endings if kind != MISSING)
    answers = sum(len(part.answers.answers) for part in parts)
    counted = [(len(parts), "experiment"), (runs, "run"), (answers, "question")]
    text = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counted if count)
    size = f", {campaign['size']} size" if campaign.get("size") else ""
    return f"{text}{size}. A testbed for TCP over mobile ad hoc networks: kernel TCP over an emulated 802.11 medium."


def _pace(campaign: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """(label, value) of campaign.json; nothing without it. A batch counts when it has ended."""
    from analysis.reports.provenance import time_text

    if not campaign:
        return ()
    wall_s, emulated_s = campaign.get("wall_s") or 0, campaign.get("emulated_s") or 0
    pace = f"{emulated_s / wall_s:.1f} emulated seconds a second" if wall_s else ""
    entries = {
        "began": time_text(campaign.get("began") or ""),
        "ended": time_text(campaign.get("ended") or "has not ended"),
        "time limit": Cut(**campaign["time_limit"]).line() if campaign.get("time_limit") else None,
        "wall time": f"{wall_s:.0f} s for {emulated_s:.0f} s on the air ({pace})" if pace else "",
        "runs side by side": _jobs(campaign.get("batches") or []),
        "cluster": campaign.get("cluster"),
        "verdicts": ", ".join(f"{count} {kind}" for kind, count in (campaign.get("verdicts") or {}).items() if count),
    }
    return tuple((label, str(value)) for label, value in entries.items() if value)


def _command(campaign: dict[str, Any]) -> "Command | None":
    from analysis.reports.content import Command

    how = "The campaign's command:" if campaign.get("ended") else "The command that goes on:"
    return Command(how, campaign["resume"]) if campaign.get("resume") else None


def _jobs(batches: list[dict[str, Any]]) -> str:
    """`2`, or `2 to 16`: the runs side by side, at the begin and at most, of all batches."""
    jobs = sorted(number for batch in batches for number in batch.get("jobs") or [])
    return "" if not jobs else str(jobs[0]) if jobs[0] == jobs[-1] else f"{jobs[0]} to {jobs[-1]}"


def _rounds(campaign: dict[str, Any]) -> "NumberTable | None":
    from analysis.reports.content import NumberTable

    headings, keys = ("round", "batches", "runs", "wall s", "emulated s"), ("round", "batches", "runs", "wall_s", "emulated_s")
    rows = tuple(tuple(_plain(each.get(key)) for key in keys) for each in campaign.get("rounds") or [])
    caption = "Rounds: batches of paired runs, each round followed by a look at the data"
    return NumberTable(caption, headings, 1, rows) if rows else None


def _plain(value: object) -> str:
    return f"{value:.0f}" if isinstance(value, float) else "" if value is None else str(value)


def _doubtful(report: Report) -> "list[NamedRun]":
    """Every run that is not valid, was left out or is missing, with the reason."""
    from analysis.reports.content import NamedRun
    from analysis.tables.results import ending

    rows = report.results.rows if report.results else []
    named = [(row["run_dir"], ending(row)) for row in rows if ending(row) != "valid"]
    reasons = {run: doubt(report.directory / run) or "its files give no reason" for run, _ in named}
    doubtful = [NamedRun(run, kind, reasons[run].removeprefix(f"{kind}: ")) for run, kind in named]
    doubtful += [NamedRun(run, LEFT_OUT, reason) for run, reason in report.found.left_out.items()]
    never = [cell_seed for cell_seed, begun in report.missing.items() if not begun]
    return doubtful + [NamedRun(f"{cell}/seed-{seed}", MISSING, "was never run, or not to its end") for cell, seed in never]


def cell_commands(directory: Path, description: dict[str, Any]) -> "Iterator[Command]":
    """The command that runs each cell again, from the recorded one, into a folder of its own beside the results."""
    from analysis.reports.content import Command

    recorded = missing.recorded_words(directory, description)
    of_campaign = recorded[1:2] == ["campaign"]
    if of_campaign:
        recorded = _run_of_campaign(recorded, description["name"])
    base = _without_cells(recorded, set(description.get("axes", {})))
    beside = f"{directory.parent}-{directory.name}" if of_campaign else str(directory)
    for cell in description["cells"]:
        command = list(base)
        for key, value in cell["axes"].items():
            command += ["--set", f"{key}=[{json.dumps(value)}]"]
        command += ["--variant", cell["variant"]] if cell["variant"] else []
        command += ["--out", f"{beside}-{cell['name']}"]
        yield Command(cell["name"], shlex.join(command))


def _without_cells(command: list[str], axes: set[str]) -> list[str]:
    """The command without --resume and without the options that select cells and folder."""
    remaining, rest = [], iter(command)
    for word in rest:
        value = next(rest, "") if word in (*PART_OPTIONS, "--set") else ""
        if word in PART_OPTIONS or word == "--resume" or (word == "--set" and value.partition("=")[0].strip() in axes):
            continue
        remaining += [word, value] if word == "--set" else [word]
    return remaining


def _run_of_campaign(command: list[str], experiment: str) -> list[str]:
    """`manet run` of one experiment with the settings of a campaign."""
    names, options, rest = list[str](), list[str](), iter(command[2:])
    for word in rest:
        option, _, value = word.partition("=")
        if not word.startswith("-"):
            names.append(word)
        elif option in CAMPAIGN_FLAGS:
            continue
        elif option in CAMPAIGN_OPTIONS:
            if not value:
                next(rest, None)
        else:
            options += [word, next(rest, "")] if word in VALUE_OPTIONS else [word]
    files = [name for name in names if name.endswith(".toml") and Path(name).stem == experiment]
    return [command[0], "run", *(files or [experiment]), *options]
