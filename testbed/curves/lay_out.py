"""The chain curves of a campaign with expected throughput: measured before its runs, then written to `<cell>/curve.json`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from record.files import write_atomic
from testbed.campaigns.experiment import Experiment
from testbed.curves.curve import Curve, curve_of, read

NAME = "curve.json"
Document = dict[str, Any]


def curves_of(experiment: Experiment, measured: Callable[[Curve], Document]) -> dict[str, Document]:
    """The curve of each cell by the cell's name; `measured` is called once for each that is not in the cache."""
    found: dict[str, Document] = {}
    by_cell: dict[str, Document] = {}
    for cell in experiment.cells:
        curve = curve_of(cell.scenario)
        if curve.name not in found:
            found[curve.name] = read(curve) or measured(curve)
        by_cell[cell.name] = found[curve.name]
    return by_cell


def lay_out(curves: dict[str, Document], directory: Path) -> None:
    """Write each cell's curve into the folder of results, which is then complete in itself."""
    for cell, curve in curves.items():
        folder = directory / cell
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / NAME, json.dumps(curve, indent=1) + "\n")
