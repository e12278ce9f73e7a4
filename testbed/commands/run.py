"""`manet run`: an experiment or a scenario file, to its tables and figure; or a recorded run once more."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.commands.options import (
    add_campaign,
    add_clock,
    add_internet,
    add_overrides,
    add_verb,
    folder,
    overrides,
    place_of,
    positive,
    results_folder,
)

if TYPE_CHECKING:
    from testbed.campaigns.experiment import Experiment
    from testbed.campaigns.progress import Progress

EXAMPLES = """
  ./manet run hv-fig1 --quick       the quick size, minutes
  ./manet run hv-fig1               full size; results in results/hv-fig1
  ./manet run hv-fig1 --quick --variant hv --set hops=[1,3,5] --seeds 3 \\
              --out /tmp/odd-hops   part of an experiment
  ./manet run hv-fig1 --profile modern --set tcp=cubic --out results/cubic
  ./manet run hv-fig1 --resume      do the runs that are still missing
  ./manet run chain5 --set duration=10 --json
  ./manet run results/hv-fig1/hv-hops3/seed-2
                                    that run again, into results/again
  ./manet run hv-fig1 --quick --clock virtual
                                    independent of the host's load
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "run", "run an experiment, a scenario file, or a recorded run again", EXAMPLES)
    parser.add_argument(
        "experiment", metavar="NAME|FILE|RUN", help="an experiment (./manet list), a TOML file, or a run's directory"
    )
    parser.add_argument("--quick", action="store_true", help="the experiment's quick size")
    parser.add_argument("--out", metavar="DIR", type=folder, help="folder of results (default: results/NAME[-quick])")
    add_overrides(parser)
    add_clock(parser)
    add_internet(parser)
    parser.add_argument("--variant", metavar="NAME", action="append", default=[], help="only this variant; may be repeated")
    parser.add_argument("--seeds", metavar="N", type=positive, help="seeds 1 to N instead of the experiment's number")
    parser.add_argument("--only", metavar="CELL/seed-N", help="only this run; --resume does the others later")
    parser.add_argument("--resume", action="store_true", help="keep complete runs of the same scenario in the folder")
    add_campaign(parser)
    parser.add_argument(
        "--progress", choices=("text", "json"), default="text",
        help="progress on standard error for people, or a JSON object a line for programs (formats/serve.md)",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Run an experiment, a scenario or a recorded run. The exit status: 1 if a run failed or is void."""
    from testbed.campaigns.experiment import load
    from testbed.campaigns.library import find, is_folder
    from testbed.campaigns.request import Request
    from testbed.runs.template import TEMPLATE

    if options.clock != "virtual":
        TEMPLATE.fork_early()
    if is_folder(options.experiment):
        return repeat(options)
    request = Request(options.quick, overrides(options), tuple(options.variant), options.seeds)
    experiment = load(find(options.experiment), request)
    default = results_folder() / (experiment.name + ("-quick" if options.quick else ""))
    return carry_out(experiment, options.out or default, options)


def carry_out(experiment: "Experiment", directory: Path, options: argparse.Namespace) -> int:
    """Run, analyse, print; returns 1 if a run failed or stayed void, or the figure could not be drawn."""
    import json
    from dataclasses import asdict

    from record.doubt import doubt
    from testbed.workers.execution import Conditions, execute

    chosen = vars(options)
    conditions = Conditions(
        options.jobs, chosen.get("kernel"), chosen.get("allow_internet", False), options.resume,
        place_of("tcp", chosen.get("overrides", ()), experiment.name), resume_command(experiment, directory, options),
        only=chosen.get("only"),
    )  # fmt: skip
    executed = execute(experiment, directory, conditions, progress_of(options), say)
    outcomes, report = executed.outcomes, executed.report
    runs = [
        {"cell": o.task.cell.name, "seed": o.task.seed, "status": o.status, "verdict": o.verdict, "voids": o.voids,
         "error": o.reason or None, "directory": str(o.task.directory)}
        for o in outcomes
    ]  # fmt: skip
    if options.json:
        print(json.dumps(report.as_json(runs) | {"pace": asdict(executed.pace)}, indent=1))
    else:
        report.print()
        print(f"pace      {executed.pace.line()}, {min(executed.jobs, len(outcomes))} side by side")
    for outcome in executed.bad:
        kind = "failed" if outcome.status == "failed" and not outcome.host_late else "void"
        reason = outcome.reason or (doubt(outcome.task.directory) or "").partition(": ")[2]
        say(f"{outcome.task.name}: {kind}: {reason or 'it has no verdict.json'} [{outcome.task.directory}]")
    return 0 if report.is_complete and not executed.bad else 1


def say(text: str) -> None:
    """A line on standard error, where the progress is."""
    print(f"manet run: {text}", file=sys.stderr, flush=True)


def progress_of(options: argparse.Namespace) -> "Progress":
    """Progress in the form that `--progress` names; verbs without the option print text."""
    from testbed.campaigns.progress import Progress
    from testbed.campaigns.progress_json import JsonProgress

    return JsonProgress() if getattr(options, "progress", "text") == "json" else Progress()


def resume_command(experiment: "Experiment", directory: Path, options: argparse.Namespace) -> str:
    """The command that continues this campaign."""
    import shlex

    chosen = vars(options)
    command = ["./manet", "run", chosen.get("experiment", experiment.name), *(["--quick"] if experiment.quick else [])]
    lists = {"--set": chosen.get("overrides", ()), "--variant": chosen.get("variant", ())}
    command += [word for option, values in lists.items() for value in values for word in (option, value)]
    command += ["--allow-internet"] if chosen.get("allow_internet") else []
    singles = {f"--{name}": chosen.get(name) for name in ("seeds", "profile", "clock", "kernel")}
    command += [str(word) for option, value in singles.items() if value is not None for word in (option, value)]
    return shlex.join([*command, "--out", str(directory), "--resume"])


def repeat(options: argparse.Namespace) -> int:
    """Repeat a recorded run; returns 1 if it failed, is void, or contradicts itself."""
    import json

    from analysis.metrics.verdict_file import contradicts_itself
    from testbed.campaigns.remaining import Work
    from testbed.errors import UsageError
    from testbed.runs.again import new_directory, require_repeatable, run_again
    from testbed.runs.by_hand import with_actions
    from testbed.runs.recorded import Recorded
    from testbed.workers.runner import runner_for

    refused = {
        "--quick": options.quick, "--set": options.overrides, "--profile": options.profile, "--clock": options.clock,
        "--variant": options.variant, "--seeds": options.seeds, "--only": options.only, "--resume": options.resume,
    }  # fmt: skip
    stray = next((option for option, value in refused.items() if value), None)
    if stray is not None:
        raise UsageError(
            f"{stray}: {options.experiment} is a recorded run, repeated as it was; leave it out, or name its experiment"
        )
    recorded = Recorded.read(Path(options.experiment))
    require_repeatable(recorded)
    directory = options.out or new_directory(results_folder(), recorded)
    name = str(recorded.directory)
    scenario = with_actions(recorded.directory, recorded.scenario).scenario
    runner = runner_for(
        {name: scenario}, [recorded.seed], say=say, tcp_place=place_of("tcp", options.overrides, name),
        kernel=options.kernel, allow_internet=options.allow_internet,
    )  # fmt: skip
    progress = progress_of(options)
    progress.expect([Work.of(directory.name, scenario)], jobs=1, starts=1)
    progress.note(progress.plan())

    def show_stage(stage: str, fraction: float | None) -> None:
        progress.stage(directory.name, stage, fraction)

    try:
        answer = run_again(recorded, directory, runner, show_stage)
        progress.finished(directory.name, answer["verdict"] if answer["status"] == "complete" else answer["status"])
    finally:
        progress.close()
    print(json.dumps(answer, indent=1) if options.json else "\n".join(_again_lines(answer)))
    if answer["error"]:
        print(f"manet run: {answer['error']}", file=sys.stderr)
    counts = answer["status"] == "complete" and answer["verdict"] in ("valid", "suspect")
    return 0 if counts and not contradicts_itself(directory) else 1


def _again_lines(answer: dict[str, Any]) -> list[str]:
    from record.doubt import doubt

    lines = [f"again     {answer['repeats']}: its scenario, seed {answer['seed']}, profile {answer['profile']}"]
    lines += [f"by hand   {action}, as in the record" for action in answer["by_hand"]]
    lines += [f"differs   {difference}" for difference in answer["differences"]]

    def kbps(value: float | None) -> str:
        return "none" if value is None else f"{value / 1000:.0f}"

    lines += [
        f"{name:<9} delivered {kbps(flow['again_bps'])} kbit/s, in the record {kbps(flow['recorded_bps'])}"
        for name, flow in answer["flows"].items()
    ]
    lines += [f"remark    {remark}" for remark in answer["remarks"]]
    lines.append("note      a seed does not repeat what the stations' kernels do; `manet replay` repeats what the medium did")
    verdict = doubt(Path(answer["directory"])) or answer["verdict"] or answer["status"]
    return [*lines, f"verdict   {verdict}", f"results   {answer['directory']}"]
