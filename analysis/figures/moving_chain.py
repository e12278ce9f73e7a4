"""Throughput of each routing protocol over a chain whose relays move away, and the time without a route.

Above the throughput of the TCP flow, below the time in which none of the second flow's datagrams arrived (`silence_s`,
formats/results.md). A dot per run, a bar at the mean; to the right the mean and the number of runs. Suspect runs count, void ones
do not.
"""

from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes

from analysis.drawing import style
from analysis.drawing.shared import in_order
from analysis.tables.results import collect_runs, counts
from record.errors import RunFileError

RUN_FILES = True  # it draws from them
PANELS = (("acked_kbps", "acknowledged (kbit/s)", "{:.0f} kbit/s"), ("silence_s", "without deliveries (s)", "{:.1f} s"))


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`; returns the files of the figure."""
    out_dir = Path(out_dir)
    runs = [run for run in collect_runs(out_dir, ()) if counts(run)]
    if not runs:
        raise RunFileError(f"{out_dir}: no runs that count; run the experiment first (`manet run moving-chain --clock virtual`)")
    variants = in_order(out_dir, (run["variant"] for run in runs))
    with style.page(out_dir, "moving_chain", 1.4 + 0.5 * len(variants), nrows=2) as (axes, written):
        for panel, (metric, label, words) in zip(axes, PANELS, strict=True):
            found = {name: [run[metric] for run in runs if run["variant"] == name] for name in variants}
            _draw(panel, {name: [value for value in values if value is not None] for name, values in found.items()}, words)
            panel.set_xlabel(label)
    return written


def _draw(axes: Axes, found: dict[str, list[float]], words: str) -> None:
    for place, (variant, values) in enumerate(found.items()):
        if not values:
            continue
        colour, mean = style.of_variant(variant, place).colour, fmean(values)
        axes.plot([mean] * 2, [place - 0.3, place + 0.3], color=style.BLACK, linewidth=1.4)
        axes.plot(values, [place] * len(values), color=colour, marker="o", markersize=3.5, linestyle="", alpha=0.8)
        text = f"{words.format(mean)}, n = {len(values)}"
        axes.annotate(text, (1.01, place), xycoords=("axes fraction", "data"), fontsize=7, va="center")
    axes.set_xlim(left=0)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_yticks(range(len(found)), [style.of_variant(variant).name for variant in found])
