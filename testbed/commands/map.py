"""`manet map`: a picture of a network at one moment, from a run under way, a run that has ended, or a movement file."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.commands.options import add_verb, metres, picture, seconds, written

if TYPE_CHECKING:
    from analysis.maps.snapshot import Snapshot
    from testbed.runs.live_map import MappedNetwork

EXAMPLES = """
  ./manet map                       the run under way: map.png and text
  ./manet map results/hv-fig3/reno-speed20/seed-1 --at 12.5
                                    an ended run, 12.5 s into its traffic
  ./manet map mobility/patterns/p06.tcl --at 100
                                    a movement file at 100 s
  ./manet map --every 1 --out /tmp/now.png
                                    the run under way, redrawn each second
  ./manet map --path sta2 sta5       this path instead of the scenario's flows

At the prompt of `manet cli`: map, map FILE.png 1, map off.
The picture is explained in docs/map.md.
"""
RANGE_M = 250.0


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "map", "when one moment is enough: stations, ranges, links, paths as a picture", EXAMPLES)
    parser.add_argument(
        "what", metavar="RUN|FILE", nargs="?", help="a run's directory or a movement file (default: the run under way)"
    )
    parser.add_argument(
        "--at", metavar="SECONDS", type=seconds, dest="at_s",
        help="ended run: time from the start of its traffic (default: the middle; session: the end); file: its own (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="FILE.png", type=picture,
        help="the picture (default: map.png in the run's folder; of a file: in the current folder)",
    )  # fmt: skip
    parser.add_argument(
        "--every", metavar="SECONDS", type=seconds, dest="every_s", help="run under way: redraw at this interval until Ctrl-C"
    )
    parser.add_argument(
        "--path", metavar=("FROM", "TO"), nargs=2, action="append", default=[],
        help="run under way: the path between two stations; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--range", metavar="METRES", type=metres, dest="range_m", help="movement file: range of the radio (default: 250)"
    )


def run(options: argparse.Namespace) -> int:
    """Draw one moment, or keep redrawing the run under way."""
    from testbed.errors import UsageError
    from testbed.runs.live_map import live

    path = _path_of(options.what) if options.what else None
    if options.range_m is not None and not (path is not None and path.is_file()):
        raise UsageError(
            f"--range {options.range_m:g}: applies to movement files only, a run uses its radio's range; omit --range"
        )
    network = None if path is not None and path.is_file() else live(path)
    if network is not None:
        if options.at_s is not None:
            raise UsageError(
                f"--at {options.at_s:g}: {network.directory} is running, so only the present can be drawn; omit --at"
            )
        return _now(network, options)
    if options.every_s is not None or options.path:
        raise UsageError(f"{path}: not under way; --every and --path need a run that is")
    assert path is not None
    return _show(_past(path, options), options.out or (Path() if path.is_file() else path) / "map.png")


def _path_of(what: str) -> Path:
    """The file, or the directory of the run (or the only run in a folder). Raises UsageError."""
    from record.found_runs import find_run
    from testbed.errors import UsageError

    path = Path(what)
    if not path.exists():
        expected = "a run's folder, results/NAME/CELL/seed-N, or a movement file, mobility/patterns/p06.tcl"
        raise UsageError(f"{what}: there is no such folder or file; name {expected}")
    return path if path.is_file() else find_run(path)


def _now(network: "MappedNetwork", options: argparse.Namespace) -> int:
    from testbed.errors import UsageError
    from testbed.runs.live_map import Updater

    pairs = [(a, b) for a, b in options.path]
    unknown = [name for pair in pairs for name in pair if name not in network.netns]
    if unknown:
        raise UsageError(f"--path {unknown[0]}: there is no such station in {network.directory}")
    file = options.out or network.directory / "map.png"
    if options.every_s is None:
        return _show(network.snapshot(pairs), file)
    if not 0.2 <= options.every_s <= 3600:
        raise UsageError(f"--every {options.every_s:g}: give seconds from 0.2 to 3600")
    _show(network.snapshot(pairs), file)
    updater = Updater(network, file, options.every_s, pairs)
    try:
        updater.wait_while_it_works()
    except KeyboardInterrupt:  # the run itself goes on
        pass
    finally:
        updater.stop()
    print("\n".join(line for line in (updater.problem, f"{file} stays as it is, drawn {updater.drawn} times") if line))
    return 0


def _past(path: Path, options: argparse.Namespace) -> "Snapshot":
    from analysis.captures.rundir import RunDirectory
    from analysis.maps import past_snapshot
    from mobility import files
    from mobility.trace import TraceError
    from testbed.errors import UsageError

    if not path.is_file():
        return past_snapshot.of_run(RunDirectory(path), options.at_s)
    at_s = options.at_s or 0.0
    if at_s < 0:
        raise UsageError(f"--at {at_s:g}: a movement file begins at 0; give seconds of 0 or more")
    try:
        return past_snapshot.of_movement(files.read(path), at_s, options.range_m or RANGE_M)
    except TraceError as problem:
        raise UsageError(str(problem)) from None


def _show(snapshot: "Snapshot", file: Path) -> int:
    from analysis.maps import map_picture, map_text

    map_picture.draw(snapshot, file)
    print("\n".join([*map_text.lines(snapshot), written([file])]))
    return 0
