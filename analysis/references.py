"""Reference values: numbers that others published or measured, to compare this testbed with.

`published/` holds the papers' numbers, `ns2/` those of ns-2.35 on the same scenario, `peers/` those of other testbeds.
A table is a CSV. Its first lines are `# source: ...` (and `# note: ...`, ...). Its columns are keys (axes of the experiment,
`variant`) and metrics under the names of this testbed; `<metric>_sd` and `seeds` give the spread.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record.errors import RunFileError

FOLDER = Path(__file__).parent
NOT_KEYS = ("_kbps", "_kbps_sd", "percent", "seeds", "cwnd_mean", "_silence_s")  # endings of the columns that are not keys


@dataclass(frozen=True)
class Reference:
    """A table of reference values: its rows as text, and the columns that select a row (`keys`)."""

    name: str
    source: str
    rows: tuple[dict[str, str], ...]
    keys: tuple[str, ...]

    def value(self, metric: str, cell: Mapping[str, object]) -> float | None:
        """The number for a cell (its axes and `variant`); None where the table has none.

        Every key of the table must agree with the cell: a table without `variant` holds for all variants. A protocol with
        ns-2's settings (`aodv-ns2`) has the numbers of its protocol.
        """
        if not self.rows or metric not in self.rows[0]:
            return None
        routing = cell.get("routing")
        cell = {**cell, "routing": routing.removesuffix("-ns2") if isinstance(routing, str) else routing}
        for row in self.rows:
            if row[metric] and all(same_value(row[key], cell.get(key)) for key in self.keys):
                return float(row[metric])
        return None

    def series(self, axis: str, metric: str, **fixed: str) -> tuple[list[float], list[float]]:
        """The metric over an axis, for the rows with the fixed keys."""
        rows = [row for row in self.rows if all(row.get(key) == value for key, value in fixed.items())]
        return [float(row[axis]) for row in rows], [float(row[metric]) for row in rows]


def known_references(kind: str) -> list[str]:
    """Names of the tables in `published`, `ns2` or `peers`."""
    return sorted(entry.stem for entry in (FOLDER / kind).glob("*.csv"))


def load_reference(kind: str, name: str) -> Reference:
    """A table of `published`, `ns2` or `peers`."""
    path = FOLDER / kind / f"{name}.csv"
    if not path.exists():
        known = ", ".join(known_references(kind))
        raise RunFileError(f"{path}: no such reference table; there are: {known}")
    lines = path.read_text().splitlines()
    source = next((line.removeprefix("# source:").strip() for line in lines if line.startswith("# source:")), "")
    rows = tuple(csv.DictReader(line for line in lines if not line.startswith("#")))
    columns = rows[0].keys() if rows else ()
    return Reference(name, source, rows, tuple(column for column in columns if not column.endswith(NOT_KEYS)))


def references_of(experiment: Mapping[str, Any]) -> dict[str, Reference | None]:
    """The tables `published` and `ns2` that an experiment names."""
    return {kind: load_reference(kind, name) if (name := experiment.get(kind)) else None for kind in ("published", "ns2")}


def same_value(text: str, value: Any) -> bool:
    """5, 5.0 and "5" are the same value of an axis."""
    try:
        return float(text) == float(value)
    except (TypeError, ValueError):
        return text == ("" if value is None else str(value))
