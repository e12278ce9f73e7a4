"""TCP over AODV from corner to corner of grids of 16, 25 and 49 nodes against the error rate of each frame (the bit-errors
paper's figure for grids; the paper prints no numbers for it).

The shortest path has two hops in each grid. The grids differ in the number of stations that hear each other's requests.
"""

from pathlib import Path

from analysis.drawing import shared, style
from analysis.figures.be_per import label_rates, place
from analysis.tables.results import read_summary

AXES = ("links.0.error_rate",)  # of the experiment
METRIC = "acked_kbps"
AXIS = "links.0.error_rate"


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    summary = read_summary(out_dir)
    measured = shared.series(summary, METRIC, AXIS)
    with style.page(out_dir, "be_per_grid", 3.4) as (axes, written):
        for position, (variant, rows) in enumerate(measured.items()):
            mark = style.of_variant(variant, position)
            axes[0].errorbar([place(row[AXIS]) for row in rows], [row["mean"] for row in rows], yerr=shared.half_widths(rows),
                             color=mark.colour, marker=mark.marker, capsize=2.5,
                             label=mark.name.replace("-", " "))  # fmt: skip
        label_rates(axes[0], {row[AXIS] for rows in measured.values() for row in rows})
        axes[0].set(xlabel="error rate per frame", ylabel="acknowledged (kbit/s)", ylim=(0, None))
        axes[0].legend()
        shared.write_origin(axes[0], out_dir, summary, METRIC)
    return written
