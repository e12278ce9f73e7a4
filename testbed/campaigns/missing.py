"""Missing and interrupted runs of an experiment in its folder of results, and the command that completes them."""

import shlex
from itertools import groupby
from pathlib import Path
from typing import Any

from record.files import read_object
from record.found_runs import FoundRuns
from testbed.programs import INSTALLATION

INTERRUPTED = "interrupted"
NAMED_GROUPS = 8  # cells that the line names


def missing_runs(directory: Path, description: dict[str, Any], found_runs: FoundRuns) -> dict[tuple[str, int], bool]:
    """Cell and seed of each run of experiment.json that has not ended; True for an interrupted one."""
    left_out, runs = {directory / name for name in found_runs.left_out}, set(found_runs.runs)
    missing = {}
    for cell, seed in _asked_for(description):
        run = directory / cell / f"seed-{seed}"
        if run in left_out:
            continue
        if run not in runs:
            missing[cell, seed] = False
        elif read_object(run / "run.json").get("status") == INTERRUPTED:
            missing[cell, seed] = True
    return missing


def _asked_for(description: dict[str, Any]) -> list[tuple[str, int]]:
    """Cell and seed of each run of experiment.json."""
    from analysis.decisions.answers import chosen_cells

    chosen, seeds = chosen_cells(description), range(1, description.get("seeds", 0) + 1)
    return [(cell["name"], seed) for cell in description["cells"] if cell["name"] in chosen for seed in seeds]


def line(directory: Path, description: dict[str, Any], missing: dict[tuple[str, int], bool]) -> str:
    """`19 of 24; missing: dsdv seeds 1 to 3, aodv seed 2 (interrupted); finish with ./manet run NAME ... --resume`."""
    total = len(_asked_for(description))
    groups = [
        f"{cell} {_seeds([seed for (_, seed), _ in members])}{' (interrupted)' if interrupted else ''}"
        for (cell, interrupted), grouped in groupby(missing.items(), key=lambda item: (item[0][0], item[1]))
        if (members := list(grouped))
    ]
    more = len(groups) - NAMED_GROUPS
    named = groups[:NAMED_GROUPS] + ([f"and {more} more cells"] if more > 0 else [])
    return f"{total - len(missing)} of {total}; missing: {', '.join(named)}; finish with {resume(directory, description)}"


def resume(directory: Path, description: dict[str, Any]) -> str:
    """The command that completes the results, as the campaign recorded it; a generic one for older results."""
    recorded = description.get("resume")
    if isinstance(recorded, str) and recorded:
        return recorded
    return shlex.join(_generic(directory, description)) + " (and the --set it was run with)"


def made_by(directory: Path, description: dict[str, Any]) -> str:
    """The command that made the results, without `--resume`."""
    return shlex.join(word for word in recorded_words(directory, description) if word != "--resume")


def recorded_words(directory: Path, description: dict[str, Any]) -> list[str]:
    """The words of the recorded command, without a remark."""
    return words_of(description.get("resume")) or _generic(directory, description)


def words_of(command: object) -> list[str]:
    """The words of a command that a file records; none of one that is missing, or that no shell would take."""
    try:
        return shlex.split(command) if isinstance(command, str) else []
    except ValueError:  # a quote without its end
        return []


def _generic(directory: Path, description: dict[str, Any]) -> list[str]:
    size = ["--quick"] if description.get("quick") else []
    return [INSTALLATION.command, "run", description["name"], *size, "--out", str(directory), "--resume"]


def _seeds(seeds: list[int]) -> str:
    """`seed 2`, `seeds 1 to 3`, `seeds 1, 3`."""
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"
