"""The mean of a metric over two axes of an experiment, as a heat map.

Each cell names mean, half width of the 95 % interval, and number of runs. A dashed frame: a run of the cell is suspect. A cell
without a run that counts is empty and named so. The line at the bottom names the runs, as in all figures.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from analysis.drawing import shared, style
from analysis.tables.results import METRICS, Results, plain
from record.errors import RunFileError
from scenarios.key_models import unit_of

COLOURS = "cividis"  # of one order for every kind of colour blindness, and in a grey print
EMPTY = "#eeeeee"
DARK_BELOW = 0.5  # of the colour scale: the text is white


def figure_of(results: Results, x: str, y: str, metric: str, where: Mapping[str, Any]) -> style.FigurePage:
    """Draw the summary's rows of `metric`, `x` to the right and `y` upwards, with the values `where` of the other keys. Raises
    RunFileError if that leaves several rows for a cell, or none with a value."""
    rows = [row for row in results.summary if row["metric"] == metric and all(row[key] == plain(where[key]) for key in where)]
    cells = {(row[x], row[y]): row for row in rows}
    if len(cells) < len(rows):
        keys = [key for key in (*results.experiment.axes, "variant") if key not in (x, y, *where)]
        others = [key for key in keys if len({row[key] for row in rows}) > 1]
        raise RunFileError(f"{results.directory}: a cell has several rows; give a value of {' and '.join(others)}")
    if not any(row["mean"] is not None for row in rows):
        raise RunFileError(f"{results.directory}: no run that counts has {metric}; `manet report` names the runs")
    across, up = (list(dict.fromkeys(row[key] for row in rows)) for key in (x, y))
    with style.kept() as pages, style.page(results.directory, "heat_map", 1.1 + 0.52 * len(up)) as ((axes,), _):
        _draw_cells(axes, cells, across, up)
        for axis, key, values in ((axes.xaxis, x, across), (axes.yaxis, y, up)):
            axis.set_ticks(range(len(values)), [str(value) for value in values])
            axis.set_label_text(_named(key))
        axes.grid(False)
        axes.set(xlim=(-0.5, len(across) - 0.5), ylim=(-0.5, len(up) - 0.5))
        profiles = " and ".join(dict.fromkeys(row["profile"] for row in rows))
        title = f"{metric.replace('_', ' ')} ({METRICS[metric][0]}), profile {profiles}: mean ± 95 % interval (runs)"
        axes.set_title(title, loc="left")
        shared.write_origin(axes, results.directory, rows, metric)
    return pages[0]


def _draw_cells(axes: Axes, cells: Mapping[tuple[Any, Any], dict[str, Any]], across: Sequence[Any], up: Sequence[Any]) -> None:
    means = [row["mean"] for row in cells.values() if row["mean"] is not None]
    scale, colours = Normalize(min(0.0, *means), max(means)), colormaps[COLOURS]
    for (at_x, at_y), row in cells.items():
        left, low = across.index(at_x) - 0.5, up.index(at_y) - 0.5
        part = None if row["mean"] is None else float(scale(row["mean"]))
        face = EMPTY if part is None else colours(part)
        axes.add_patch(Rectangle((left, low), 1, 1, facecolor=face, edgecolor="white", linewidth=1.0))
        if row["suspect"]:
            axes.add_patch(Rectangle((left + 0.03, low + 0.06), 0.94, 0.88, fill=False, linestyle="--", edgecolor="white"))
        dark = part is not None and part < DARK_BELOW
        axes.text(left + 0.5, low + 0.5, _text(row), ha="center", va="center", color="white" if dark else style.BLACK,
                  fontsize=7.5)  # fmt: skip


def _text(row: Mapping[str, Any]) -> str:
    if row["mean"] is None:
        return "no run counts"
    half = "" if row["ci95"] is None else f" ± {row['ci95']:.3g}"
    return f"{row['mean']:.4g}{half} ({row['n']})"


def _named(key: str) -> str:
    unit = unit_of(key)
    return key.replace("_", " ") + (f" ({unit})" if unit else "")
