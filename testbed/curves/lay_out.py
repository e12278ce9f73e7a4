"""A campaign that wants expected throughput has its chain curves before its runs begin; each cell gets `<cell>/curve.json`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.files import write_whole
from testbed.campaigns.experiment import Experiment
from testbed.curves.curve import Wanted, read, wanted_by

NAME = "curve.json"
Document = dict[str, Any]


def curves_of(experiment: Experiment, measured: Callable[[Wanted], Document]) -> dict[str, Document]:
    """The curve of each cell by the cell's name; one that is not in the cache is `measured`, once."""
    found: dict[str, Document] = {}
    by_cell: dict[str, Document] = {}
    for cell in experiment.cells:
        wanted = wanted_by(cell.scenario)
        if wanted.name not in found:
            found[wanted.name] = read(wanted) or measured(wanted)
        by_cell[cell.name] = found[wanted.name]
    return by_cell


def lay_out(curves: dict[str, Document], directory: Path) -> None:
    """So that the folder of results stands alone."""
    for cell, curve in curves.items():
        folder = directory / cell
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / NAME, json.dumps(curve, indent=1) + "\n")
