"""The page of trends: a small chart per watched series, nights from left to right, alarms marked. One HTML file without
scripts and without anything from elsewhere."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from analysis.nights.change import Series
from analysis.nights.table import series_of
from analysis.reports.page import template_of

TEMPLATE = Path(__file__).parent / "page.html.j2"
WIDTH, HEIGHT, MARGIN = 220.0, 60.0, 6.0  # of a chart, in px
SHOWN_NIGHTS = 60


def rendered(rows: Iterable[Mapping[str, Any]]) -> str:
    """The page of the rows of a history; series with an alarm in its newest night first."""
    series = series_of(rows)
    nights = sorted({night.night for one in series for night in one.nights})
    charts = [chart(one, nights[-1]) for one in series]
    charts.sort(key=lambda one: (not one["alarm"], one["part"], one["metric"]))
    return template_of(TEMPLATE).render(charts=charts, nights=nights, width=WIDTH, height=HEIGHT)


def chart(series: Series, newest: str) -> dict[str, Any]:
    """Shapes of a series for the template: the line, and a point per night with its text, in px. `newest`: the history's last
    night, in which the series' part may not have run."""
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
        "part": series.part, "metric": series.metric, "unit": series.unit,
        "place": " ".join(word for word in series.place[2:] if word), "last": f"{values[-1]:.5g}",
        "alarm": nights[-1].alarm and nights[-1].night == newest,
        "before": "" if nights[-1].night == newest else nights[-1].night, "points": points,
        "line": " ".join(f"{point['x']},{point['y']}" for point in points),
    }  # fmt: skip
