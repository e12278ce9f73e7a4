"""The way from the TCP and the stations of 1999 to those of today, switch by switch, with and without ELFN.

Waterfalls, for each speed and with and without ELFN: the mean throughput in 1999's set-up, the paired difference that each
switch makes to the variant before it, and the mean of today; below them the whole way, and single settings of 1999 turned another
way, each as its difference to 1999. Last panels: ELFN minus Reno at each station of the way. Lines are 95 % intervals: of the
means by Student's t, of the differences by the rule of campaigns, over the same movements. Hatched bars and open points are
undecided. `pairs.csv` beside it has all these differences.

The way is the order of the variants in the experiment, for each beginning of their names up to its `today`; variants behind it
turn one setting of 1999. A bar stands between the two means of its own pairs: where a run is void or a question took more seeds,
neighbouring bars do not meet exactly.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from analysis.decisions import eras
from analysis.decisions.answers import answers_in
from analysis.decisions.eras import FIRST, LAST, TCPS, WITH, WITHOUT, Shares, Way
from analysis.decisions.pairs import VARIANT, Pair, write_pairs
from analysis.decisions.rule import Outcome
from analysis.drawing import shared, style
from analysis.tables.digits import with_interval
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import counts, standing
from record.errors import RunFileError

AXES = ("speed",)  # of the experiment
COLOURS = {Outcome.MORE: style.BLUE, Outcome.LESS: style.VERMILION, Outcome.SAME: "#bbbbbb", Outcome.UNDECIDED: "white"}
WORDS = {
    Outcome.MORE: "more", Outcome.LESS: "less", Outcome.SAME: "no difference that matters",
    Outcome.UNDECIDED: "undecided",
}  # fmt: skip
WIDTH_IN, LINE_IN = 7.4, 0.19
SMALL = 6.5  # points


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs and kept rows of `out_dir`; returns the files written."""
    rows = [run for run in rows_in(out_dir, AXES) if counts(run)]
    if not rows:
        raise RunFileError(f"{out_dir}: no run that counts; run the experiment first (`manet campaign hv-eras --quick`)")
    described = shared.description(out_dir)
    variants = shared.in_order(out_dir, [*described.get("variants", ()), *(run[VARIANT] for run in rows)])
    shares = eras.shares(variants, rows, answers_in(out_dir))
    lines = [len(way.path) + 2 + len(way.turned) for way in shares.ways] + ([len(shares.gains)] if shares.gains else [])
    height_in = 0.9 + sum(LINE_IN * count + 0.35 for count in lines)
    with style.page(
        out_dir, "hv_eras", height_in, WIDTH_IN, nrows=len(lines), ncols=len(shares.speeds), sharex="row", sharey="row",
        height_ratios=lines,
    ) as (axes, written):  # fmt: skip
        columns = len(shares.speeds)
        grid = [axes[first : first + columns] for first in range(0, len(axes), columns)]
        for way, panels in zip(shares.ways, grid, strict=False):
            for speed, panel in zip(shares.speeds, panels, strict=True):
                _draw_way(panel, shares, speed, way)
            panels[0].set_xlim(left=0)  # once all that share the axis are drawn
        for speed, panel in zip(shares.speeds, grid[-1] if shares.gains else (), strict=False):
            _draw_gain(panel, shares, speed)
        axes[0].figure.legend(handles=_legend(shares), loc="outside upper center", ncols=5)
        shared.write_note(axes[0], _origin(out_dir, rows, shares))
    return [*written, write_pairs(out_dir / "pairs.csv", shares.pairs.values())]


def _draw_way(axes: Axes, shares: Shares, speed: str, way: Way) -> None:
    axes.use_sticky_edges = False  # a margin behind the longest bar, also where a bar begins there
    labels = [*map(eras.name, way.path), LAST, "the whole way", *(f"{FIRST}, but {eras.name(variant)}" for variant in way.turned)]
    levels = {0: way.path[0], len(way.path): way.path[-1]}
    differences: list[tuple[str, str] | None] = [None, *way.steps, None, way.whole, *way.of_turned]
    for line, difference in enumerate(differences):
        if difference is None:
            _draw_mean(axes, line, shares.means[speed, levels[line]])
        else:
            _draw_difference(axes, line, shares.pairs.get((speed, *difference)))
    _connect(axes, shares, speed, way)
    axes.axhline(len(way.path) + 0.5, color=style.GREY, linewidth=0.5)
    axes.set_title(f"{TCPS.get(way.tcp, way.tcp)} at {speed} m/s", loc="left")
    _label_lines(axes, labels)
    axes.set_xlabel("acknowledged (kbit/s)", labelpad=1)


def _draw_mean(axes: Axes, line: int, spread: Mapping[str, Any]) -> None:
    mean, half = spread["mean"], spread["ci95"]
    if mean is None:
        _write(axes, line, "no runs")
        return
    axes.barh(line, mean, height=0.62, color=style.GREY, edgecolor=style.BLACK, linewidth=0.5)
    if half is not None:
        _draw_interval(axes, line, mean - half, mean + half)
    _write(axes, line, with_interval(spread))


def _draw_difference(axes: Axes, line: int, pair: Pair | None) -> None:
    if pair is None:
        _write(axes, line, "no runs")
        return
    outcome = pair.answer.outcome
    axes.barh(line, pair.difference, left=pair.mean_base, height=0.62, color=COLOURS[outcome], edgecolor=style.BLACK,
              linewidth=0.5, hatch="//////" if outcome == Outcome.UNDECIDED else None)  # fmt: skip
    if pair.answer.low is not None and pair.answer.high is not None:
        _draw_interval(axes, line, pair.mean_base + pair.answer.low, pair.mean_base + pair.answer.high)
    _write(axes, line, eras.in_words(pair))


def _connect(axes: Axes, shares: Shares, speed: str, way: Way) -> None:
    """From the end of each bar to the begin of the next one."""
    ends = [shares.means[speed, way.path[0]]["mean"]]
    begins = []
    for step in way.steps:
        pair = shares.pairs.get((speed, *step))
        begins.append(pair and pair.mean_base)
        ends.append(pair and pair.mean)
    begins.append(shares.means[speed, way.path[-1]]["mean"])
    for line, (end, begin) in enumerate(zip(ends, begins, strict=True)):
        if end is not None and begin is not None:
            axes.plot([end, begin], [line + 0.31, line + 0.69], color=style.BLACK, linewidth=0.5)


def _draw_gain(axes: Axes, shares: Shares, speed: str) -> None:
    axes.axvline(0, color=style.BLACK, linewidth=0.6)
    for line, gain in enumerate(shares.gains):
        pair = shares.pairs.get((speed, *gain))
        if pair is None:
            _write(axes, line, "no runs")
            continue
        if pair.answer.low is not None and pair.answer.high is not None:
            _draw_interval(axes, line, pair.answer.low, pair.answer.high)
        axes.plot([pair.difference], [line], marker="o", markersize=5, linestyle="", color=style.BLACK, markeredgewidth=0.6,
                  markerfacecolor=COLOURS[pair.answer.outcome])  # fmt: skip
        _write(axes, line, eras.in_words(pair))
    axes.set_title(f"{TCPS[WITH]} minus {TCPS[WITHOUT]} at {speed} m/s", loc="left")
    _label_lines(axes, [eras.name(variant) for variant, _ in shares.gains])
    axes.set_xlabel("difference (kbit/s)", labelpad=1)


def _label_lines(axes: Axes, labels: list[str]) -> None:
    axes.set_yticks(range(len(labels)), labels, fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)


def _draw_interval(axes: Axes, line: int, low: float, high: float) -> None:
    axes.plot([low, high], [line, line], color=style.BLACK, linewidth=0.9, marker="|", markersize=4, markeredgewidth=0.9)


def _write(axes: Axes, line: int, text: str) -> None:
    """At the right of the panel."""
    axes.text(1.01, line, text, transform=axes.get_yaxis_transform(), fontsize=SMALL, va="center")


def _legend(shares: Shares) -> list[Patch]:
    outcomes = {pair.answer.outcome for pair in shares.pairs.values()}
    return [
        Patch(facecolor=style.GREY, edgecolor=style.BLACK, linewidth=0.5, label="mean"),
        *(
            Patch(facecolor=COLOURS[outcome], edgecolor=style.BLACK, linewidth=0.5, label=words,
                  hatch="//////" if outcome == Outcome.UNDECIDED else None)
            for outcome, words in WORDS.items() if outcome in outcomes
        ),
    ]  # fmt: skip


def _origin(out_dir: Path, rows: Sequence[Mapping[str, Any]], shares: Shares) -> str:
    """`hv-eras quick: 18 to 20 pairs per difference; 900 valid, 3 suspect`."""
    seeds = sorted({pair.seeds for pair in shares.pairs.values()}) or [0]
    verdicts = {kind: sum(standing(run) == kind for run in rows) for kind in ("valid", "suspect")}
    counted = ", ".join(f"{count} {kind}" for kind, count in verdicts.items() if count)
    pairs_each = f"{shared.span(seeds)} pair{'' if seeds == [1] else 's'} per difference"
    return f"{shared.experiment_of(out_dir)}: {pairs_each}; runs: {counted}"
