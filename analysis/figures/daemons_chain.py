"""Routing daemons on one chain whose relay another replaces, twice: time to a path, delivery, control bytes, CPU, memory.

A panel for each figure, a dot per run, a bar at the mean. `daemons.csv` has means, 95 % intervals by Student's t and numbers of
runs, `daemons.md` the same as a table; analysis/metrics/routing_cost.py defines the figures. Suspect runs count, void ones do
not.
"""

from dataclasses import fields
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes

from analysis.captures.rundir import RunDirectory
from analysis.drawing import style
from analysis.drawing.shared import draw_dots, in_order
from analysis.metrics.routing_cost import RoutingCost, routing_cost
from analysis.tables.results import mean_and_interval, rows_to_draw, write_csv
from record.errors import RecordError
from record.files import write_atomic

RUN_FILES = True  # it draws from them
# figure of RoutingCost -> (heading, words of a value, factor)
SHOWN = {
    "traffic_s": ("traffic after the start of the daemons, s", "{:.1f}", 1.0),
    "first_s": ("first datagram after it, s", "{:.1f}", 1.0),
    "recovery_s": ("after a change of relay, s", "{:.1f}", 1.0),
    "delivery": ("delivered, %", "{:.1f}", 100.0),
    "control_bps": ("control, kbit/s on the air", "{:.2f}", 1e-3),
    "header_bytes": ("headers on a datagram, bytes", "{:.0f}", 1.0),
    "cpu_ms_per_s": ("CPU of a daemon, ms/s", "{:.2f}", 1.0),
    "peak_rss_mb": ("peak memory of a daemon, MB", "{:.1f}", 1.0),
}
DRAWN = ("recovery_s", "delivery", "control_bps", "cpu_ms_per_s", "peak_rss_mb")
NAMES = [field.name for field in fields(RoutingCost)]
Costs = dict[str, list[RoutingCost]]


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`; returns the files of the figure."""
    runs = rows_to_draw(out_dir, "manet run daemons-chain")
    costs: Costs = {variant: [] for variant in in_order(out_dir, (run["variant"] for run in runs))}
    for run in runs:
        try:
            costs[run["variant"]].append(routing_cost(RunDirectory(out_dir / run["run_dir"])))
        except (OSError, KeyError) as problem:
            raise RecordError(f"{out_dir / run['run_dir']}: {problem}; run it again") from None
    rows = [row for variant, of_variant in costs.items() for row in statistics(variant, of_variant)]
    write_csv(out_dir / "daemons.csv", ["variant", "figure", "mean", "ci95", "n", "runs"], rows)
    write_atomic(out_dir / "daemons.md", table(rows))
    height_in = 0.9 + len(DRAWN) * (0.45 + 0.16 * len(costs))
    with style.page(out_dir, "daemons_chain", height_in, nrows=len(DRAWN)) as (axes, written):
        for panel, name in zip(axes, DRAWN, strict=True):
            _draw(panel, costs, name)
    return [*written, out_dir / "daemons.csv", out_dir / "daemons.md"]


def statistics(variant: str, costs: list[RoutingCost]) -> list[dict[str, Any]]:
    """A row for each figure: `mean`, `ci95` and `n` of the runs that have it, `runs` of all."""
    values = {name: [getattr(cost, name) for cost in costs] for name in NAMES}
    return [{"variant": variant, "figure": name, **mean_and_interval(values[name]), "runs": len(costs)} for name in NAMES]


def table(rows: list[dict[str, Any]]) -> str:
    """The table in Markdown: a row for each daemon, mean and interval of each figure; `(2 of 5)` runs that have a figure, `(1
    missed)`: changes of the path, in all runs, that the daemon did not follow in time."""
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    cells = {(row["variant"], row["figure"]): row for row in rows}
    heads = ["daemon", *(heading for heading, _, _ in SHOWN.values()), "runs"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for variant in variants:
        shown = {name: _cell(cells[variant, name], *SHOWN[name][1:]) for name in SHOWN}
        of_missed = cells[variant, "missed"]
        if missed := round((of_missed["mean"] or 0) * of_missed["n"]):
            shown["recovery_s"] += f" ({missed} missed)"
        lines.append(f"| {' | '.join([variant, *shown.values(), str(cells[variant, NAMES[0]]['runs'])])} |")
    return "\n".join(lines) + "\n"


def _cell(row: dict[str, Any], words: str, factor: float) -> str:
    if row["mean"] is None:
        return "-"
    half = "" if row["ci95"] is None else f" ± {words.format(row['ci95'] * factor)}"
    few = "" if row["n"] == row["runs"] else f" ({row['n']} of {row['runs']})"
    return words.format(row["mean"] * factor) + half + few


def _draw(axes: Axes, costs: Costs, name: str) -> None:
    heading, words, factor = SHOWN[name]
    values = {
        variant: [value * factor for cost in of_variant if (value := getattr(cost, name)) is not None]
        for variant, of_variant in costs.items()
    }
    draw_dots(axes, values, lambda shown: words.format(fmean(shown)), 3)
    axes.set_xlabel(heading)
