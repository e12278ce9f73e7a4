"""TCP over AODV against the error rate of each frame (filled), with ns-2.35's (open) and the published values (crosses).

Chains of 4, 7 and 10 nodes. A MAC that tries seven times hides an error rate of 0.015; TCP breaks down between 0.1 and 0.2.
"""

import re
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis.drawing import shared, style
from analysis.tables.results import Row, read_summary
from record.errors import RunFileError

AXES = ("nodes",)  # of the experiment
METRIC = "acked_kbps"
COLOURS = {4: style.BLUE, 7: style.GREEN, 10: style.VERMILION}
MARKERS = {4: "o", 7: "^", 10: "s"}
NONE_AT = 5e-4  # position of the error rate 0 on the logarithmic axis
LABELLED = (0.001, 0.005, 0.015, 0.05, 0.1, 0.2)
_FRAME = re.compile(r"frame-([0-9.e-]+)")


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    summary = read_summary(out_dir)
    cells = [row for row in summary if row["metric"] == METRIC and _FRAME.fullmatch(row["variant"] or "")]
    if not cells:
        raise RunFileError(f"{out_dir}: no variant is called frame-RATE, such as frame-0.015; name another figure")
    with style.page(out_dir, "be_per", 3.4) as (axes, written):
        panel = axes[0]
        for nodes in sorted({row["nodes"] for row in cells}):
            rows = sorted((row for row in cells if row["nodes"] == nodes), key=_rate)
            colour, marker = COLOURS.get(nodes, style.GREY), MARKERS.get(nodes, "D")
            measured = [row for row in rows if row["mean"] is not None]
            if measured:
                panel.errorbar([_rate(row) for row in measured], [row["mean"] for row in measured],
                               yerr=shared.half_widths(measured), color=colour, marker=marker, capsize=2.5,
                               label=f"{nodes:g} nodes")  # fmt: skip
            looks: dict[str, dict[str, Any]] = {
                "ns2": {"marker": marker, "markerfacecolor": "white", "linestyle": ":"},
                "published": {"marker": "x", "linestyle": ""},
            }
            for key, options in looks.items():
                there = [row for row in rows if row[key] is not None]
                label = {"ns2": "ns-2.35", "published": "published"}[key] if nodes == min(COLOURS) else None
                panel.plot([_rate(row) for row in there], [row[key] for row in there], color=colour, label=label, **options)
        label_rates(panel, {_rate(row) for row in cells})
        panel.set(xlabel="error rate per frame", ylabel="acknowledged (kbit/s)", ylim=(0, None))
        panel.legend()
        shared.write_origin(panel, out_dir, summary, METRIC)
    return written


def label_rates(axes: Axes, rates: set[float]) -> None:
    """Make the axis logarithmic, with a tick for 0."""
    axes.set_xscale("log")
    labelled = sorted(place(rate) for rate in rates if rate <= NONE_AT or rate in LABELLED)
    axes.set_xticks(labelled, ["0" if rate == NONE_AT else f"{rate:g}" for rate in labelled])
    axes.minorticks_off()


def place(rate: float) -> float:
    """Position of an error rate on the axis."""
    return max(float(rate), NONE_AT)


def _rate(row: Row) -> float:
    match = _FRAME.fullmatch(row["variant"] or "")
    return place(float(match[1])) if match else NONE_AT
