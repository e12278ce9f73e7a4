"""Part `campaign`: `manet campaign` at quick size, each cell's throughput with its seeds as repetitions."""

import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from analysis.store.files import read, stores_below
from record import records
from testbed.nightly.figure import Figure, Part
from testbed.programs import ROOT

DEFAULT = ("tcp-chain",)
METRIC, UNIT = "acked_kbps", "kbit/s"
RELEVANT = 0.05
MANET = (sys.executable, "-P", "-m", "testbed")


def figures(history: Path, night: str, names: Sequence[str], more: Sequence[str] = ()) -> Part:
    """Run the campaign into the night's folder; `more`: further words for `manet campaign`."""
    out = history / night / "campaign"
    options = ["--quick", "--captures", "first", "--out", str(out), *more]  # with all captures, months of nights fill a disk
    done = subprocess.run([*MANET, "campaign", *names, *options], cwd=ROOT, stdout=sys.stderr, check=False)
    part = of_folder(out, history, "campaign")
    if done.returncode != 0:
        verdicts = records.read(out / records.CAMPAIGN).get("verdicts") or {}
        tally = ", ".join(f"{number} {kind}" for kind, number in verdicts.items() if number)
        part.failures.append(f"campaign: `manet campaign {' '.join(names)} --quick` ended with {done.returncode}: {tally or out}")
    return part


def of_folder(out: Path, history: Path, part: str, kernel: str | None = None) -> Part:
    """The figures of all stores in a folder: a metric for each cell, of runs that count."""
    values: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for store in stores_below(out) if out.is_dir() else ():
        for row in read(store).to_pylist():
            if row["counts"] and row[METRIC] is not None:
                run = str((store / row["run_dir"]).relative_to(history))
                values[f"{part}/{row['experiment']}/{row['cell']}/{METRIC}"].append((row[METRIC], run))
    return Part([_figure(metric, repetitions, kernel) for metric, repetitions in values.items()])


def _figure(metric: str, repetitions: list[tuple[float, str]], kernel: str | None) -> Figure:
    numbers, runs = zip(*repetitions, strict=True)
    return Figure(metric, UNIT, numbers, RELEVANT, runs=runs, kernel=kernel)
