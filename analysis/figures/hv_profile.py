"""One movement pattern at several speeds, after Holland and Vaidya (1999), figures 5 and 10.

The top panel has the hops of the shortest path between the flow's ends over the pattern, which is the same at every speed; ticks:
the path changes. Below it, a panel for each speed with the acknowledged throughput in each second. Its time axis is as long as
the pattern, so that one position is the same moment of the movement in all panels. In brackets the mean and its percentage of the
expected throughput.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from analysis.captures.rundir import RunDirectory
from analysis.drawing import style
from analysis.drawing.profiles import add_profile
from analysis.metrics.movement import profile_of
from analysis.tables.results import collect_runs, counts
from record.errors import RunFileError

RUN_FILES = True  # it draws from them
BY_SECOND = "acked_bps_by_second"


class SpeedRun(NamedTuple):
    """A run: `speed` in m/s, `lasts_s` its traffic's length, `rates` in kbit/s for each second, `row` of table.csv, its
    `directory`."""

    speed: float
    lasts_s: float
    rates: list[float]
    row: dict[str, Any]
    directory: RunDirectory


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir` with the first seed; returns the files written."""
    shown = _runs(out_dir)
    if not shown:
        raise RunFileError(f"{out_dir}: no run that counts; run the experiment first (`manet run hv-fig5`)")
    panels = 1 + len(shown)
    with style.page(out_dir, "hv_profile", 0.8 + 1.35 * panels, 7.2, nrows=panels) as (axes, written):
        _draw_hops(axes[0], shown[-1])
        highest = max(max(run.rates) for run in shown)
        for panel, run in zip(axes[1:], shown, strict=True):
            _draw_rates(panel, run, highest)
        axes[-1].set_xlabel("time since the start of the traffic (s)")
    return written


def _runs(out_dir: Path) -> list[SpeedRun]:
    """One for each speed, slowest first; of several seeds the first."""
    by_speed: dict[float, SpeedRun] = {}
    for row in collect_runs(out_dir, ("speed",)):
        rates_bps = row["flow_metrics"].get("flow1", {}).get(BY_SECOND)
        if not counts(row) or not rates_bps:
            continue
        run = RunDirectory(out_dir / row["run_dir"])
        speed = float((run.scenario.speed or 0.0) if row["speed"] is None else row["speed"])
        by_speed.setdefault(speed, SpeedRun(speed, run.scenario.duration, [rate / 1e3 for rate in rates_bps], row, run))
    return [by_speed[speed] for speed in sorted(by_speed)]


def _draw_hops(axes: Axes, fastest: SpeedRun) -> None:
    """Draw the pattern of the fastest run, from 0 to 1."""
    run, lasts_s = fastest.directory, fastest.lasts_s
    flow, begin_ns = run.flows[0], run.traffic_ns
    profile = profile_of(run, flow, begin_ns, begin_ns + round(lasts_s * 1e9))
    if profile is None:
        raise RunFileError(f"{run.path}: no movement that decides the path; figures of a profile need a trace and a disc")
    add_profile(axes, replace(profile, times_s=(profile.times_s - profile.times_s[0]) / lasts_s))
    axes.set_title(f"{flow.source} to {flow.target}", loc="left", pad=9)
    axes.set_ylabel("hops")
    axes.set_xlabel("part of the pattern")


def _draw_rates(axes: Axes, run: SpeedRun, highest: float) -> None:
    seconds = range(len(run.rates) + 1)
    axes.step(seconds, [*run.rates, run.rates[-1]], where="post", color=style.BLUE, linewidth=0.8)
    percent = "" if run.row["percent"] is None else f", {run.row['percent']:.0f} % of the expected"
    axes.set_title(f"{run.speed:g} m/s, one run ({run.row['acked_kbps']:.0f} kbit/s{percent})", loc="left")
    axes.set(xlim=(0, run.lasts_s), ylim=(0, 1.05 * highest), ylabel="kbit/s")
