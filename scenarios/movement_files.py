"""Movement files of a scenario: the file of a seed, and its movement scaled and renamed for the scenario's stations."""

from pathlib import Path

from keys.errors import UsageError
from mobility import files
from mobility.trace import Trace, TraceError
from scenarios.movement import Replay
from scenarios.scenario import Scenario


def matching(movement: Replay) -> list[Path]:
    """The files that match `file`, sorted by name; a name that is no pattern is returned even if there is no such file."""
    path = Path(movement.file)
    if not set("*?[") & set(path.name):
        return [path]
    return sorted(file for file in path.parent.glob(path.name) if file.is_file())


def file_for(movement: Replay, seed: int) -> Path:
    """The file of a seed: of a pattern the `seed`th, counted from 1."""
    paths = matching(movement)
    if paths == [Path(movement.file)]:
        return paths[0]
    if not 1 <= seed <= len(paths):
        text = f"{len(paths)} files match, and there is none for seed {seed}; use seeds 1 to {len(paths)}"
        raise UsageError(f"{movement.file}: {text}")
    return paths[seed - 1]


def checked(movement: Replay, scenario: Scenario, paths: list[Path]) -> Replay | None:
    """The movement with the full path of the first of `paths` that leads to files, each checked for the whole run; None if none
    does. UsageError for a wrong file."""
    begin_s = (scenario.traffic_at or 0.0) if movement.with_traffic else 0.0
    for path in paths:
        there = movement.model_copy(update={"file": str(path.resolve())})
        if found := [file for file in matching(there) if file.is_file()]:
            break
    else:
        return None
    for file in found:
        try:
            trace = replayed(there, file, scenario.station_names(), begin_s)
            trace.check(scenario.area, begin_s + scenario.traffic_seconds())
        except TraceError as problem:
            raise UsageError(str(problem)) from None
    return there


def replayed(movement: Replay, path: Path, stations: list[str], begin_s: float) -> Trace:
    """A file's movement, scaled as `movement` says, from `begin_s` on; node i is the ith station of the scenario."""
    trace = files.read(path, stations)
    factor = movement.factor or 1.0
    if movement.speed is not None:
        if trace.mean_mps is None:
            text = 'does not state its mean speed; add a line "# mean_speed_mps: 1", or give "factor" instead of "speed"'
            raise TraceError(f"{path}: {text}")
        factor = movement.speed / trace.mean_mps
    return trace.scaled(factor, begin_s)
