"""Hops to the gateway over time under each TCP, after the internet-manet paper, table 2 and figure 8.

A panel for each TCP: a line for each run of the folder (opaque for the first), as the routing daemon of the flow's source
reported its route; gaps are times without a route. Crosses are the rows of the paper's table 2 (Vegas). The title has the mean
number of changes of the hop count, and of the route, in the measured time, with 95 % intervals, of the runs and kept rows, and
the number of hop counts that the paper has.
"""

from pathlib import Path

from matplotlib.axes import Axes

from analysis.captures.rundir import RunDirectory
from analysis.decisions.answers import answers_in
from analysis.decisions.pairs import pairs, write_pairs
from analysis.drawing import shared, style
from analysis.metrics.measured_flow import NS_PER_S
from analysis.metrics.route_history import route_history
from analysis.references import load_reference
from analysis.tables.digits import with_interval
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import Row, counts, mean_and_interval, read_summary

RUN_FILES = True  # it draws from them
AXES = ("flows", "tcp")  # of the experiment
METRIC = "hop_changes"
BASE = "newreno"
PAPER = {"newreno": 26, "vegas": 8, "tcpap": 8}  # hop counts in the first 80 s: figure 8 and its text


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`; returns the files written."""
    measured = [row for row in rows_in(out_dir, AXES) if counts(row)]
    rows = [row for row in measured if "run_dir" in row]  # kept rows have no files
    tcps = shared.in_order(out_dir, (str(row["tcp"]) for row in rows), "tcp")
    height_in = 0.9 + 1.3 * max(1, len(tcps))
    with style.page(out_dir, "im_routes", height_in, nrows=max(1, len(tcps)), sharex=True, sharey=True) as (axes, written):
        for panel, tcp in zip(axes, tcps, strict=False):
            _draw_panel(panel, tcp, out_dir, [row for row in rows if row["tcp"] == tcp])
            _entitle(panel, tcp, [row for row in measured if row["tcp"] == tcp])
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center")
        axes[-1].set_xlabel("time since the start of the walk (s)")
        shared.write_origin(axes[-1], out_dir, read_summary(out_dir), METRIC)
    compared = (METRIC, "route_changes", "acked_kbps")
    differences = pairs(measured, AXES, "tcp", BASE, compared, answers=answers_in(out_dir))
    return [*written, write_pairs(out_dir / "pairs.csv", differences)]


def _draw_panel(axes: Axes, tcp: str, out_dir: Path, rows: list[Row]) -> None:
    mark = style.of_variant(tcp.partition("(")[0])
    end_s = 0.0
    for number, row in enumerate(rows):
        run = RunDirectory(out_dir / row["run_dir"])
        end_s = run.scenario.traffic_seconds()
        begin_ns = run.traffic_ns - run.epoch_ns
        taken = route_history(run, run.flows[0]) or []
        times = [(route.t_ns - begin_ns) / NS_PER_S for route in taken]
        hops = [float("nan") if route.hops is None else route.hops for route in taken]
        axes.step([*times, end_s], [*hops, *hops[-1:]], where="post", color=mark.colour, linewidth=1.0,
                  alpha=1.0 if number == 0 else 0.35)  # fmt: skip
    printed = load_reference("published", "internet-manet_hops_vegas").rows
    points = [(float(row["time_s"]), float(row["hops"])) for row in printed if float(row["time_s"]) <= end_s]
    axes.plot(*zip(*points, strict=True), color=style.BLACK, marker=style.PUBLISHED.marker, linestyle="", markersize=4,
              label="table 2 of the paper (Vegas)")  # fmt: skip
    axes.set(ylabel="hops", ylim=(0.5, 3.5), yticks=(1, 2, 3))


def _entitle(axes: Axes, tcp: str, rows: list[Row]) -> None:
    name = tcp.partition("(")[0]
    beside = f" (paper: {PAPER[name]} hop counts)" if name in PAPER else ""
    hops, routes = _mean(rows, METRIC), _mean(rows, "route_changes")
    axes.set_title(f"{style.of_variant(name).name}: {hops} changes of the hop count{beside}, {routes} of the route", fontsize=8)


def _mean(rows: list[Row], metric: str) -> str:
    spread = mean_and_interval([row[metric] for row in rows])
    return "no" if spread["mean"] is None else with_interval(spread, 1)
