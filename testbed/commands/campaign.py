"""`manet campaign`: experiments with as many seeds as their questions need, on this machine or a cluster."""

import argparse
import hashlib
import math
import sys
from typing import TYPE_CHECKING, Any

from testbed.commands.options import add_overrides, add_verb, duration_s, folder, overrides, positive, results_folder

if TYPE_CHECKING:
    from pathlib import Path

    from testbed.campaigns.html_report import HtmlReport
    from testbed.campaigns.rounds import Member

PAPERS, ALL = ("hv", "be", "rt", "im", "wm"), "all"
EXAMPLES = """
  ./manet campaign hv --quick       HV's experiments, until their questions
                                    are decided: results/campaign-hv-quick
  ./manet campaign all --quick      all five papers
  ./manet campaign hv-fig12 rt-mobile --quick
  ./manet campaign hv --cluster slurm --snakemake "--default-resources
              slurm_partition=debug"

The same command goes on after an end in the middle (docs/campaigns.md).
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "campaign", "run experiments until their questions are decided", EXAMPLES)
    parser.add_argument(
        "names", metavar="PAPER|NAME|FILE", nargs="+", help=f"a paper ({', '.join(PAPERS)}, or {ALL}), an experiment, a TOML file"
    )
    parser.add_argument("--quick", action="store_true", help="the quick size of each experiment")
    parser.add_argument(
        "--out", metavar="DIR", type=folder, help="the campaign's folder (default: results/campaign-NAME[-quick])"
    )
    add_overrides(parser)
    parser.add_argument("--clock", choices=("real", "virtual"), help="virtual: runs in guests (docs/virtual-time.md)")
    parser.add_argument("--kernel", metavar="NAME", help="kernel of those guests")
    parser.add_argument("--seeds", metavar="N", type=positive, help="seeds of the first round instead of the size's number")
    parser.add_argument(
        "--max-pairs", metavar="N", type=positive, help="limit of seeds of each question instead of the full size's number"
    )
    parser.add_argument("--asked", action="store_true", help="only the cells that a question compares")
    parser.add_argument(
        "--jobs", metavar="N|auto", type=lambda text: None if text == "auto" else positive(text),
        help="parallel runs of each worker (default: auto, measured while they run)",
    )  # fmt: skip
    parser.add_argument(
        "--batch",
        metavar="MINUTES",
        type=positive,
        default=10,
        help="wall time that a batch of a cluster aims at (default: 10); here a round is one batch",
    )
    parser.add_argument(
        "--time", metavar="DURATION", type=duration_s, default=math.inf,
        help="start no run after this wall time, such as 90m or 2h (a number alone: minutes); the same command goes on",
    )  # fmt: skip
    parser.add_argument("--fresh", action="store_true", help="run also what docs/results has as rows of earlier runs")
    parser.add_argument("--cluster", choices=("slurm",), help="run batches as jobs of a cluster; its nodes share this folder")
    parser.add_argument("--snakemake", metavar="OPTIONS", default="", help="more options of snakemake, in quotes")
    parser.add_argument(
        "--captures", choices=("all", "first", "none"), default="all",
        help="large files that stay once a run is measured: of all runs (default), of each cell's seed 1, of none",
    )  # fmt: skip
    parser.add_argument(
        "--disk", metavar="GB", type=positive, help="delete large files of measured runs, the last first, above this"
    )


def run(options: argparse.Namespace) -> int:
    """Run the rounds and print the answers. The exit status: 1 if runs are void or failed, or missing without a time limit."""
    import shlex
    import time
    from contextlib import ExitStack

    from record import records
    from record.files import read_object
    from testbed.campaigns import captures, local, snakemake
    from testbed.campaigns.batch import Batch
    from testbed.campaigns.folder import CampaignFolder
    from testbed.campaigns.html_report import HtmlReport
    from testbed.campaigns.rounds import Rounds, now, write_record
    from testbed.campaigns.side_by_side import default_jobs
    from testbed.campaigns.time_limit import TimeLimit
    from testbed.columns import hanging
    from testbed.errors import UsageError

    if options.snakemake and not options.cluster:
        raise UsageError("--snakemake: goes with --cluster; without a cluster no Snakemake runs")
    if options.cluster:
        snakemake.require_installed()
    limit = TimeLimit(time.time() + options.time)
    members = members_of(options)
    directory = members[0].directory.parent
    arguments = sys.argv[1:] if sys.argv[1:2] == ["campaign"] else ["campaign", *options.names]
    name = name_of(options.names)
    with CampaignFolder.claimed(directory) as claim, ExitStack() as stack:
        before = read_object(directory / records.CAMPAIGN)
        if records.wrong_value(records.CAMPAIGN, before) is not None:
            before = {}  # edited: as one that is damaged
        head: dict[str, Any] = {
            "name": name, "resume": shlex.join(["./manet", *arguments]), "size": "quick" if options.quick else "full",
            "experiments": [member.experiment.name for member in members], "began": before.get("began") or now(),
            "cluster": options.cluster, "scenarios": hash_of_scenarios(members), "time_limit": None,
        }  # fmt: skip
        claim.require_same(before, head)
        workflow = (
            snakemake.workflow(directory, options.snakemake, claim.release, options.batch)
            if options.cluster
            else stack.enter_context(local.workflow(directory, claim.release))
        )
        lay_out_members(members, head["resume"], options.jobs, not options.fresh)
        write_record(directory, head, ended=False)
        scenarios = [cell.scenario for member in members for cell in member.experiment.cells]
        rounds = Rounds(
            directory, members, Batch((), options.jobs, options.captures, options.kernel),
            workflow, say,
            options.jobs or default_jobs(scenarios), 60.0 * options.batch if options.cluster else math.inf, limit,
        )  # fmt: skip
        try:
            rounds.run()
        except KeyboardInterrupt:
            say(f"ended; complete runs are kept, and the same command goes on: {head['resume']}")
            raise
        finally:
            write_record(directory, head, ended=False)
        stack.close()  # the worker has no more to do
        if options.disk:
            runs = sorted(path.parent for path in directory.glob("*/*/seed-*/run.json"))
            changed, size = captures.within(options.disk * 1e9, runs)
            say(f"disk budget: the large files of {changed} runs deleted, {size / 1e9:.1f} GB (named in their manifest.json)")
        head["time_limit"] = rounds.cut.to_json() if rounds.cut else None
        record = write_record(directory, head, ended=True)
        say("writing tables, figures and the page")
        figures = {member.directory.name: member.experiment.figure for member in members if member.experiment.figure}
        page = HtmlReport(directory, figures)
        page.make()
    print_answers(page)
    print_summary(directory, record)
    if rounds.cut:
        print(hanging("limit     ", rounds.cut.line()))
        return 1 if page.has_bad_runs else 0
    return 0 if page.is_complete else 1


def hash_of_scenarios(members: "list[Member]") -> str:
    """SHA-256 of the scenarios of all cells: a campaign goes on with the settings that it began with."""
    digest = hashlib.sha256()
    for member in members:
        for cell in member.experiment.cells:
            digest.update(f"{member.experiment.name}/{cell.name}\n{cell.scenario.to_json()}\n".encode())
    return digest.hexdigest()


def members_of(options: argparse.Namespace) -> "list[Member]":
    """The experiments, checked, each with its folder."""
    from dataclasses import replace

    from testbed.campaigns.experiment import load
    from testbed.campaigns.library import find, names
    from testbed.campaigns.request import Request
    from testbed.campaigns.rounds import Member
    from testbed.errors import UsageError

    chosen: list[str] = []
    for name in options.names:
        papers = PAPERS if name == ALL else (name,) if name in PAPERS else ()
        chosen += [listed for paper in papers for listed in names() if listed.startswith(f"{paper}-")] if papers else [name]
    quick = "-quick" if options.quick else ""
    directory = options.out or results_folder() / f"campaign-{name_of(options.names)}{quick}"
    request = Request(options.quick, overrides(options), (), options.seeds)
    members = []
    for name in dict.fromkeys(chosen):
        experiment = load(find(name, (*PAPERS, ALL)), request)
        if options.max_pairs:
            questions = tuple(question.model_copy(update={"max_pairs": options.max_pairs}) for question in experiment.questions)
            seeds = experiment.seeds if options.seeds else min(experiment.seeds, options.max_pairs)
            experiment = replace(experiment, questions=questions, seeds=seeds)
        if options.asked and name in options.names and not experiment.questions:
            raise UsageError(f"{name}: has no questions, so --asked leaves no run of it; leave out --asked")
        members.append(Member(replace(experiment, asked_only=options.asked), directory / experiment.name))
    return members


def name_of(names: list[str]) -> str:
    """The campaign's name: its papers, experiments and files, these without folder and suffix."""
    return "-".join(name.rpartition("/")[2].removesuffix(".toml") if name.endswith(".toml") else name for name in names)


def lay_out_members(members: "list[Member]", command: str, jobs: int | None, with_rows: bool = True) -> None:
    """Write experiment.json of each, the kept rows that count as done, and the chain curves that its analysis needs (measured
    first if they are missing)."""
    from record.files import write_atomic
    from testbed.campaigns import kept
    from testbed.curves.curve import curves_of, lay_out
    from testbed.curves.measure import measured_now

    for member in members:
        member.directory.mkdir(parents=True, exist_ok=True)
        write_atomic(member.directory / "experiment.json", member.experiment.to_json(command))
        if with_rows and (line := kept.lay_out(member.experiment, member.directory).line(member.experiment.name)):
            say(line)
        if member.experiment.expected:
            lay_out(curves_of(member.experiment, lambda needed: measured_now(needed, jobs)), member.directory)


def print_answers(page: "HtmlReport") -> None:
    """Each experiment's verdict and answers; its tables and figures are on the page."""
    from testbed.columns import hanging

    for report in page.reports:
        print(f"\n{report.description['name']}: {report.verdict_line()}")
        for answer in report.answers:
            print(hanging("answer    ", answer.line()))
    for name, problem in page.problems.items():
        print(f"\n{name}: {problem}")


def print_summary(directory: "Path", record: dict[str, Any]) -> None:
    """The last lines: all answers, verdicts, pace."""
    from record.files import read_object

    answers = [
        answer for name in record["experiments"] for answer in read_object(directory / name / "answers.json").get("answers", ())
    ]
    open_ones = sum(answer["answer"] == "undecided" for answer in answers)
    verdicts = ", ".join(f"{number} {kind}" for kind, number in record["verdicts"].items() if number)
    pace = record["emulated_s"] / record["wall_s"] if record["wall_s"] else 0.0
    print(f"\nquestions {len(answers) - open_ones} of {len(answers)} decided" if answers else "\nquestions none")
    print(f"verdicts  {verdicts}; {record['reruns']} reruns")
    print(f"pace      {record['emulated_s']:.0f} s on the air in {record['wall_s']:.0f} s: {pace:.1f} a second")
    print(f"page      {directory / 'report.html'}")


def say(text: str) -> None:
    """A line on standard error, where the progress is."""
    print(f"manet campaign: {text}", file=sys.stderr, flush=True)
