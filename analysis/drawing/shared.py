"""Parts that several figures share: series of a summary, intervals, rings round suspect runs, the origin line."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from analysis.drawing import style
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import size_of
from record.files import read_json

SLANTED = 48  # with more characters than this in all words of the axis, the words are slanted
ROOM = 1.06
TITLE_SIZE = 9
NOTE_CHARACTERS_PER_IN = 20  # of the font of `write_note`
FEW = 2  # runs: their mean says little
ENOUGH = 4  # runs of which an interval is always drawn
SUSPECTS = "suspects"  # the name (gid) of rings round suspect runs
WITH_SUSPECTS = "with a suspect run"  # in a legend, of a mean of several


def series(summary: list[dict[str, Any]], metric: str, axis: str) -> dict[str, list[dict[str, Any]]]:
    """The cells of each variant that have a mean of the metric, in the order of the axis."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in summary:
        if row["metric"] == metric:
            found.setdefault(row["variant"] or "", [])
            if row["mean"] is not None:
                found[row["variant"] or ""].append(row)
    return {variant: sorted(rows, key=lambda row: row[axis]) for variant, rows in found.items()}


def description(out_dir: Path) -> dict[str, Any]:
    """experiment.json (formats/results.md); empty where there is none."""
    path = out_dir / "experiment.json"
    content: dict[str, Any] = read_json(path) if path.exists() else {}
    return content


def write_origin(axes: Axes, out_dir: Path, summary: list[dict[str, Any]], *metrics: str) -> None:
    """Write `origin` as the lowest line of the page of these axes, with the meaning of rings that no legend has, and above the
    page that its points are of few runs. `metrics`: all that the page shows."""
    shown = [row for row in summary if row["metric"] in metrics]
    lines = [line for panel in axes.figure.axes for line in panel.lines if line.get_gid() == SUSPECTS]
    # matplotlib names a line without a label `_child0`
    unnamed = bool(lines) and all(str(line.get_label()).startswith("_") for line in lines)
    rings = "; black rings: with suspect runs" if unnamed else ""
    wide = any(row["ci95"] is not None and not has_interval(row) for row in shown)
    intervals = "; no interval of 2 or 3 runs that is wider than the mean" if wide else ""
    write_note(axes, origin(out_dir, shown) + rings + intervals)
    write_few(axes, shown)


def write_note(axes: Axes, text: str) -> None:
    """Write the lowest line of the page of these axes, or two where the page is too narrow for it."""
    page = axes.figure
    lines = fill(text, int(NOTE_CHARACTERS_PER_IN * page.bbox.width / page.dpi))
    page.supxlabel(lines, fontsize=6.5, color=style.GREY)


def write_few(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Write above the page that its points, or some of them, are of FEW runs at most: they decide nothing. The title of a legend
    that is above the page has this place, so the legend comes first."""
    counted = [round(row["n"]) for row in rows if row["mean"] is not None]
    few = sum(count <= FEW for count in counted)
    if not few:
        return
    text = (
        f"{runs_a_point(rows)} per point"
        if few == len(counted)
        else f"{few} of {len(counted)} points {'is' if few == 1 else 'are'} of {FEW} runs at most"
    )
    if axes.figure.legends:
        axes.figure.legends[0].set_title(text, FontProperties(size=TITLE_SIZE))
    else:
        axes.figure.suptitle(text, fontsize=TITLE_SIZE)


def in_order(out_dir: Path, values: Iterable[str], axis: str | None = None) -> list[str]:
    """Unique `values` of an axis, or of the variants: first those of the experiment in its order, then others
    by name."""
    described = description(out_dir)
    named = described.get("variants", []) if axis is None else described.get("axes", {}).get(axis, [])
    there = set(values)
    return [*(name for name in named if name in there), *sorted(there - set(named))]


def origin(out_dir: Path, shown: list[dict[str, Any]]) -> str:
    """`hv-fig1 quick: 1 run of 12 s per point (seed 1); 11 valid, 1 suspect`, of these rows of a summary; kept rows are counted,
    too."""
    runs = rows_in(out_dir, ())
    lengths = sorted({run["record"]["duration"] for run in runs if "record" in run} - {None})
    measured = f" of {span(lengths)} s" if lengths else ""
    seeds = sorted({run["seed"] for run in runs if run["seed"] is not None})
    listed = f" (seed{'s' if len(seeds) > 1 else ''} {span(seeds)})" if seeds else ""
    # a row of each metric has the same verdicts: those of all runs of the cell, whose values come before the metric
    cells = {tuple(takewhile(lambda entry: entry[0] != "metric", row.items())): row for row in shown}
    counts = {kind: round(sum(row[kind] for row in cells.values())) for kind in ("valid", "suspect", "void")}
    verdicts = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return f"{experiment_of(out_dir)}: {runs_a_point(shown)}{measured} per point{listed}; {verdicts or 'no verdicts'}"


def experiment_of(out_dir: Path) -> str:
    """`hv-fig1 quick`: name and size of the experiment of a folder of results."""
    experiment = description(out_dir)
    return f"{experiment.get('name', out_dir.name)} {size_of(experiment)}".rstrip()


def runs_a_point(rows: list[dict[str, Any]]) -> str:
    """`1 run`, `5 runs`, `3 to 5 runs`: the number of runs in each mean."""
    counted = sorted({round(row["n"]) for row in rows if row["mean"] is not None}) or [0]
    return f"{span(counted)} run{'' if counted == [1] else 's'}"


def span(values: Sequence[float]) -> str:
    """`1` for one value, `1 to 5` for several; `values` is sorted and not empty."""
    return f"{values[0]:g}" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g}"


def has_interval(row: Mapping[str, Any]) -> bool:
    """Whether the interval of a cell is drawn: not of a single run, and of two or three runs, whose interval by Student's t is
    12.7 and 4.3 standard errors to either side, only if it stays within half of the mean."""
    return row["ci95"] is not None and (row["n"] >= ENOUGH or row["ci95"] <= abs(row["mean"]) / 2)


def half_widths(rows: list[dict[str, Any]], per: str | None = None) -> list[float] | None:
    """Half widths of the intervals that are drawn (divided by the column `per`); None without any."""
    if not any(map(has_interval, rows)):
        return None
    return [row["ci95"] / (row[per] if per else 1) if has_interval(row) else float("nan") for row in rows]


def ring_suspects(axes: Axes, places: list[tuple[float, float]], name: str | None = None) -> Line2D | None:
    """Draw a black ring round each of these points; returns the rings, `name` in a legend, or None if there are no points."""
    if not places:
        return None
    (rings,) = axes.plot(*zip(*places, strict=True), color=style.BLACK, marker="o", markerfacecolor="none", markersize=9.5,
                         markeredgewidth=0.8, linestyle="", zorder=5, gid=SUSPECTS, label=name)  # fmt: skip
    return rings


def draw_dots(axes: Axes, by_variant: Mapping[str, Sequence[float]], text: Callable[[Sequence[float]], str], size: float) -> None:
    """A line for each variant: a dot of this size for each run, a bar at the mean, and the `text` of the values beside them."""
    for place, (variant, values) in enumerate(by_variant.items()):
        if not values:
            continue
        axes.plot([fmean(values)] * 2, [place - 0.3, place + 0.3], color=style.BLACK, linewidth=1.4)
        colour = style.of_variant(variant, place).colour
        axes.plot(values, [place] * len(values), color=colour, marker="o", markersize=size, linestyle="", alpha=0.8)
        axes.annotate(text(values), (1.01, place), xycoords=("axes fraction", "data"), fontsize=7, va="center")
    axes.set_xlim(left=0)
    axes.set_ylim(len(by_variant) - 0.5, -0.5)
    axes.set_yticks(range(len(by_variant)), [style.of_variant(variant).name for variant in by_variant])


def label_words(axes: Axes, words: Sequence[str], places: Sequence[float] | None = None) -> None:
    """Put these words at `places` (default: 0, 1, ...) of the horizontal axis, slanted if they are long."""
    slanted: dict[str, Any] = {"rotation": 20, "ha": "right"} if sum(map(len, words)) > SLANTED else {}
    axes.set_xticks(list(range(len(words)) if places is None else places), words, **slanted)


def show_from_zero(axes: Axes) -> None:
    """Begin the vertical axis at zero and leave room above the highest marker, also where all values are close together."""
    axes.set_ylim(0, ROOM * axes.get_ylim()[1])


def label_ticks(axis: Axis, values: Iterable[float]) -> None:
    """Put ticks with plain numbers at these values, without powers of ten."""
    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(ScalarFormatter())
