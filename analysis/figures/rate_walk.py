"""The data rates of a link over time while its receiver walks away and back: the medium's rate control and the kernel's.

Above the mean data rate of the frames of each second, below what arrived in it; the run of the first seed. rate_walk.csv has the
numbers of every run. Void runs are not drawn.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from analysis.captures.rundir import RunDirectory
from analysis.drawing import style
from analysis.drawing.shared import in_order
from analysis.tables.results import rows_to_draw
from record.files import atomic_file

RUN_FILES = True  # it draws from them
COLUMNS = ("variant", "seed", "second", "power_dbm", "frames", "mean_rate_mbps", "arrived", "delivered_mbps")
PANELS = (("mean_rate_mbps", "mean data rate (Mbit/s)"), ("delivered_mbps", "delivered (Mbit/s)"))
Row = dict[str, Any]


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`, and write rate_walk.csv there; returns the files written."""
    runs = rows_to_draw(out_dir, "manet vm --cpus 1 -- run rate-walk")
    rows = [row for run in runs for row in seconds_of(RunDirectory(out_dir / run["run_dir"]))]
    write_rows(out_dir / "rate_walk.csv", COLUMNS, rows)
    variants = in_order(out_dir, {row["variant"] for row in rows})
    with style.page(out_dir, "rate_walk", 4.4, 7.2, nrows=2, sharex=True) as (axes, written):
        for number, variant in enumerate(variants):
            own = [row for row in rows if row["variant"] == variant]
            first = [row for row in own if row["seed"] == min(row["seed"] for row in own)]
            for panel, (column, label) in zip(axes, PANELS, strict=True):
                _draw(panel, first, column, style.of_variant(variant, number))
                panel.set_ylabel(label)
                panel.set_ylim(bottom=0)
        axes[0].legend(loc="lower right")
        axes[-1].set_xlabel("time since the traffic began (s)")
    return [*written, out_dir / "rate_walk.csv"]


def seconds_of(run: RunDirectory) -> list[Row]:
    """A row for each second of the first flow's source and target, by the air log."""
    begin_ns = run.traffic_ns - run.epoch_ns
    second = ((pl.col("t_ns") - begin_ns) // 1_000_000_000).alias("second")
    attempts, delivered = of_first_flow(run, begin_ns, run.scenario.duration)
    sent = attempts.group_by(second).agg(
        pl.col("power_dbm").mean(),
        pl.len().alias("frames"),
        (pl.col("rate_bps").mean() / 1e6).alias("mean_rate_mbps"),
        (pl.col("fate") == "delivered").mean().alias("arrived"),
    )
    got = delivered.group_by(second).agg((pl.col("bytes").sum() * 8 / 1e6).alias("delivered_mbps"))
    joined = sent.join(got, on="second", how="left").sort("second").with_columns(pl.col("delivered_mbps").fill_null(0.0))
    about = {"variant": run.run["variant"], "seed": run.run["seed"]}
    return [about | row for row in joined.iter_rows(named=True)]


def of_first_flow(run: RunDirectory, from_ns: int, seconds: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of the air log in so many seconds from a model time (ns) on: the data frames of the first flow's source to its target,
    and what the target's host got of them."""
    flow = run.flows[0]
    air = run.air.filter(pl.col("t_ns").is_between(from_ns, from_ns + round(seconds * 1e9), closed="left"))
    sent = (pl.col("event") == "tx") & (pl.col("frame") == "data") & (pl.col("station") == flow.source)
    got = (pl.col("event") == "deliver") & (pl.col("station") == flow.target) & (pl.col("peer") == flow.source)
    return air.filter(sent & (pl.col("peer") == flow.target)), air.filter(got)


def _draw(axes: Axes, rows: list[Row], column: str, look: style.VariantStyle) -> None:
    axes.plot([row["second"] + 0.5 for row in rows], [row[column] for row in rows], color=look.colour, label=look.name)


def write_rows(path: Path, columns: Sequence[str], rows: list[Row]) -> None:
    """A table with these columns; numbers are rounded to four digits behind the point."""
    with atomic_file(path) as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
