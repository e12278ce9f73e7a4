"""Congestion window over time of one upload to the Internet under each TCP, after the internet-manet paper, figures 5 (chain) and
6 (chain with a walker).

A panel for each network (variant), a line for each TCP: its first run that counts, at every ACK and timeout of tcp.csv. Dotted
verticals: the route of the first TCP's run changed. The title has the mean over time of the windows of all runs and kept rows,
in the measured time, with 95 % intervals. `pairs.csv` beside it has the differences from NewReno, seed by seed.
"""

from pathlib import Path

from matplotlib.axes import Axes

from analysis.captures.rundir import RunDirectory
from analysis.captures.tcp_samples import held_from
from analysis.decisions.answers import answers_in
from analysis.decisions.pairs import pairs, write_pairs
from analysis.drawing import shared, style
from analysis.metrics.measured_flow import NS_PER_S
from analysis.metrics.route_history import route_history
from analysis.tables.digits import with_interval
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import Row, counts, mean_and_interval, read_summary

RUN_FILES = True  # it draws from them
AXES = ("flows", "tcp")  # of the experiment
METRIC = "cwnd_mean"
BASE = "newreno"


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`; returns the files written."""
    measured = [row for row in rows_in(out_dir, AXES) if counts(row)]
    rows = [row for row in measured if "run_dir" in row]  # kept rows have no files
    tcps = shared.in_order(out_dir, (str(row["tcp"]) for row in rows), "tcp")
    variants = shared.in_order(out_dir, (row["variant"] or "" for row in rows))
    height_in = 0.9 + 1.6 * max(1, len(variants))
    with style.page(out_dir, "im_cwnd", height_in, nrows=max(1, len(variants)), sharex=True) as (axes, written):
        for panel, variant in zip(axes, variants, strict=False):
            _draw_panel(panel, variant, out_dir, [row for row in measured if (row["variant"] or "") == variant], tcps)
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=max(1, len(tcps)))
        axes[-1].set_xlabel("time since the start of the traffic (s)")
        shared.write_origin(axes[-1], out_dir, read_summary(out_dir), METRIC)
    compared = (METRIC, "acked_kbps", "retransmissions", "route_changes")
    differences = pairs(measured, AXES, "tcp", BASE, compared, answers=answers_in(out_dir))
    return [*written, write_pairs(out_dir / "pairs.csv", differences)]


def _draw_panel(axes: Axes, variant: str, out_dir: Path, rows: list[Row], tcps: list[str]) -> None:
    means = []
    for number, tcp in enumerate(tcps):
        mark = style.of_variant(tcp.partition("(")[0], number)
        own = [row for row in rows if row["tcp"] == tcp]
        spread = mean_and_interval([row[METRIC] for row in own])
        drawn = next((row["run_dir"] for row in own if "run_dir" in row and row[METRIC] is not None), None)
        if drawn is None:
            continue
        means.append(f"{mark.name} {with_interval(spread, 2)}")
        first = RunDirectory(out_dir / drawn)
        times_s, windows = _window(first)
        axes.step(times_s, windows, where="post", color=mark.colour, linewidth=0.9, label=mark.name)
        if number == 0:
            for at_s in _route_changes_s(first):
                axes.axvline(at_s, color=style.GREY, linewidth=0.6, linestyle=":", zorder=0)
    axes.set_title(f"{style.of_variant(variant).name}: mean " + ", ".join(means), loc="left", fontsize=8)
    axes.set(ylabel="window (segments)", ylim=(0, None))


def _window(run: RunDirectory) -> tuple[list[float], list[int]]:
    """The window of flow 1's sender: from each time on, in seconds of the traffic."""
    flow = run.flows[0]
    connection = run.connection(flow)
    if connection is None:
        return [], []
    held = held_from(run.tcp_rows(flow, connection), "snd_cwnd")
    return [(t_ns - run.traffic_ns) / NS_PER_S for t_ns, _ in held], [value for _, value in held]


def _route_changes_s(run: RunDirectory) -> list[float]:
    """The times of the routes after the first, in seconds of the traffic."""
    begin_ns = run.traffic_ns - run.epoch_ns
    taken = [route for route in route_history(run, run.flows[0]) or [] if route.hops is not None]
    return [(route.t_ns - begin_ns) / NS_PER_S for route in taken[1:] if route.t_ns > begin_ns]
