"""Throughput of all TCP flows together with other traffic, over mean speed, after Holland and Vaidya (1999), figures 8, 9, 15,
16.

A row for each load (constant-rate packets per second, or connections). Left: each variant, per movement pattern (dots) and in
the mean. Right: the difference to Reno, or to replies from caches, on the same patterns, and its mean with the interval of the
campaigns' rule (analysis/decisions/rule.py).
"""

from dataclasses import replace
from pathlib import Path

from analysis.decisions.answers import answers_in
from analysis.drawing import paired, shared, style
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import read_summary

AXES = ("speed",)  # of the experiment
METRIC = "total_acked_kbps"
LOADS = {"5pps": "5 packets/s", "10pps": "10 packets/s", "20pps": "20 packets/s", "five": "five connections"}
BASES = ("reno", "cache-replies")
WIDTH_IN = 7.4


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs and kept rows of `out_dir` and its summary.csv; returns the files written."""
    rows, answers = rows_in(out_dir, AXES), answers_in(out_dir)
    levels = paired.levels_of(out_dir, rows, METRIC)
    loads: dict[str, dict[str, str]] = {}  # load -> kind -> variant
    for variant in levels:
        kind, _, load = variant.rpartition("-")
        loads.setdefault(load, {})[kind] = variant
    count = max(1, len(loads))
    with style.page(out_dir, "hv_load", 1.0 + 1.8 * count, WIDTH_IN, nrows=count, ncols=2, sharex=True) as (axes, written):
        for left, right, (load, variants) in zip(axes[::2], axes[1::2], loads.items(), strict=False):
            of_kinds = {kind: levels[variant] for kind, variant in variants.items()}
            paired.draw_levels(left, of_kinds, METRIC)
            left.set_title(LOADS.get(load, load))
            base = next((kind for kind in BASES if kind in variants), min(variants))
            kinds = {variant: kind for kind, variant in variants.items() if kind != base}
            found = paired.gains(rows, answers, variants[base], METRIC, list(kinds))
            paired.draw_gains(right, [replace(pair, compared=kinds[pair.compared]) for pair in found], list(variants))
            right.set(title=f"minus {style.of_variant(base).name}", ylabel="kbit/s")
        for panel in axes[-2:]:
            paired.label_speeds(panel, levels)
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        shared.write_origin(axes[0], out_dir, read_summary(out_dir), METRIC)
    return written
