"""Throughput of all TCP flows together with other traffic, over mean speed, after Holland and Vaidya (1999), figures 8, 9, 15,
16.

A panel for each load (constant-rate packets per second, or connections); the means over movement patterns with 95 % intervals.
The patterns are the same for all.
"""

from pathlib import Path
from typing import Any

from analysis.drawing import shared, style
from analysis.tables.results import read_summary

AXES = ("speed",)  # of the experiment
METRIC = "total_acked_kbps"
AXIS = "speed"
APART_MPS = 0.3  # between points of the same speed
BESIDE_MPS = 2.0  # on either side of the outermost
LOADS = {"5pps": "5 packets/s", "10pps": "10 packets/s", "20pps": "20 packets/s", "five": "five connections"}


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    out_dir = Path(out_dir)
    summary = read_summary(out_dir)
    by_load: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for variant, rows in shared.series(summary, METRIC, AXIS).items():
        kind, _, load = variant.rpartition("-")
        by_load.setdefault(load, {})[kind] = rows
    panels = max(1, len(by_load))
    with style.page(out_dir, "hv_load", 1.4 + 1.7 * panels, nrows=panels, sharex=True) as (axes, written):
        in_order = sorted(by_load.items(), key=lambda pair: list(LOADS).index(pair[0]) if pair[0] in LOADS else len(LOADS))
        for panel, (load, kinds) in zip(axes, in_order, strict=False):
            for position, (kind, rows) in enumerate(kinds.items()):
                mark = style.of_variant(kind, position)
                places = [row[AXIS] + APART_MPS * (position - 0.5) for row in rows]
                panel.errorbar(places, [row["mean"] for row in rows], yerr=shared.half_widths(rows), color=mark.colour,
                               marker=mark.marker, capsize=2.5, label=mark.name)  # fmt: skip
            panel.set(title=LOADS.get(load, load), ylabel="kbit/s", ylim=(0, None))
        axes[0].legend()
        axes[-1].set_xlabel("mean speed (m/s)")
        speeds = sorted({row[AXIS] for row in summary})
        shared.label_ticks(axes[-1].xaxis, speeds)
        if speeds:
            axes[-1].set_xlim(speeds[0] - BESIDE_MPS, speeds[-1] + BESIDE_MPS)
        axes[-1].figure.supxlabel(shared.origin(out_dir, summary, METRIC), fontsize=6.5, color=style.GREY)
    return written
