"""The positions of the stations in a run: trace.csv, and moved.csv if stations were moved by hand (formats/trace.md)."""

import json
from pathlib import Path

from mobility import files
from mobility.trace import Trace, parse
from record.files import read_bytes, read_text

TRACE = "trace.csv"
MOVED = "moved.csv"  # the actual positions until the end, of a run in which stations were moved by hand


def trace_path(directory: Path) -> Path:
    """The file with the positions of the stations: the recorded movement of the run, otherwise its trace."""
    moved = directory / MOVED
    return moved if moved.exists() else directory / TRACE


def read_trace(path: Path) -> Trace:
    """The movement in a file of a run, which is a plain file. Raises TraceError, PlaceError."""
    return parse(read_bytes(path), str(path)) if path.exists() else files.read(path)


def recorded(path: Path) -> tuple[Trace, str] | None:
    """The movement of a finished run up to its end, and a remark (empty: none). `path`: the run's folder, its trace.csv or its
    moved.csv. None if the file does not belong to a run, or if the run is under way.

    (A trace continues beyond the run, and the rest of an interrupted replay was never executed.)
    """
    folder = path if path.is_dir() else path.parent
    if not (path.is_dir() or path.name in (TRACE, MOVED)) or not (folder / "run.json").is_file():
        return None
    file = path if path != folder else folder / (MOVED if (folder / MOVED).exists() else TRACE)
    try:
        end_s = json.loads(read_text(folder / "verdict.json"))["model_ns"] / 1e9
    except (OSError, ValueError, KeyError, TypeError):
        return None
    trace = read_trace(file)
    gone = Trace(str(file), [leg for leg in trace.legs if leg.start_s <= end_s], end_s, mean_mps=trace.mean_mps)
    planned = file.name == TRACE and (folder / MOVED).exists()
    return gone, f"stations were moved by hand in this run; their actual positions are in {folder / MOVED}" if planned else ""
