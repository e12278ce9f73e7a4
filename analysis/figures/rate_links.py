"""The share of a link's frames at each data rate, for each distance and variant (ours and the kernel's rate control).

A bar for each cell, the slowest rate to the left; frames since the warm-up, retransmissions included, of all seeds. Beside the
bars the throughput that arrived. rate_links.csv has the numbers. Void runs are not counted.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import polars as pl

from analysis.captures.rundir import RunDirectory
from analysis.drawing import style
from analysis.drawing.shared import in_order
from analysis.figures.rate_walk import of_first_flow, write_rows
from analysis.tables.results import rows_to_draw

RUN_FILES = True  # it draws from them
COLUMNS = ("spacing", "variant", "seed", "rate", "rate_mbps", "frames", "share", "arrived", "delivered_mbps")
LABELLED = 0.07  # share of a part that has room for its rate
Row = dict[str, Any]


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`, and write rate_links.csv there; returns the files written."""
    runs = rows_to_draw(out_dir, "manet vm --cpus 1 -- run rate-links")
    rows = [row for run in runs for row in shares_of(RunDirectory(out_dir / run["run_dir"]))]
    write_rows(out_dir / "rate_links.csv", COLUMNS, rows)
    variants = in_order(out_dir, {row["variant"] for row in rows})
    cells = [(spacing, variant) for spacing in sorted({row["spacing"] for row in rows}) for variant in variants]
    rates = sorted({row["rate_mbps"] for row in rows})
    colours = mpl.colormaps["viridis"].resampled(len(rates))
    with style.page(out_dir, "rate_links", 1.0 + 0.32 * len(cells), 7.2) as (axes, written):
        panel = axes[0]
        for place, (spacing, variant) in enumerate(cells):
            own = [row for row in rows if (row["spacing"], row["variant"]) == (spacing, variant)]
            left, frames = 0.0, sum(row["frames"] for row in own)
            for number, rate_mbps in enumerate(rates):
                share = sum(row["frames"] for row in own if row["rate_mbps"] == rate_mbps) / frames if frames else 0.0
                panel.barh(place, share, left=left, height=0.8, color=colours(number))
                if share >= LABELLED:
                    ink = "white" if number < len(rates) / 2 else style.BLACK
                    panel.text(left + share / 2, place, f"{rate_mbps:g}", ha="center", va="center", fontsize=6.5, color=ink)
                left += share
            panel.text(1.01, place, f"{_mean(row['delivered_mbps'] for row in own):.1f}", va="center", fontsize=7)
        panel.set_yticks(range(len(cells)), [f"{spacing:g} m, {style.of_variant(name).name}" for spacing, name in cells])
        panel.invert_yaxis()
        panel.set_xlim(0, 1.1)
        panel.set_xlabel("share of the frames at each data rate (Mbit/s); to the right what arrived (Mbit/s)")
        panel.grid(visible=False)
    return [*written, out_dir / "rate_links.csv"]


def shares_of(run: RunDirectory) -> list[Row]:
    """A row for each rate of the first flow's source after the warm-up, by the air log."""
    begin_ns = run.traffic_ns - run.epoch_ns + round(run.scenario.warmup * 1e9)
    attempts, delivered = of_first_flow(run, begin_ns, run.scenario.duration)
    about = {
        "spacing": run.scenario.spacing, "variant": run.run["variant"], "seed": run.run["seed"],
        "delivered_mbps": float(delivered["bytes"].sum()) * 8 / 1e6 / run.scenario.duration,
    }  # fmt: skip
    mode = pl.col("mode") if "mode" in attempts.columns else pl.lit(None, dtype=pl.String).alias("mode")
    by_rate = attempts.group_by("rate_bps", mode).agg(
        pl.len().alias("frames"), (pl.col("fate") == "delivered").mean().alias("arrived")
    )
    return [
        about | {
            "rate": row["mode"] or f"{row['rate_bps'] / 1e6:g}", "rate_mbps": row["rate_bps"] / 1e6, "frames": row["frames"],
            "share": row["frames"] / len(attempts), "arrived": row["arrived"],
        }
        for row in by_rate.sort("rate_bps").iter_rows(named=True)
    ]  # fmt: skip


def _mean(values: Iterable[float]) -> float:
    unique = list(dict.fromkeys(values))  # each run's rows have the same
    return sum(unique) / len(unique) if unique else 0.0
