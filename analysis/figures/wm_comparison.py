"""Web sessions and streams of datagrams by routing protocol and TCP, after the web-multimedia paper, figures 1 to 12.

A panel for each metric that the runs have, over all sessions or all streams of a kind; within it the routing protocols side by
side, and the TCPs (and patterns of flows) in each. Means over seeds with 95 % intervals. `pairs.csv` beside it has the
differences of the TCPs, and of each protocol to AODV, seed by seed.
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis.decisions.answers import answers_in
from analysis.decisions.pairs import pairs, write_pairs
from analysis.drawing import shared, style
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import read_summary

AXES = ("tcp",)  # of the experiment
FINISHED = "web_finished_sessions"
METRICS = {
    "total_acked_kbps": ("transfers: throughput in sum (kbit/s)", 1),
    "web_service_s": ("service time of a session (s)", 1),
    "web_throughput_bps": ("throughput of sessions (kbit/s)", 1e-3),
    "web_response_s": ("response time (s)", 1),
    FINISHED: ("finished sessions", 1),
    "vbr_delivery": ("video: delivered share", 1),
    "vbr_latency_ms": ("video: latency (ms)", 1),
    "vbr_jitter_ms": ("video: jitter (ms)", 1),
    "cbr_delivery": ("streams: delivered share", 1),
    "cbr_latency_ms": ("streams: latency (ms)", 1),
}
BASE_TCP, BASE_VARIANT = "reno", "aodv-ns2"
FLOWS = "flows"
BESIDE = 0.14
MARKS = ((style.BLUE, "o"), (style.VERMILION, "s"), (style.SKY, "^"), (style.ORANGE, "D"))


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv and the runs below it; returns the files written."""
    summary = read_summary(out_dir)
    axes_of = tuple(shared.description(out_dir).get("axes", {})) or AXES
    shown = [metric for metric in METRICS if any(row["metric"] == metric and row["mean"] is not None for row in summary)]
    cells = [row for row in summary if row["metric"] in shown]
    variants = shared.in_order(out_dir, (row["variant"] or "" for row in cells))
    lines = list(dict.fromkeys(_line(row) for row in cells))
    height_in = 1.1 + 1.25 * max(1, len(shown))
    with style.page(out_dir, "wm_comparison", height_in, nrows=max(1, len(shown)), sharex=True) as (axes, written):
        for panel, metric in zip(axes, shown, strict=False):
            _draw_panel(panel, [row for row in cells if row["metric"] == metric], lines, variants, METRICS[metric][1])
            panel.set_title(METRICS[metric][0], fontsize=8)
            if metric == FINISHED:
                panel.set_ylim(top=max(1, panel.get_ylim()[1]))
            shared.show_from_zero(panel)
        shared.label_words(axes[-1], [style.of_variant(variant).name for variant in variants])
        axes[-1].set_xlim(-0.5, max(0.5, len(variants) - 0.5))
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
        shared.write_origin(axes[-1], out_dir, summary, *shown)
    rows, answers = rows_in(out_dir, axes_of), answers_in(out_dir)
    bases = (("tcp", BASE_TCP), ("variant", BASE_VARIANT))
    differences = [pair for key, base in bases for pair in pairs(rows, axes_of, key, base, shown, answers=answers)]
    return [*written, write_pairs(out_dir / "pairs.csv", differences)]


def _line(row: dict[str, Any]) -> tuple[str, str]:
    """TCP and pattern of flows."""
    return str(row["tcp"]).partition("(")[0], str(row.get(FLOWS) or "")


def _draw_panel(axes: Axes, cells: list[dict[str, Any]], lines: list[tuple[str, str]], variants: list[str], scale: float) -> None:
    for position, line in enumerate(lines):
        rows = [row for row in cells if _line(row) == line and row["mean"] is not None]
        places = [variants.index(row["variant"] or "") + BESIDE * (position - (len(lines) - 1) / 2) for row in rows]
        colour, marker = MARKS[position % len(MARKS)]
        widths = shared.half_widths(rows) if rows else None
        tcp, flows = line
        name = ", ".join(part for part in (style.of_variant(tcp).name, flows.replace("-", " ")) if part)
        axes.errorbar(places, [row["mean"] * scale for row in rows], yerr=widths and [width * scale for width in widths],
                      color=colour, marker=marker, linestyle="", capsize=2.5, elinewidth=0.9, label=name)  # fmt: skip
