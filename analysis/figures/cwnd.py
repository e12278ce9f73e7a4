"""One TCP sender over time: congestion window and slow-start threshold (above), retransmission time-out and smoothed
round-trip time (below), at every ACK that the kernel's tcp_probe saw (tcp.csv).

Shaded: before and after the time that the metrics count. A threshold that was never set is not drawn.
"""

import json
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes

from analysis import style
from analysis.errors import RunFileError
from analysis.found_runs import find_runs
from analysis.tcp_samples import INFINITE_THRESHOLD

COLUMNS = {
    "t_ns": pl.Int64, "station": pl.String, "sport": pl.Int64, "dport": pl.Int64, "snd_cwnd": pl.Int64, "ssthresh": pl.Int64,
    "srtt_us": pl.Int64, "rto_us": pl.Int64,
}  # fmt: skip


def draw(out_dir: Path) -> list[Path]:
    """A figure for each flow of a run directory; for a folder of runs, those of the first seed of each cell."""
    out_dir = Path(out_dir)
    if (out_dir / "run.json").exists():
        return _draw_run(out_dir)
    cells: dict[Path, Path] = {}
    for run_dir in find_runs(out_dir).runs:
        if (run_dir / "tcp.csv").exists():
            cells.setdefault(run_dir.parent, run_dir)
    return [written for _, run_dir in sorted(cells.items()) for written in _draw_run(run_dir)]


def _draw_run(run_dir: Path) -> list[Path]:
    samples = _read(run_dir / "tcp.csv")
    metrics = _json(run_dir / "metrics.json", "analyse the run first (analysis.metrics.analyse_run)")
    written: list[Path] = []
    for name, flow in metrics["flows"].items():
        if flow["traffic"] == "bulk" and flow["start_ns"] is not None:
            written += _draw_flow(run_dir, name, flow, _of_flow(samples, flow))
    return written


def _draw_flow(run_dir: Path, name: str, flow: dict, samples: pl.DataFrame) -> list[Path]:
    time_s = ((samples["t_ns"] - flow["start_ns"]) / 1e9).to_list()
    with style.page(run_dir, f"cwnd_{name}", 3.6, nrows=2, sharex=True) as (axes, written):
        thresholds = [None if value >= INFINITE_THRESHOLD else value for value in samples["ssthresh"].to_list()]
        _steps(axes[0], time_s, samples["snd_cwnd"].to_list(), style.BLUE, "-", "congestion window")
        _steps(axes[0], time_s, _with_gaps(thresholds), style.VERMILION, "--", "slow-start threshold")
        axes[0].set_ylabel("segments")
        axes[0].set_title(f"{name}: {flow['from']} to {flow['to']}", loc="left")
        _steps(axes[1], time_s, (samples["rto_us"] / 1e6).to_list(), style.GREEN, "-", "retransmission time-out")
        _steps(axes[1], time_s, (samples["srtt_us"] / 1e6).to_list(), style.BLACK, "--", "smoothed round trip")
        axes[1].set_ylabel("seconds")
        axes[1].set_xlabel("time since the flow's first packet (s)")
        for one in axes:
            one.set_ylim(bottom=0)
            _shade_outside(one, flow["window_s"], time_s)
            one.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)
    return written


def _read(path: Path) -> pl.DataFrame:
    if not path.exists():
        raise RunFileError(f"{path}: no TCP samples; does `manet doctor` find tcp_probe?")
    try:
        rows = pl.read_csv(path, schema_overrides=COLUMNS)
        if "event" in rows.columns:  # runs before the events came have none
            rows = rows.filter(pl.col("event").is_null())
        return rows.select(list(COLUMNS))
    except pl.exceptions.PolarsError as problem:
        raise RunFileError(f"{path}: not TCP samples (formats/tcp.md): {str(problem).splitlines()[0]}") from None


def _of_flow(samples: pl.DataFrame, flow: dict) -> pl.DataFrame:
    """The samples of the flow's sending socket, told by its ports (iperf3's control connection has others)."""
    ports = (pl.col("sport") == flow["source_port"]) & (pl.col("dport") == flow["destination_port"])
    return samples.filter((pl.col("station") == flow["from"]) & ports & (pl.col("t_ns") >= flow["start_ns"])).sort("t_ns")


def _steps(axes: Axes, time_s: list, values: list, colour: str, line: str, name: str) -> None:
    """A value holds until the next sample."""
    axes.step(time_s, values, where="post", color=colour, linestyle=line, linewidth=1.0, label=name)


def _with_gaps(values: list) -> list:
    return [float("nan") if value is None else value for value in values]


def _shade_outside(axes: Axes, window_s: list[float], time_s: list[float]) -> None:
    last = max([*time_s, window_s[1]])
    for begin, end in ((0, window_s[0]), (window_s[1], last)):
        axes.axvspan(begin, end, color="#f0f0f0", linewidth=0, zorder=0)
    axes.set_xlim(0, last)


def _json(path: Path, remedy: str) -> dict:
    if not path.exists():
        raise RunFileError(f"{path}: missing; {remedy}")
    return json.loads(path.read_text())
