"""The page of trends: a small chart per watched series, nights from left to right, alarms marked. One HTML file without
scripts and without anything from elsewhere."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from analysis.nights.change import Series
from analysis.nights.table import series_of

TEMPLATE = "page.html.j2"
WIDTH, HEIGHT, MARGIN = 220.0, 60.0, 6.0  # of a chart, in px
SHOWN_NIGHTS = 60


def rendered(rows: Iterable[Mapping[str, Any]]) -> str:
    """The page of the rows of a history; series with an alarm tonight first."""
    series = sorted(series_of(rows), key=lambda one: (not one.tonight.alarm, one.part, one.metric))
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader, autoescape=select_autoescape(["j2"]), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    nights = sorted({night.night for one in series for night in one.nights})
    charts = [chart(one) for one in series]
    return environment.get_template(TEMPLATE).render(charts=charts, nights=nights, width=WIDTH, height=HEIGHT)


def chart(series: Series) -> dict[str, Any]:
    """What the template draws of a series: the line and a point per night with its words, in px."""
    nights = series.nights[-SHOWN_NIGHTS:]
    values = [night.value for night in nights]
    low, high = min(values), max(values)
    middle, half = (low + high) / 2, max((high - low) / 2, abs(high) * series.relevant, 1e-12)
    step = (WIDTH - 2 * MARGIN) / max(1, len(nights) - 1)
    points = [
        {
            "x": round(MARGIN + number * step, 1),
            "y": round(HEIGHT / 2 - (night.value - middle) / half * (HEIGHT / 2 - MARGIN), 1),
            "alarm": night.alarm,
            "text": f"{night.night}  {night.value:.5g} {series.unit}  {night.commit[:10]}{'  changed' if night.alarm else ''}",
        }
        for number, night in enumerate(nights)
    ]
    return {
        "metric": series.metric, "unit": series.unit, "place": " ".join(word for word in series.place[2:] if word),
        "last": f"{values[-1]:.5g}", "alarm": nights[-1].alarm, "points": points,
        "line": " ".join(f"{point['x']},{point['y']}" for point in points),
    }  # fmt: skip
