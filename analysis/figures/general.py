"""The experiment's first metric against its first axis (the default figure).

A line for each combination of the other axes and variants, with 95 % intervals if a point has several runs, ringed in black if
one of them is suspect. If the axis has words as values, or if there are only variants, the points at a word stand side
by side, and no line joins them to those at the next word. The table [plot] of the experiment selects the metric, the words and
the size.
"""

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis.drawing import shared, style
from analysis.tables.results import collect, read_summary
from analysis.tables.shown import kinds_in, plain, shown_of
from record.errors import RunFileError

MARKS = list(zip(
    (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY, style.BLACK), "os^DvPX", strict=True,
))  # fmt: skip
LINES = ("-", "--", ":", "-.")
MAX_ONE_COLUMN = 6  # with more entries than this, the legend has two columns
HEIGHT_IN = 3.6
SPREAD = 0.6  # of the distance between two words: the points at one word are that far apart in all
VARIANT = "variant"


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    summary = read_summary(out_dir)
    described = shared.description(out_dir)
    results = collect(out_dir, described)
    plot = described.get("plot") or {}
    printed = shown_of(results, kinds_in(results)[0])
    metric = plot.get("metric", printed[0].metric)
    shown = next((one for one in printed if one.metric == metric), None) or plain(metric)
    cells = [
        row | shown.scaled({key: row[key] for key in ("mean", "ci95")})
        for row in summary
        if row["metric"] == shown.metric and row["mean"] is not None
    ]
    if not cells:
        raise RunFileError(f"{out_dir}: no run that counts has a value for a figure; `manet report` names the runs")
    keys = _keys(cells)
    units = described.get("units", {})
    cells.sort(key=lambda row: [_rank(described, key, row[key]) for key in keys])
    places = _places(keys[0], cells)
    numbers = _are_numbers(places)
    words, width_in = Words(units, plot.get("legend") or {}), plot.get("width", style.WIDTH_IN)
    with style.page(out_dir, "general", plot.get("height", HEIGHT_IN), width_in) as (axes, written):
        lines, suspects = _lines(cells, keys, words), []
        line_styles = ((mark, line) for line in itertools.cycle(LINES) for mark in MARKS)
        for number, ((name, rows), ((colour, marker), line)) in enumerate(zip(lines.items(), line_styles, strict=False)):
            beside = 0.0 if numbers else SPREAD * ((number + 0.5) / len(lines) - 0.5)
            points = sorted(((places[_plain(row[keys[0]])] + beside, row) for row in rows), key=lambda point: point[0])
            axes[0].errorbar([x for x, _ in points], [row["mean"] for _, row in points],
                             yerr=shared.half_widths([row for _, row in points]), color=colour, marker=marker,
                             linestyle=line if numbers else "", capsize=2.5, elinewidth=0.9, label=name)  # fmt: skip
            suspects += [(x, row["mean"]) for x, row in points if row["suspect"]]
        shared.ring_suspects(axes[0], suspects, shared.WITH_SUSPECTS)
        _label(axes[0], keys[0], places, words)
        if "x_label" in plot:
            axes[0].set_xlabel(plot["x_label"])
        axes[0].set_ylabel(plot.get("y_label", shown.label + (f" ({shown.unit})" if shown.unit else "")))
        axes[0].set_ylim(bottom=0)
        if len(lines) > 1 or any(row["suspect"] for row in cells):
            axes[0].figure.legend(loc="outside upper center", ncols=2 if len(lines) > MAX_ONE_COLUMN else 1)
        if plot.get("origin", True):
            note = shared.origin(out_dir, [row for row in summary if row["metric"] == shown.metric])
            shared.write_note(axes[0], note)
            shared.write_few(axes[0], cells)
    return written


class Words:
    """What the figure calls values of axes and variants: `legend` of the experiment, else their own names with `units`."""

    def __init__(self, units: Mapping[str, str], legend: Mapping[str, str]) -> None:
        self.units, self._legend = units, legend

    def line(self, key: str, value: Any) -> str:
        """`window 8 segments`; a variant by its display name."""
        unit = f" {self.units[key]}" if key in self.units else ""
        return self._legend.get(_text(value)) or (
            style.of_variant(value).name if key == VARIANT else f"{_words(key)} {_text(value)}{unit}"
        )

    def tick(self, key: str, value: Any) -> str:
        """The value alone."""
        return self._legend.get(_text(value)) or (style.of_variant(value).name if key == VARIANT else _text(value))


def _keys(cells: list[dict[str, Any]]) -> list[str]:
    """The columns that name a cell, the axis of the figure first."""
    axes = list(itertools.takewhile(lambda column: column != VARIANT, cells[0]))
    return [*axes, VARIANT] if any(row[VARIANT] for row in cells) or not axes else axes


def _rank(described: dict[str, Any], key: str, value: Any) -> tuple[float, str]:
    """Position of the value in the experiment: numbers by size, words and variants in its order, others last."""
    if isinstance(value, float):
        return value, ""
    listed = described.get("variants", []) if key == VARIANT else described.get("axes", {}).get(key, [])
    return (float(listed.index(value)) if value in listed else len(listed)), str(value)


def _places(key: str, cells: list[dict[str, Any]]) -> dict[Any, float]:
    """Position of each value on the axis: numbers at their value, words side by side."""
    values = list(dict.fromkeys(_plain(row[key]) for row in cells))
    return dict(zip(values, values if _are_numbers(values) else map(float, range(len(values))), strict=True))


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, float) for value in values)


def _lines(cells: list[dict[str, Any]], keys: list[str], words: Words) -> dict[str, list[dict[str, Any]]]:
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in cells:
        lines.setdefault(", ".join(words.line(key, row[key]) for key in keys[1:]), []).append(row)
    return lines


def _label(axes: Axes, key: str, places: dict[Any, float], words: Words) -> None:
    axes.set_xlabel("" if key == VARIANT else f"{_words(key)} ({words.units[key]})" if key in words.units else _words(key))
    if _are_numbers(places):
        shared.label_ticks(axes.xaxis, sorted(places.values()))
        return
    shared.label_words(axes, [words.tick(key, value) for value in places], list(places.values()))
    axes.set_xlim(-0.5, len(places) - 0.5)


def _words(key: str) -> str:
    """`links.0.error_rate` as `links.0 error rate`."""
    table, _, name = key.rpartition(".")
    return " ".join(part for part in (table, name.replace("_", " ")) if part)


def _plain(value: Any) -> Any:
    return "" if value is None else value


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
