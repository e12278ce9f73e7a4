"""One movement pattern at several speeds, after Holland and Vaidya (1999), figures 5 and 10.

The top panel has the hops of the shortest path between the flow's ends over the pattern, which is the same at every speed; ticks:
the path changes. Below it, a panel for each speed with the acknowledged throughput in each second. Its time axis is as long as
the pattern, so that one position is the same moment of the movement in all panels. In brackets the mean and its percentage of the
expected throughput.
"""

import json
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
from record.files import read_text

RUN_FILES = True  # it draws from them
BY_SECOND = "acked_bps_by_second"


class SpeedRun(NamedTuple):
    """A run: `speed` in m/s, `lasts_s` its traffic's length, `rates` in kbit/s for each second, `row` of table.csv."""

    speed: float
    lasts_s: float
    rates: list[float]
    row: dict[str, Any]
    run: RunDirectory


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir` with the first seed; returns the files written."""
    out_dir = Path(out_dir)
    shown = _runs(out_dir)
    if not shown:
        raise RunFileError(f"{out_dir}: no run that counts; run the experiment first (`manet run hv-fig5`)")
    panels = 1 + len(shown)
    with style.page(out_dir, "hv_profile", 0.8 + 1.35 * panels, 7.2, nrows=panels) as (axes, written):
        _draw_hops(axes[0], shown[-1])
        most = max(max(one.rates) for one in shown)
        for panel, one in zip(axes[1:], shown, strict=True):
            _draw_rates(panel, one, most)
        axes[-1].set_xlabel("time since the start of the traffic (s)")
    return written


def _runs(out_dir: Path) -> list[SpeedRun]:
    """One for each speed, slowest first; of several seeds the first."""
    found: dict[float, SpeedRun] = {}
    for row in collect_runs(out_dir, ("speed",)):
        directory = out_dir / row["run_dir"]
        if not counts(row):
            continue
        flow = json.loads(read_text(directory / "metrics.json"))["flows"].get("flow1", {})
        run = RunDirectory(directory)
        speed = float((run.scenario.speed or 0.0) if row["speed"] is None else row["speed"])
        if flow.get(BY_SECOND) and speed not in found:
            rates = [rate / 1e3 for rate in flow[BY_SECOND]]
            found[speed] = SpeedRun(speed, run.scenario.duration, rates, row, run)
    return [found[speed] for speed in sorted(found)]


def _draw_hops(axes: Axes, one: SpeedRun) -> None:
    """Draw the pattern of the fastest run, from 0 to 1."""
    begin_ns = one.run.traffic_ns
    profile = profile_of(one.run, one.run.flows[0], begin_ns, begin_ns + round(one.lasts_s * 1e9))
    if profile is None:
        raise RunFileError(f"{one.run.path}: no movement that decides the path; figures of a profile need a trace and a disc")
    add_profile(axes, replace(profile, times_s=(profile.times_s - profile.times_s[0]) / one.lasts_s))
    axes.set_title(f"{one.run.flows[0].source} to {one.run.flows[0].target}", loc="left", pad=9)
    axes.set_ylabel("hops")
    axes.set_xlabel("part of the pattern")


def _draw_rates(axes: Axes, one: SpeedRun, most: float) -> None:
    seconds = range(len(one.rates) + 1)
    axes.step(seconds, [*one.rates, one.rates[-1]], where="post", color=style.BLUE, linewidth=0.8)
    percent = "" if one.row["percent"] is None else f", {one.row['percent']:.0f} % of the expected"
    axes.set_title(f"{one.speed:g} m/s ({one.row['acked_kbps']:.0f} kbit/s{percent})", loc="left")
    axes.set(xlim=(0, one.lasts_s), ylim=(0, 1.05 * most), ylabel="kbit/s")
