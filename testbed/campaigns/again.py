"""The command that runs one cell of an experiment again, from the command that the campaign recorded."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.reports.content import Command
from testbed.campaigns import missing

PART_OPTIONS = ("--variant", "--out")  # replaced by the cell's
# unknown to `manet run`
CAMPAIGN_OPTIONS = ("--max-pairs", "--batch", "--cluster", "--snakemake", "--captures", "--disk", "--time")
CAMPAIGN_FLAGS = ("--asked", "--fresh")
VALUE_OPTIONS = ("--set", "--seeds", "--jobs", "--profile", "--clock", "--kernel")


def cell_commands(directory: Path, description: dict[str, Any]) -> Iterator[Command]:
    """A command for each cell, into a folder of its own beside the results."""
    recorded = missing.recorded_words(directory, description)
    of_campaign = recorded[1:2] == ["campaign"]
    if of_campaign:
        recorded = _run_of_campaign(recorded, description["name"])
    given = _without_cells(recorded, set(description.get("axes", {})))
    beside = f"{directory.parent}-{directory.name}" if of_campaign else str(directory)
    for cell in description["cells"]:
        words = list(given)
        for key, value in cell["axes"].items():
            words += ["--set", f"{key}=[{json.dumps(value)}]"]
        words += ["--variant", cell["variant"]] if cell["variant"] else []
        words += ["--out", f"{beside}-{cell['name']}"]
        yield Command(cell["name"], shlex.join(words))


def _without_cells(words: list[str], axes: set[str]) -> list[str]:
    """The command without --resume and without the options that select cells and folder."""
    kept, rest = [], iter(words)
    for word in rest:
        value = next(rest, "") if word in (*PART_OPTIONS, "--set") else ""
        if word in PART_OPTIONS or word == "--resume" or (word == "--set" and value.partition("=")[0].strip() in axes):
            continue
        kept += [word, value] if word == "--set" else [word]
    return kept


def _run_of_campaign(words: list[str], experiment: str) -> list[str]:
    """`manet run` of one experiment with the settings of a campaign."""
    names, options, rest = list[str](), list[str](), iter(words[2:])
    for word in rest:
        option, _, value = word.partition("=")
        if not word.startswith("-"):
            names.append(word)
        elif option in CAMPAIGN_FLAGS:
            continue
        elif option in CAMPAIGN_OPTIONS:
            if not value:
                next(rest, None)
        else:
            options += [word, next(rest, "")] if word in VALUE_OPTIONS else [word]
    files = [name for name in names if name.endswith(".toml") and Path(name).stem == experiment]
    return [words[0], "run", *(files or [experiment]), *options]
