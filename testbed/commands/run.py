"""`manet run`: an experiment or a scenario file, to its tables and figure."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from testbed.commands.options import (
    add_campaign,
    add_clock,
    add_overrides,
    add_verb,
    folder,
    overrides,
    place_of,
    positive,
    results_folder,
)

EXAMPLES = """
  ./manet run hv-fig1 --quick                          the quick size, minutes
  ./manet run hv-fig1                                  full size; results in results/hv-fig1
  ./manet run hv-fig1 --quick --variant hv --set hops=[1,3,5] --seeds 3 --out /tmp/odd-hops
  ./manet run hv-fig1 --profile modern --set tcp=cubic --out results/hv-fig1-cubic
  ./manet run hv-fig1 --resume                         do the runs that are still missing
  ./manet run experiments/scenarios/chain5.toml --set duration=10 --json
  ./manet run hv-fig1 --quick --clock virtual          the same on any host, however busy (docs/virtual-time.md)
"""


def add(verbs: argparse._SubParsersAction) -> None:
    parser = add_verb(verbs, "run", "run an experiment by name, or a scenario file", EXAMPLES)
    parser.add_argument("experiment", metavar="NAME|FILE", help="a name of experiments/, or a TOML file")
    parser.add_argument("--quick", action="store_true", help="the experiment's quick size")
    parser.add_argument("--out", metavar="DIR", type=folder, help="folder of results (default: results/NAME, results/NAME-quick)")
    add_overrides(parser)
    add_clock(parser)
    parser.add_argument("--variant", metavar="NAME", action="append", default=[], help="only this variant; may be repeated")
    parser.add_argument("--seeds", metavar="N", type=positive, help="seeds 1 to N instead of the experiment's number")
    parser.add_argument("--resume", action="store_true", help="keep complete runs of the same scenario in the folder")
    add_campaign(parser)


def run(options: argparse.Namespace) -> int:
    from testbed.campaigns.experiment import Request, find, load

    request = Request(options.quick, overrides(options), tuple(options.variant), options.seeds)
    experiment = load(find(options.experiment), request)
    default = results_folder() / (experiment.name + ("-quick" if options.quick else ""))
    return carry_out(experiment, options.out or default, options)


def carry_out(experiment, directory: Path, options: argparse.Namespace) -> int:
    """Runs, analyses, prints; 1 if a run failed or stayed void."""
    import json
    from dataclasses import asdict

    from testbed.campaigns.campaign import Campaign
    from testbed.campaigns.progress import Progress
    from testbed.campaigns.report import Report
    from testbed.campaigns.side_by_side import default_jobs
    from testbed.commands.curve import measured_now
    from testbed.curves.lay_out import curves_of, lay_out
    from testbed.guests.virtual_time import most_guests

    runner = runner_for([cell.scenario for cell in experiment.cells], options, experiment.name)
    curves = curves_of(experiment, lambda wanted: measured_now(wanted, options.jobs)) if experiment.expected else {}
    progress = Progress()
    jobs = options.jobs or default_jobs((cell.scenario for cell in experiment.cells), most_guests())
    try:
        campaign = Campaign(experiment, directory, jobs, progress, runner)
        outcomes = campaign.run(options.resume)
        lay_out(curves, directory)
        progress.note("measuring the captures")
        report = Report(directory)
        report.make()
    finally:
        progress.close()
    runs = [
        {"cell": o.task.cell.name, "seed": o.task.seed, "status": o.status, "verdict": o.verdict, "voids": o.voids,
         "error": o.reason or None, "directory": str(o.task.directory)}
        for o in outcomes
    ]  # fmt: skip
    if options.json:
        print(json.dumps(report.as_json(runs) | {"pace": asdict(campaign.pace)}, indent=1))
    else:
        report.print()
        print(f"pace      {campaign.pace.line()}, {min(jobs, len(outcomes))} side by side")
    bad = [o for o in outcomes if o.status == "failed" or o.verdict == "void"]
    for outcome in bad:
        # why it failed was said when it ended
        kind = outcome.status if outcome.status == "failed" else outcome.verdict
        print(f"manet run: {outcome.task.name}: {kind}; see {outcome.task.directory}/log", file=sys.stderr)
    return 1 if bad else 0


def runner_for(scenarios: list, options: argparse.Namespace, name: str) -> Callable:
    """What carries out each run by its scenario's clock; what this machine lacks for that is said before the first begins."""
    from testbed.errors import UsageError
    from testbed.guests.virtual_time import Guests
    from testbed.host.protocols import require_protocol
    from testbed.host.radios import require_radios
    from testbed.host.requirements import require_for_runs
    from testbed.runs.preflight import check_tcps
    from testbed.runs.run import run_scenario

    kernel, settings = getattr(options, "kernel", None), getattr(options, "overrides", ())
    by_clock: dict[str, Callable] = {}
    if real := [scenario for scenario in scenarios if scenario.clock == "real"]:
        require_for_runs()
        check_tcps((tcp for scenario in real for tcp in scenario.tcps()), place_of("tcp", settings, name))
        for protocol in sorted({scenario.routing.protocol for scenario in real}):
            require_protocol(protocol)
        for stations in sorted({scenario.stations for scenario in real}):
            require_radios(stations)
        by_clock["real"] = run_scenario
    if len(real) < len(scenarios):
        by_clock["virtual"] = Guests(kernel, say=lambda text: print(f"manet run: {text}", file=sys.stderr, flush=True)).run
    elif kernel is not None:
        raise UsageError(f"--kernel {kernel}: no run is in a guest; add --clock virtual, or leave it out")
    return lambda scenario, *arguments, **options: by_clock[scenario.clock](scenario, *arguments, **options)
