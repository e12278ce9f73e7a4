"""`manet export`: results in formats of other tools (docs/results-store.md)."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.commands.options import NO_STORE, add_verb, folder, new_file, written

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

flent, perfetto and pcapng show one run: name its directory, or a folder with
one run in it. csv of a run: its time series.
"""
SUFFIXES = {"csv": ".csv", "flent": ".flent.gz", "perfetto": ".pftrace", "pcapng": ".pcapng"}


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "export", "write results in a format of another tool", EXAMPLES)
    parser.add_argument("source", metavar="DIR|RUN", type=folder, help="folder of results, or directory of a run")
    parser.add_argument("--format", choices=tuple(SUFFIXES), required=True, help="csv, flent, perfetto or pcapng")
    parser.add_argument(
        "--out", metavar="FILE", type=new_file, help="the file (default: beside DIR or RUN, with the format's suffix)"
    )
    parser.add_argument("--flows", action="store_true", help="csv of a folder: a row per run and flow instead of per run")


def run(options: argparse.Namespace) -> int:
    """Write the file and print its name."""
    from analysis.captures.rundir import RunDirectory
    from record.doubt import doubt
    from record.found_runs import find_run
    from testbed.errors import UsageError
    from testbed.runs.under_way import ended

    source: Path = options.source
    of_folder = options.format == "csv" and not (source / "run.json").exists()
    if options.flows and not of_folder:
        raise UsageError("--flows: only the CSV of a folder of results has rows per flow; leave it out")
    if of_folder:
        out = _out(options, source.resolve())
        _write_table(source, out, options.flows)
    else:
        recorded = RunDirectory(ended(find_run(source)))
        out = _out(options, recorded.path.resolve())
        _require_whole(recorded.path)
        if why := doubt(recorded.path):
            print(why)
        _write_run(recorded, options.format, out)
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


def _write_run(recorded: "RunDirectory", form: str, out: Path) -> None:
    import shutil

    from analysis.exports import csv_files, flent
    from record.files import atomic_file

    if form == "csv":
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
