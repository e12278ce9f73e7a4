"""The content of a figure, read from its axes when it was saved: the tests of figures compare it with their data.

A page that is empty, or has another series, fails such a test; the pixels of a picture would not tell.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
from matplotlib.text import Text

from analysis.drawing import style

DIGITS = 4  # behind the point, of every number
# The axes are the same with few pixels and without fonts cut to their letters, which take much of the time of a figure.
DRAFT = {"savefig.dpi": 50, "pdf.fonttype": 3}


@dataclass(frozen=True)
class Series:
    """A line or points. `half_widths` are those of the error bars, None without; `label` is the legend's or empty."""

    label: str
    points: list[tuple[float, float]]
    half_widths: list[float | None] | None
    colour: str
    marker: str
    line: str
    filled: bool
    steps: str

    @property
    def x(self) -> list[float]:
        return [x for x, _ in self.points]

    @property
    def y(self) -> list[float]:
        return [y for _, y in self.points]


@dataclass(frozen=True)
class Box:
    """A filled rectangle: a shaded span, a bar, or a cell of a table."""

    x: tuple[float, float]
    y: tuple[float, float]
    colour: tuple[float, ...]


@dataclass
class Panel:
    """One pair of axes. `named` has the series by their legend labels; `texts` what stands in the axes; `legend` its entries."""

    series: list[Series]
    boxes: list[Box]
    circles: list[tuple[tuple[float, float], float]]  # centre, radius
    arrows: list[tuple[tuple[float, float], tuple[float, float]]]  # from, to
    texts: list[str]
    title: str
    xlabel: str
    ylabel: str
    xticks: list[str]
    yticks: list[str]
    xlim: tuple[float, float]
    ylim: tuple[float, float]
    legend: list[str]
    named: dict[str, Series] = field(init=False)

    def __post_init__(self) -> None:
        self.named = {one.label: one for one in self.series if one.label}

    def of(self, variant: str, filled: bool = True, line: str | None = None) -> Series:
        """The one series in a variant's colour and marker; open markers are a reference's."""
        mark = style.of_variant(variant)
        (only,) = (
            one for one in self.series
            if (one.colour, one.marker, one.filled) == (mark.colour, mark.marker, filled) and line in (None, one.line)
        )  # fmt: skip
        return only

    @property
    def rings(self) -> list[tuple[float, float]]:
        """The points that are ringed, since a run of them is suspect."""
        return [point for one in self.series if (one.colour, one.filled) == (style.BLACK, False) for point in one.points]


@dataclass
class Page:
    """A figure that was saved: its panels from the top, every text of it, and the entries of the figure's own legends."""

    panels: list[Panel]
    words: str
    legend: list[str]


def pages(draw: Callable[..., Any], *arguments: Any, **options: Any) -> list[Page]:
    """The figures that `draw` saves; a figure that is saved as PNG and as PDF counts once."""
    found: list[Page] = []
    with _saved(lambda figure, picture: found.append(_page(figure)) if picture else None):
        draw(*arguments, **options)
    return found


def page(draw: Callable[..., Any], *arguments: Any, **options: Any) -> Page:
    """The one figure that `draw` saves."""
    (only,) = pages(draw, *arguments, **options)
    return only


def panels(draw: Callable[..., Any], *arguments: Any, **options: Any) -> list[Panel]:
    """The panels of the one figure that `draw` saves."""
    return page(draw, *arguments, **options).panels


@contextlib.contextmanager
def _saved(seen: Callable[[Figure, bool], None]) -> Iterator[None]:
    saved = Figure.savefig

    def save(figure: Figure, file: Any, **options: Any) -> None:
        saved(figure, file, **options)  # first, so that the layout is done
        seen(figure, str(file).endswith(".png") or options.get("format") == "png")

    with mock.patch.object(Figure, "savefig", save), mock.patch.dict(style.SETTINGS, DRAFT):
        yield


def _page(figure: Figure) -> Page:
    words = "\n".join(text.get_text() for text in figure.findobj(Text))
    entries = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return Page([_panel(axes) for axes in figure.axes], words, entries)


def _panel(axes: Axes) -> Panel:
    bars = {id(one[0]): one for one in axes.containers if isinstance(one, ErrorbarContainer)}
    caps = {id(cap) for one in bars.values() for cap in one[1]}
    legend = axes.get_legend()
    return Panel(
        [_series(line, bars.get(id(line))) for line in axes.lines if id(line) not in caps],
        [*map(_rectangle, (one for one in axes.patches if isinstance(one, Rectangle))), *_filled(axes)],
        [(_point(one.get_center()), _number(one.get_radius())) for one in axes.patches if isinstance(one, Circle)],
        [(_point(one._posA_posB[0]), _point(one._posA_posB[1])) for one in axes.patches if isinstance(one, FancyArrowPatch)],
        [text.get_text() for text in axes.texts],
        axes.get_title() or axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel(),
        [text.get_text() for text in axes.get_xticklabels()], [text.get_text() for text in axes.get_yticklabels()],
        axes.get_xlim(), axes.get_ylim(), [text.get_text() for text in legend.get_texts()] if legend else [],
    )  # fmt: skip


def _series(line: Line2D, bars: ErrorbarContainer | None) -> Series:
    label = str(bars.get_label() if bars else line.get_label())
    points = [(_number(x), _number(y)) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
    return Series(
        "" if label.startswith("_") or label == "None" else label, points, _half_widths(bars), str(line.get_color()),
        str(line.get_marker()), str(line.get_linestyle()), line.get_markerfacecolor() not in ("white", "none"),
        line.get_drawstyle(),
    )  # fmt: skip


def _half_widths(bars: ErrorbarContainer | None) -> list[float | None] | None:
    """None for each point without a bar (its half width is NaN)."""
    if bars is None or not bars[2]:
        return None
    return [_number((ends[1][1] - ends[0][1]) / 2) if len(ends) else None for ends in bars[2][0].get_segments()]


def _rectangle(patch: Rectangle) -> Box:
    x, y = patch.get_x(), patch.get_y()
    return Box((_number(x), _number(x + patch.get_width())), (_number(y), _number(y + patch.get_height())), patch.get_facecolor())


def _filled(axes: Axes) -> Iterator[Box]:
    for collection in axes.collections:
        if isinstance(collection, PolyCollection):
            for path, colour in zip(collection.get_paths(), collection.get_facecolor(), strict=False):
                (x0, y0), (x1, y1) = path.vertices.min(axis=0), path.vertices.max(axis=0)
                yield Box((_number(x0), _number(x1)), (_number(y0), _number(y1)), tuple(colour))


def _point(place: Any) -> tuple[float, float]:
    return _number(place[0]), _number(place[1])


def _number(value: Any) -> float:
    return round(float(np.asarray(value)), DIGITS)
