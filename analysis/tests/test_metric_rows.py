"""Rows of metrics: tables, store and formats/results.md follow from them."""

import os
import re
from pathlib import Path

from analysis.metrics import energy
from analysis.metrics.measures import MEASURED, metrics_of_captures
from analysis.metrics.movement import MOVEMENT
from analysis.metrics.route_history import ROUTES
from analysis.store.schema import FLOW_COLUMNS, METRIC_COLUMNS
from analysis.tables.results import FLOW_METRICS, OF_KINDS, OF_RUN, SOME_METRICS, flow_columns, own_metrics
from traffic import kinds
from traffic.shared.kind import Metric

PAGE = Path(__file__).parents[2] / "formats" / "results.md"
GENERATED = re.compile(r"(?<=<!-- metrics: begin -->\n).*?(?=<!-- metrics: end -->)", re.DOTALL)


def rows() -> str:
    """The rows of the table: each metric, unit, column of the tables, the flows that have it, definition."""
    of_way = {way: [f"`{name}`" for name, kind in kinds().items() if kind.measured == way] for way in MEASURED}
    sources = [(MEASURED[way].metrics, names) for way, names in of_way.items()]
    sources += [(kind.own_metrics, [f"`{name}`"]) for name, kind in kinds().items()]
    sources += [(MOVEMENT, ["in movement"]), (ROUTES, ["with our own daemons"])]
    columns = own_metrics(kinds().values()) | flow_columns(metrics_of_captures())
    column_of = {entry: f"`{column}`" for column, (_, entry, _) in columns.items()}
    texts: dict[str, dict[str, list[str]]] = {}
    units = {}
    for metrics, flows in sources:
        for metric in metrics:
            texts.setdefault(metric.name, {}).setdefault(metric.about, []).extend(flows)
            assert units.setdefault(metric.name, metric.unit) == metric.unit
    lines = ["| metric | unit | column of the tables | flows | definition |", "|---|---|---|---|---|"]
    for name, of_name in texts.items():
        for about, flows in of_name.items():
            lines.append(f"| `{name}` | {units[name]} | {column_of.get(name, '')} | {', '.join(flows)} | {about} |")
    for name, kind in kinds().items():
        for metric in kind.run_metrics:
            of_run = f"`{name}_{metric.name}` | all `{name}` flows of a run"
            lines.append(f"| `kinds`: `{metric.name}` | {metric.unit} | {of_run} | {metric.about} |")
    for metric in energy.OF_RUN:
        lines.append(f"| `energy`: `{metric.name}` | {metric.unit} | `{metric.name}` | all of a run | {metric.about} |")
    return "\n".join(lines) + "\n"


def test_the_page_of_formats_has_the_rows():
    page = PAGE.read_text()
    if "UPDATE" in os.environ:
        PAGE.write_text(GENERATED.sub(lambda _: rows(), page))
        page = PAGE.read_text()
    assert GENERATED.search(page).group() == rows(), "metrics changed; UPDATE=1 rewrites their table, review the difference"


def test_a_row_is_a_column_of_the_tables_and_of_the_store():
    hops = Metric("detour", "hops", "hops beyond the shortest path", lambda flow: 0)
    assert flow_columns([hops]) == {"detour": ("hops", "detour", 1)}
    assert flow_columns([Metric("lost_bps", "bit/s", "")]) == {"lost_kbps": ("kbit/s", "lost_bps", 1e3)}
    assert flow_columns([Metric("list", "bit/s", "", column=None)]) == {}
    assert [field.name for field in FLOW_COLUMNS] == [*FLOW_METRICS, *SOME_METRICS]
    assert {*FLOW_METRICS, *SOME_METRICS, *OF_KINDS, *OF_RUN} <= {field.name for field in METRIC_COLUMNS}
