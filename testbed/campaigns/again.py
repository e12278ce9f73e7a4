"""The command that runs one cell of an experiment again, from the command that the campaign recorded."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.report_page.content import Command
from testbed.campaigns import missing

PART_OPTIONS = ("--variant", "--out")  # replaced by the cell's


def cell_commands(directory: Path, description: dict[str, Any]) -> Iterator[Command]:
    """A command for each cell, into a folder of its own beside the results."""
    given = _without_cells(missing.recorded_words(directory, description), set(description.get("axes", {})))
    for cell in description["cells"]:
        words = list(given)
        for key, value in cell["axes"].items():
            words += ["--set", f"{key}=[{json.dumps(value)}]"]
        words += ["--variant", cell["variant"]] if cell["variant"] else []
        words += ["--out", f"{directory}-{cell['name']}"]
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
