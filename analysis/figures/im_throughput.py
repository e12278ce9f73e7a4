"""Aggregate throughput of uploads from an ad hoc network to the Internet, by pattern of flows and TCP, after the internet-manet
paper, figures 3, 7 and 9 to 12.

A panel for each pattern of flows; within it the networks or uplinks (variants) side by side, and the TCPs in each; with a single
network the TCPs alone. Means over seeds of the sum of all flows' acknowledged throughput, each flow over its own time, with 95 %
intervals; crosses are the numbers that the paper prints. Where the flows begin or end at different times, the sum may exceed the
capacity of the path; the title of the panel says so. `pairs.csv` beside it has the differences of the TCPs, and of the variants,
seed by seed.
"""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis.captures.rundir import RunDirectory
from analysis.decisions.answers import answers_in
from analysis.decisions.pairs import pairs, write_pairs
from analysis.drawing import shared, style
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import collect_runs, read_summary

AXES = ("flows", "tcp")  # of the experiment
METRIC = "total_acked_kbps"
COMPARED = (METRIC, "acked_kbps", "retransmissions", "rtt_ms_mean", "hop_changes", "route_changes")
BASE = "newreno"
BESIDE = 0.18  # between the TCPs of a variant


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv and the runs below it; returns the files written."""
    summary = read_summary(out_dir)
    cells = [row for row in summary if row["metric"] == METRIC]
    patterns, tcps = (shared.in_order(out_dir, (str(row[axis]) for row in cells), axis) for axis in AXES)
    variants = shared.in_order(out_dir, (row["variant"] or "" for row in cells))
    runs = collect_runs(out_dir, AXES)
    one_of_each = {run["flows"]: RunDirectory(out_dir / run["run_dir"]) for run in runs}  # a pattern is the same in all its runs
    spans = {pattern: {(flow.start, flow.stop) for flow in run.scenario.flows} for pattern, run in one_of_each.items()}
    partly = {pattern for pattern, times in spans.items() if len(times) > 1}  # flows begin or end at different times
    height_in = 1.0 + 1.35 * len(patterns)
    with style.page(out_dir, "im_throughput", height_in, nrows=len(patterns), sharex=True, sharey=True) as (axes, written):
        for panel, pattern in zip(axes, patterns, strict=True):
            _draw_panel(panel, [row for row in cells if row["flows"] == pattern], tcps, variants)
            panel.set(title=pattern.replace("-", " ") + (", each flow over its own time" if pattern in partly else ""))
        axes[0].figure.supylabel("sum of the flows (kbit/s)", fontsize=8)
        shared.show_from_zero(axes[0])
        if len(variants) == 1:
            names = [style.of_variant(tcp.partition("(")[0]).name for tcp in tcps]
            shared.label_words(axes[-1], names, [_place(0, position, len(tcps)) for position in range(len(tcps))])
        else:
            shared.label_words(axes[-1], [style.of_variant(variant).name for variant in variants])
        axes[-1].set_xlim(-0.5, len(variants) - 0.5)
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(tcps) + 1)
        shared.write_origin(axes[-1], out_dir, summary, METRIC)
    answers, rows = answers_in(out_dir), rows_in(out_dir, AXES)
    differences = pairs(rows, AXES, "tcp", BASE, COMPARED, answers=answers)
    for number, base in enumerate(variants[:-1]):
        differences += pairs(rows, AXES, "variant", base, (METRIC,), variants[number + 1 :], answers)
    return [*written, write_pairs(out_dir / "pairs.csv", differences)]


def _draw_panel(axes: Axes, cells: list[dict[str, Any]], tcps: list[str], variants: list[str]) -> None:
    for position, tcp in enumerate(tcps):
        mark = style.of_variant(tcp.partition("(")[0], position)
        rows = [row for row in cells if row["tcp"] == tcp and row["mean"] is not None]
        places = [_place(variants.index(row["variant"] or ""), position, len(tcps)) for row in rows]
        axes.errorbar(places, [row["mean"] for row in rows], yerr=shared.half_widths(rows), color=mark.colour,
                      marker=mark.marker, linestyle="", capsize=2.5, elinewidth=0.9, label=mark.name)  # fmt: skip
        shared.ring_suspects(axes, [(x, row["mean"]) for x, row in zip(places, rows, strict=True) if row["suspect"]])
        printed = [(x + 0.05, row["published"]) for x, row in zip(places, rows, strict=True) if row["published"] is not None]
        name = "published" if printed and position == len(tcps) - 1 else None
        axes.plot([x for x, _ in printed], [value for _, value in printed], color=style.BLACK, linestyle="",
                  marker=style.PUBLISHED.marker, markersize=4, label=name)  # fmt: skip


def _place(variant: int, position: int, count: int) -> float:
    """Where the TCP at this position stands, of `count` in a variant."""
    return variant + BESIDE * (position - (count - 1) / 2)
