"""Movement files of a scenario: the file of a seed, and its movement scaled and renamed for the scenario's stations."""

from pathlib import Path

from keys.errors import UsageError
from mobility import files
from mobility.trace import Trace, TraceError, scaled
from scenarios.movement import Replay


def matching(movement: Replay) -> list[Path]:
    """The files that match `file`, sorted by name; a name that is no pattern is returned even if there is no such file."""
    path = Path(movement.file)
    if not set("*?[") & set(path.name):
        return [path]
    return sorted(found for found in path.parent.glob(path.name) if found.is_file())


def file_for(movement: Replay, seed: int) -> Path:
    """The file of a seed: of a pattern the `seed`th, counted from 1."""
    found = matching(movement)
    if found == [Path(movement.file)]:
        return found[0]
    if not 1 <= seed <= len(found):
        text = f"{len(found)} files match, and there is none for seed {seed}; use seeds 1 to {len(found)}"
        raise UsageError(f"{movement.file}: {text}")
    return found[seed - 1]


def replayed(movement: Replay, path: Path, stations: list[str], begin_s: float) -> Trace:
    """A file's movement, scaled as `movement` says, from `begin_s` on; node i is the ith station of the scenario."""
    made = files.read(path, stations)
    factor = movement.factor or 1.0
    if movement.speed is not None:
        if made.mean_mps is None:
            text = 'does not state its mean speed; add a line "# mean_speed_mps: 1", or give "factor" instead of "speed"'
            raise TraceError(f"{path}: {text}")
        factor = movement.speed / made.mean_mps
    end_s = None if made.end_s is None else begin_s + made.end_s / factor
    mean_mps = None if made.mean_mps is None else made.mean_mps * factor
    return Trace(made.name, scaled(made.legs, factor, begin_s), end_s, made.end_line, mean_mps)
