"""One TCP sender over time: congestion window and slow-start threshold (above), retransmission time-out and smoothed round-trip
time (below), at every ACK that the kernel's tcp_probe recorded and every timeout (tcp.csv).

Shaded: before and after the measured window. A threshold that was never set is not drawn.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from analysis.captures.tcp_samples import held_from, read_samples, with_gaps
from analysis.drawing import style
from record.errors import RunFileError
from record.files import read_json
from record.found_runs import find_runs
from traffic import kind_named

RUN_FILES = True  # it draws from them


def draw(out_dir: Path) -> list[Path]:
    """Draw a figure for each flow of a run directory; for a folder of runs, those of the first seed of each cell."""
    if (out_dir / "run.json").exists():
        return _draw_run(out_dir)
    cells: dict[Path, Path] = {}
    for run_dir in find_runs(out_dir).runs:
        if (run_dir / "tcp.csv").exists():
            cells.setdefault(run_dir.parent, run_dir)
    return [written for _, run_dir in sorted(cells.items()) for written in _draw_run(run_dir)]


def _draw_run(run_dir: Path) -> list[Path]:
    rows = read_samples(run_dir / "tcp.csv")
    path = run_dir / "metrics.json"
    if not path.exists():
        raise RunFileError(f"{path}: missing; analyse the run first (analysis.metrics.analyse.analyse_run)")
    written: list[Path] = []
    for name, flow in read_json(path)["flows"].items():
        if kind_named(flow["traffic"]).has_tcp and flow["start_ns"] is not None:
            written += _draw_flow(run_dir, name, flow, _of_flow(rows, flow))
    return written


def _draw_flow(run_dir: Path, name: str, flow: dict[str, Any], rows: pl.DataFrame) -> list[Path]:
    last_s = max([(t_ns - flow["start_ns"]) / 1e9 for t_ns in rows["t_ns"].to_list()], default=0.0)
    with style.page(run_dir, f"cwnd_{name}", 3.6, nrows=2, sharex=True) as (axes, written):
        thresholds = with_gaps(held_from(rows, "ssthresh"))
        _steps(axes[0], flow, held_from(rows, "snd_cwnd"), style.BLUE, "-", "congestion window")
        _steps(axes[0], flow, thresholds, style.VERMILION, "--", "slow-start threshold")
        axes[0].set_ylabel("segments")
        axes[0].set_title(f"{name}: {flow['from']} to {flow['to']}", loc="left")
        for column, colour, line, label in (
            ("rto_us", style.GREEN, "-", "retransmission time-out"), ("srtt_us", style.BLACK, "--", "smoothed round trip"),
        ):  # fmt: skip
            _steps(axes[1], flow, [(t_ns, value / 1e6) for t_ns, value in held_from(rows, column)], colour, line, label)
        axes[1].set_ylabel("seconds")
        axes[1].set_xlabel("time since the flow's first packet (s)")
        for one in axes:
            one.set_ylim(bottom=0)
            _shade_outside(one, flow["window_s"], last_s)
            one.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)
    return written


def _of_flow(rows: pl.DataFrame, flow: dict[str, Any]) -> pl.DataFrame:
    """The rows of the flow's sending socket, identified by its ports (iperf3's control connection has others)."""
    ports = (pl.col("sport") == flow["source_port"]) & (pl.col("dport") == flow["destination_port"])
    return rows.filter((pl.col("station") == flow["from"]) & ports & (pl.col("t_ns") >= flow["start_ns"])).sort("t_ns")


def _steps(axes: Axes, flow: dict[str, Any], held: Sequence[tuple[int, float]], colour: str, line: str, name: str) -> None:
    """Each value, from its time on."""
    axes.step([(t_ns - flow["start_ns"]) / 1e9 for t_ns, _ in held], [value for _, value in held], where="post", color=colour,
              linestyle=line, linewidth=1.0, label=name)  # fmt: skip


def _shade_outside(axes: Axes, window_s: list[float], last_s: float) -> None:
    last = max(last_s, window_s[1])
    for begin, end in ((0, window_s[0]), (window_s[1], last)):
        axes.axvspan(begin, end, color="#f0f0f0", linewidth=0, zorder=0)
    axes.set_xlim(0, last)
