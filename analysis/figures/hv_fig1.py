"""TCP throughput over a static chain against its length, after Holland and Vaidya (1999), figure 1.

Filled markers: this testbed (Linux TCP; 95 % intervals where a point has several runs), one colour a variant, ringed in
black where a run is suspect; the line at the foot says which runs these are. Open markers: ns-2.35 with the same
settings. Crosses: the published figure. Plus signs: Mininet-WiFi with wmediumd, which has no contention and so
follows one n-th of one hop (dotted; goodput). Below: ours over ns-2's, with the band of 7 % that the testbed is held to.
"""

import json
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerTuple
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from analysis import style
from analysis.references import load_reference
from analysis.tables import collect_runs, read_summary

METRIC = "acked_kbps"
BAND = 0.07


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    out_dir = Path(out_dir)
    summary = read_summary(out_dir)
    ours = _series(summary)
    with style.page(out_dir, "hv_fig1", 5.4, nrows=2, sharex=True, height_ratios=[3, 1]) as (axes, written):
        _draw_throughput(axes[0], ours)
        _draw_ratios(axes[1], ours)
        axes[1].figure.supxlabel(_origin(out_dir, summary), fontsize=6.5, color=style.GREY)
    return written


def _series(summary: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The cells of each variant that have a mean, by hops."""
    series: dict[str, list[dict[str, Any]]] = {}
    for row in summary:
        if row["metric"] == METRIC:
            series.setdefault(row["variant"] or "", [])
            if row["mean"] is not None:
                series[row["variant"] or ""].append(row)
    return {variant: sorted(rows, key=lambda row: row["hops"]) for variant, rows in series.items()}


def _origin(out_dir: Path, summary: list[dict[str, Any]]) -> str:
    """`hv-fig1 quick: 1 run of 12 s per point (seed 1); 11 valid, 1 suspect`."""
    description = out_dir / "experiment.json"
    experiment = json.loads(description.read_text()) if description.exists() else {}
    name = experiment.get("name", out_dir.name)
    size = {True: " quick", False: " full"}.get(experiment.get("quick"), "")
    runs = collect_runs(out_dir, ())
    files = (out_dir / run["run_dir"] / "scenario.json" for run in runs)
    scenarios = [json.loads(file.read_text()) for file in files if file.exists()]
    lengths = sorted({scenario["duration"] for scenario in scenarios if "duration" in scenario})
    measured = f" of {_span(lengths)} s" if lengths else ""
    seeds = sorted({run["seed"] for run in runs if run["seed"] is not None})
    listed = f" (seed{'s' if len(seeds) > 1 else ''} {_span(seeds)})" if seeds else ""
    rows = [row for row in summary if row["metric"] == METRIC]
    counts = {kind: round(sum(row[kind] for row in rows)) for kind in ("valid", "suspect", "void")}
    verdicts = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return f"{name}{size}: {_runs_a_point(rows)}{measured} per point{listed}; {verdicts or 'no verdicts'}"


def _runs_a_point(rows: list[dict[str, Any]]) -> str:
    """`1 run`, `5 runs`, `3 to 5 runs`: those that a mean is over."""
    counted = sorted({round(row["n"]) for row in rows if row["mean"] is not None}) or [0]
    return f"{_span(counted)} run{'' if counted == [1] else 's'}"


def _span(values: list[float]) -> str:
    return f"{values[0]:g}" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g}"


def _legend_title(ours: dict[str, list[dict[str, Any]]]) -> str:
    """Intervals are promised only where there are any."""
    rows = [row for series in ours.values() for row in series]
    meaning = ", one run each" if rows else ""
    if any(row["n"] > 1 for row in rows):
        meaning = f", mean of {_runs_a_point(rows)}, 95 % intervals"
    return f"filled: this testbed{meaning}; open: ns-2.35"


def _half_widths(rows: list[dict[str, Any]], per: str | None = None) -> list[float] | None:
    """Half widths of the intervals (over the column `per`); nothing to draw for a single run."""
    if all(row["ci95"] is None for row in rows):
        return None
    return [float("nan") if row["ci95"] is None else row["ci95"] / (row[per] if per else 1) for row in rows]


def _ring_suspects(axes: Axes, places: list[tuple[float, float]]):
    """A black ring round each of these points; returns what the legend shows, or None without any."""
    if not places:
        return None
    (rings,) = axes.plot(*zip(*places, strict=True), color=style.BLACK, marker="o", markerfacecolor="none", markersize=9.5,
                         markeredgewidth=0.8, linestyle="", zorder=5)  # fmt: skip
    return rings


def _draw_throughput(axes: Axes, ours: dict[str, list[dict[str, Any]]]) -> None:
    entries = _draw_others(axes)
    for position, (variant, rows) in enumerate(ours.items()):
        look = style.look(variant, position)
        reference = [(row["hops"], row["ns2"]) for row in rows if row["ns2"] is not None]
        (simulated,) = axes.plot([hops for hops, _ in reference], [rate for _, rate in reference], color=look.colour,
                                 marker=look.marker, markerfacecolor="white", markersize=7, linewidth=0.8, linestyle="--",
                                 zorder=3)  # fmt: skip
        measured = axes.errorbar([row["hops"] for row in rows], [row["mean"] for row in rows],
                                 yerr=_half_widths(rows), color=look.colour, marker=look.marker,
                                 markersize=3.2, linestyle="-", capsize=2.5, elinewidth=0.9, zorder=4)  # fmt: skip
        entries[look.name] = (measured, simulated)
    rings = _ring_suspects(axes, [(row["hops"], row["mean"]) for rows in ours.values() for row in rows if row["suspect"]])
    if rings is not None:
        entries["with a suspect run"] = rings
    axes.set_yscale("log")
    axes.set_ylabel("TCP throughput, acknowledged (kbit/s)")
    _label_ticks(axes.yaxis, [150, 200, 300, 400, 600, 800, 1000, 1500])
    low, high = axes.dataLim.intervaly
    axes.set_ylim(min(150, 0.9 * low), max(2000, 1.1 * high))
    axes.legend(entries.values(), entries.keys(), loc="upper right", handlelength=4, title_fontsize=7.5,
                title=_legend_title(ours), alignment="left",
                handler_map={tuple: HandlerTuple(ndivide=None)})  # fmt: skip


def _draw_others(axes: Axes) -> dict[str, Any]:
    """The published figure and the peer; returns their legend entries."""
    published = load_reference("published", "holland-vaidya_fig1")
    (paper,) = axes.plot(*published.series("hops", METRIC), color=style.PUBLISHED.colour, marker=style.PUBLISHED.marker,
                         linestyle="-", linewidth=0.9, zorder=2)  # fmt: skip
    hops, rates = load_reference("peers", "wmediumd").series("hops", "goodput_kbps")
    peer = style.PEER
    (points,) = axes.plot(hops, rates, color=peer.colour, marker=peer.marker, markersize=7, linestyle="", zorder=2)
    steps = [1 + step / 20 for step in range(181)]
    axes.plot(steps, [rates[0] / step for step in steps], color=peer.colour, linewidth=0.9, linestyle=":", zorder=1)
    axes.annotate("1/n, no contention", (5.5, rates[0] / 5.5), xytext=(5, 4), textcoords="offset points",
                  color=peer.colour, fontsize=7.5)  # fmt: skip
    return {"Holland and Vaidya 1999, figure 1": paper, peer.name: points}


def _draw_ratios(axes: Axes, ours: dict[str, list[dict[str, Any]]]) -> None:
    axes.axhspan(1 - BAND, 1 + BAND, color="#eeeeee", linewidth=0)
    axes.axhline(1, color=style.BLACK, linewidth=0.6)
    for position, (variant, rows) in enumerate(ours.items()):
        compared = [row for row in rows if row["ns2"]]
        look = style.look(variant, position)
        axes.errorbar([row["hops"] for row in compared], [row["mean"] / row["ns2"] for row in compared],
                      yerr=_half_widths(compared, "ns2"), color=look.colour, marker=look.marker,
                      markersize=3.5, capsize=2.5, elinewidth=0.9, linewidth=0.9)  # fmt: skip
        _ring_suspects(axes, [(row["hops"], row["mean"] / row["ns2"]) for row in compared if row["suspect"]])
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.85), max(high, 1.15))
    axes.set_ylabel("ours / ns-2.35")
    axes.set_xlabel("hops")
    _label_ticks(axes.xaxis, range(1, 11))
    axes.set_xlim(0.7, 10.3)


def _label_ticks(axis, values) -> None:
    """Plain numbers at these places, no powers of ten."""
    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(ScalarFormatter())
