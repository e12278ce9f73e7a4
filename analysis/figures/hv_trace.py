"""Events of each packet during a stall of a connection, side by side with Holland and Vaidya (1999), table 1.

s: sent, r: received, D: dropped, with the node and the reason. The run is the one with the longest stall, the packets those that
either end sent in the stall or had in flight when it began. hv_trace.csv has all of them, in the columns of the published table.
Reasons are this testbed's (formats/air.md, formats/routing.md); the published ones are ns-2's NRTE (no_route) and END
(end_of_run).
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis.drawing import style
from analysis.figures.hv_packets import most_stalled
from analysis.references import load_reference
from analysis.story.stalls import Stall, packets_during
from analysis.story.story import Story, Transmission
from record.files import atomic_file

RUN_FILES = True  # it draws from them
COLUMNS = ("event", "time_s", "node", "seq", "packet", "reason")
PUBLISHED = "holland-vaidya_table1"
ROWS = 34  # shown in the figure
LETTERS = {"send": "s", "recv": "r", "drop": "D"}
EDGES = (0.0, 0.07, 0.27, 0.44, 0.58, 0.70)  # left edges of the columns, as fractions of a table's width


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`, and write hv_trace.csv there; returns the files drawn."""
    story, stall = most_stalled(out_dir)
    rows = trace(story, stall)
    with atomic_file(out_dir / "hv_trace.csv") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
    published = load_reference("published", PUBLISHED).rows
    shown = rows[:ROWS]
    lines = 2 + max(len(shown) + (len(rows) > ROWS), len(published))
    with style.page(out_dir, "hv_trace", 0.4 + 0.17 * lines, 7.4) as (axes, written):
        axes[0].set_axis_off()
        title = (
            f"one run of this testbed: {story.flow.source} to {story.flow.target}, "
            f"no new data from {stall.begin_s:.1f} to {stall.end_s:.1f} s"
        )
        _write(axes[0], 0.0, title, shown, lines)
        if len(rows) > ROWS:
            _cell(axes[0], 0.0, lines, 2 + ROWS, f"and {len(rows) - ROWS} more: hv_trace.csv")
        _write(axes[0], 0.58, "Holland and Vaidya, table 1: 1 to 2", published, lines)
    return written


def trace(story: Story, stall: Stall) -> list[dict[str, str]]:
    """Rows in the form of the published table: the sending and the end of each packet."""
    rows = []
    for one in packets_during(story, stall):
        journey = one.journey
        name = "tcp" if isinstance(one, Transmission) else "ack"
        label = one.label.lower() if isinstance(one, Transmission) and one.label else name
        rows.append(_row(story, "send", journey.sent_ns, journey.source, one.segment, label, ""))
        event, reason = ("recv", "") if journey.received else ("drop", journey.fate)
        rows.append(_row(story, event, journey.at_ns, journey.node, one.segment, label, reason))
    return sorted(rows, key=lambda row: float(row["time_s"]))


def _row(story: Story, event: str, t_ns: int, node: str, segment: int, packet: str, reason: str) -> dict[str, str]:
    values = (event, f"{story.seconds(t_ns):.3f}", node, str(segment), packet, reason)
    return dict(zip(COLUMNS, values, strict=True))


def _write(axes: Axes, left: float, title: str, rows: Sequence[Mapping[str, str]], lines: int) -> None:
    """Write a table that begins at the fraction `left` of the page's width."""
    _cell(axes, left, lines, 0, title, weight="bold")
    width = 0.5
    for edge, column in zip(EDGES, ("", "time (s)", "node", "seq", "packet", "reason"), strict=True):
        _cell(axes, left + width * edge, lines, 1, column, color=style.GREY)
    for number, row in enumerate(rows, start=2):
        colour = style.VERMILION if row["event"] == "drop" else style.BLACK
        for edge, column in zip(EDGES, COLUMNS, strict=True):
            _cell(axes, left + width * edge, lines, number, LETTERS.get(row[column], row[column]), color=colour)


def _cell(axes: Axes, left: float, lines: int, number: int, text: str, **options: Any) -> None:
    axes.text(left, 1 - (number + 0.5) / lines, text, transform=axes.transAxes, fontsize=7, va="center", **options)
