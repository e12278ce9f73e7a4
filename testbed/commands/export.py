"""`manet export`: results in formats of other tools (docs/results-store.md)."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.commands.options import NO_STORE, add_verb, folder, new_file, seconds, written

if TYPE_CHECKING:
    from analysis.captures.rundir import RunDirectory

EXAMPLES = """
  ./manet export results/hv-fig1 --format csv
                    results/hv-fig1.csv: all runs with all columns
  ./manet export results/chain5/all/seed-1 --format flent
                    for flent-gui: throughput, RTT and window of each flow
  ./manet export results/chain5/all/seed-1 --format perfetto
                    for https://ui.perfetto.dev: frames, queues, segments
  ./manet export results/chain5/all/seed-1 --format pcapng --out /tmp/air.pcapng
                    the frames on the air, for Wireshark

  ./manet export results/chain5/all/seed-1 --format netjson --at 3
                    a NetworkGraph: stations at 3 s of the traffic, and links
  ./manet export chain5 --format netjson
                    chain5.json: a scenario that has not been run

flent, perfetto, pcapng and netjson show one run: name its directory, or a
folder with one run in it. csv of a run: its time series. A scenario reads a
NetworkGraph: topology = { file = "chain5.json" }.
"""
SUFFIXES = {"csv": ".csv", "flent": ".flent.gz", "perfetto": ".pftrace", "pcapng": ".pcapng", "netjson": ".json"}


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "export", "write results in a format of another tool", EXAMPLES)
    parser.add_argument(
        "source", metavar="DIR|RUN|NAME|FILE", type=folder,
        help="folder of results, or directory of a run; of netjson also a scenario",
    )  # fmt: skip
    parser.add_argument("--format", choices=tuple(SUFFIXES), required=True, help="csv, flent, perfetto, pcapng or netjson")
    parser.add_argument(
        "--out", metavar="FILE", type=new_file, help="the file (default: beside DIR or RUN, with the format's suffix)"
    )
    parser.add_argument(
        "--at", metavar="SECONDS", type=seconds, dest="at_s",
        help="netjson of a run: time from the start of its traffic (default: 0)",
    )  # fmt: skip
    parser.add_argument("--flows", action="store_true", help="csv of a folder: a row per run and flow instead of per run")


def run(options: argparse.Namespace) -> int:
    """Write the file and print its name."""
    from analysis.captures.rundir import RunDirectory
    from record.doubt import doubt
    from record.found_runs import find_run
    from testbed.campaigns.library import is_folder
    from testbed.errors import UsageError
    from testbed.runs.under_way import ended

    source: Path = options.source
    of_folder = options.format == "csv" and not (source / "run.json").exists()
    if options.flows and not of_folder:
        raise UsageError("--flows: only the CSV of a folder of results has rows per flow; leave it out")
    if options.at_s is not None and (options.format != "netjson" or not source.is_dir()):
        raise UsageError("--at: is for netjson of a run; leave it out")
    if options.format == "netjson" and not is_folder(str(source)):
        out = _out(options, Path(source.stem))
        _write_planned(str(source), out)
    elif of_folder:
        out = _out(options, source.resolve())
        _write_table(source, out, options.flows)
    else:
        recorded = RunDirectory(ended(find_run(source)))
        out = _out(options, recorded.path.resolve())
        _require_whole(recorded.path)
        if why := doubt(recorded.path):
            print(why)
        _write_run(recorded, options, out)
    print(written([out]))
    return 0


def _out(options: argparse.Namespace, source: Path) -> Path:
    """The file to write. UsageError for a name whose suffix the readers of the format would not know."""
    from testbed.errors import UsageError

    suffix = SUFFIXES[options.format]
    out: Path = options.out or source.parent / (source.name + suffix)
    if not out.name.endswith(suffix):
        raise UsageError(f"{out}: is no name of a file for {options.format}; give one that ends in {suffix}")
    if not out.resolve().parent.is_dir():
        raise UsageError(f"{out}: there is no folder {out.resolve().parent}; make it, or correct the path")
    return out


def _require_whole(run_dir: Path) -> None:
    """RunFileError for a run whose files differ from its manifest, or whose captures were dropped."""
    from record import manifest
    from record.errors import RunFileError

    if not (run_dir / manifest.NAME).exists():
        return
    problem = manifest.difference(run_dir)
    if problem and not manifest.only_derived_differ(run_dir):
        raise RunFileError(f"{run_dir}: {problem}; run it again")
    if dropped := manifest.dropped_files(run_dir):
        why = f"{next(iter(dropped))} was dropped (--captures or --disk of a campaign)"
        raise RunFileError(f"{run_dir}: {why}; `./manet run {run_dir}` repeats the run with all files; export that one")


def _write_table(directory: Path, out: Path, flows: bool) -> None:
    from analysis.exports.csv_files import write_table
    from analysis.store import schema
    from analysis.store.files import read, stores_below
    from testbed.errors import UsageError

    folders = stores_below(directory)
    if not folders:
        raise UsageError(f"{directory}: {NO_STORE}")
    write_table(read(folders, schema.FLOWS if flows else schema.RUNS), out)


def _write_planned(name: str, out: Path) -> None:
    """The network of a scenario, by name or file, with its first seed. Raises UsageError."""
    from analysis.exports import netjson
    from testbed.campaigns.experiment import load
    from testbed.campaigns.library import find
    from testbed.campaigns.request import Request
    from testbed.errors import UsageError
    from testbed.stages.medium import planned_config
    from topologies.addresses import ip_address

    cells = load(find(name), Request()).cells
    if len(cells) > 1:
        raise UsageError(f"{name}: is an experiment of {len(cells)} scenarios; give one scenario, or the directory of a run")
    scenario = cells[0].scenario
    medium = planned_config(scenario, 1)
    addresses = {station: [ip_address(number)] for number, station in enumerate(scenario.station_names(), start=1)}
    routing, placed = scenario.routing.protocol, scenario.topology != "unplaced"
    netjson.write(netjson.of_medium(medium, addresses, routing, placed=placed), out)


def _write_run(recorded: "RunDirectory", options: argparse.Namespace, out: Path) -> None:
    import shutil

    from analysis.exports import csv_files, flent
    from record.files import atomic_file

    form = options.format
    if form == "netjson":
        from analysis.exports import netjson

        netjson.write(netjson.of_run(recorded, options.at_s or 0.0), out)
    elif form == "csv":
        csv_files.write_series(recorded, out)
    elif form == "flent":
        flent.write(recorded, out)
    elif form == "perfetto":
        from analysis.exports import perfetto

        perfetto.write(recorded, out)
    else:
        with _air_capture(recorded.path).open("rb") as capture, atomic_file(out, "wb") as file:
            shutil.copyfileobj(capture, file)


def _air_capture(run_dir: Path) -> Path:
    """The medium's capture of the air; UsageError for a run without one."""
    from testbed.errors import UsageError

    path = run_dir / "air.pcapng"
    if not path.is_file():
        raise UsageError(f"{path}: missing; the run was recorded without it, or it was left out of a bundle")
    return path
