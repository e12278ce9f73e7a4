"""Throughput of each routing protocol over a chain whose relays move away, and the time without a route.

Above the throughput of the TCP flow, below the time in which none of the second flow's datagrams arrived (`silence_s`,
formats/results.md). A dot per run, a bar at the mean; to the right the mean and the number of runs. Suspect runs count, void ones
do not.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from analysis.drawing import style
from analysis.drawing.shared import draw_dots, in_order
from analysis.tables.results import rows_to_draw

RUN_FILES = True  # it draws from them
PANELS = (("acked_kbps", "acknowledged (kbit/s)", "{:.0f} kbit/s"), ("silence_s", "without deliveries (s)", "{:.1f} s"))


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`; returns the files of the figure."""
    runs = rows_to_draw(out_dir, "manet run moving-chain --clock virtual")
    variants = in_order(out_dir, (run["variant"] for run in runs))
    with style.page(out_dir, "moving_chain", 1.4 + 0.5 * len(variants), nrows=2) as (axes, written):
        for panel, (metric, label, words) in zip(axes, PANELS, strict=True):
            measured = [run for run in runs if run[metric] is not None]
            values = {name: [run[metric] for run in measured if run["variant"] == name] for name in variants}
            draw_dots(panel, values, partial(_text, words), 3.5)
            panel.set_xlabel(label)
    return written


def _text(words: str, values: Sequence[float]) -> str:
    return f"{words.format(fmean(values))}, n = {len(values)}"
