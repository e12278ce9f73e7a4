"""All TCPs during the same outage (shaded): a relay has no power for a while.

One panel per TCP, of its run with the first seed: data that left the source for the first time, again, or as a probe; data that
the source's TCP sent and its station's routing held (crosses); the ACKs that came back (line); notices of the broken route (ticks
above). In brackets: time from the return of the relay to the first data at the target. outage.csv has the numbers of every run:
the time of each retransmission (seconds after the outage began), the intervals between them, window and RTO before and after.
"""

import csv
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis.captures.rundir import RunDirectory
from analysis.drawing import style
from analysis.drawing.shared import in_order
from analysis.story.journeys import SENT
from analysis.story.outage import MERGED_S, Outage, outage_of
from analysis.story.story import AGAIN, FIRST, PROBE, Story, read_story
from record.errors import RecordError, RunFileError
from record.files import atomic_file
from record.found_runs import find_runs

BEFORE_S, AFTER_S = 1.5, 6.0  # of the time axis, around the outage
RUN_FILES = True  # it draws from them
PANEL_IN = 0.95
COLUMNS = (
    "variant", "seed", "sent_s", "intervals_s", "notices", "resumed_s", "cwnd_before", "cwnd_after", "rto_before_ms",
    "rto_after_ms",
)  # fmt: skip
_SENT = {FIRST: (style.BLACK, ".", "data"), AGAIN: (style.ORANGE, "s", "again"), PROBE: (style.PURPLE, "D", "probe")}


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`, and write outage.csv there; returns the files written."""
    outages = _outages(out_dir)
    if not outages:
        raise RunFileError(f"{out_dir}: no complete run; run the experiment first (`manet run tcp-outage`)")
    _write_table(out_dir / "outage.csv", outages)
    panels: dict[str, tuple[Story, Outage]] = {}
    for variant, _, story, outage in outages:
        panels.setdefault(variant, (story, outage))
    height = 0.8 + PANEL_IN * len(panels)
    with style.page(out_dir, "tcp_outage", height, 7.2, nrows=len(panels), sharex=True) as (axes, written):
        for one, (variant, (story, outage)) in zip(axes, panels.items(), strict=True):
            _draw_panel(one, variant, story, outage)
        axes[-1].set_xlabel("time since the relay lost its power (s)")
        entries = {name: handle for one in axes for handle, name in zip(*one.get_legend_handles_labels(), strict=True)}
        axes[0].figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=8)
    return written


def _outages(out_dir: Path) -> list[tuple[str, int, Story, Outage]]:
    """Outages of every complete run that was not put aside; in the experiment's order of variants, then of seeds."""
    outages = []
    for run_dir in find_runs(out_dir).runs:
        run = RunDirectory(run_dir)
        if run.run["status"] != "complete":
            continue
        try:
            story = read_story(run, run.flows[0])
        except RecordError:  # a flow that never began has nothing to show
            continue
        outages.append((run.run["variant"], run.run["seed"], story, outage_of(story)))
    order = in_order(out_dir, (variant for variant, *_ in outages))
    return sorted(outages, key=lambda run: (order.index(run[0]), run[1]))


def _draw_panel(axes: Axes, variant: str, story: Story, outage: Outage) -> None:
    """Times count from the outage's begin, segments from the last one acknowledged then."""
    zero_s, low, high = outage.begin_s, -BEFORE_S, outage.end_s - outage.begin_s + AFTER_S
    acks = sorted(
        (story.seconds(ack.journey.at_ns) - zero_s, ack.segment) for ack in story.acknowledgements if ack.journey.received
    )
    base = max((segment for at_s, segment in acks if at_s < 0), default=0)
    for kind, (colour, marker, name) in _SENT.items():
        sent = [(one.journey.left_ns, one.segment - base) for one in story.data if one.kind == kind]
        places = [(story.seconds(left_ns) - zero_s, segment) for left_ns, segment in sent if left_ns is not None]
        _points(axes, places, color=colour, marker=marker, markersize=3.5, label=name, zorder=3)
    for kind, held_s in held_by_routing(story, outage).items():
        places = [(at_s - zero_s, 1) for at_s in held_s]
        _points(
            axes, places, color=_SENT[kind][0], marker="x", markersize=4, label=f"{_SENT[kind][2]}, held by routing", zorder=4
        )
    if acks:
        highest = accumulate((segment - base for _, segment in acks), max)
        axes.step(
            [at_s for at_s, _ in acks], list(highest), where="post", color=style.GREEN, linewidth=0.8, label="ACKed", zorder=2
        )
    for place, at_s in enumerate(outage.notices_s):
        axes.axvline(at_s - zero_s, ymin=0.86, color=style.BLUE, linewidth=1, label="notice" if place == 0 else None)
    axes.axvspan(0, outage.end_s - zero_s, color="#e8e8e8", linewidth=0, zorder=0)
    axes.set_xlim(low, high)
    axes.set_ylim(-12, 40)
    resumed = "never" if outage.resumed_s is None else f"{outage.resumed_s:.2f} s"
    axes.set_title(f"{style.of_variant(variant).name} [{resumed}]", loc="left", fontsize=7.5, pad=2)
    axes.set_ylabel("segment", fontsize=7)


def held_by_routing(story: Story, outage: Outage) -> dict[str, list[float]]:
    """Packets that TCP retransmitted or sent as probes in the outage and that did not reach the radio then."""
    left = [story.seconds(one.journey.steps[0].t_ns) for one in story.data if one.journey.steps[0].kind == SENT]
    probes = [story.seconds(event.t_ns) for event in story.tcp_events if event.event == "probe"]
    held: dict[str, list[float]] = {AGAIN: [], PROBE: []}
    for at_s in outage.sent_s:
        if not _near(at_s, left):
            held[PROBE if _near(at_s, probes) else AGAIN].append(at_s)
    return held


def _near(at_s: float, times_s: list[float]) -> bool:
    return any(abs(one - at_s) <= MERGED_S for one in times_s)


def _points(axes: Axes, places: Sequence[tuple[float, float]], **options: Any) -> None:
    axes.plot(*zip(*places, strict=True) if places else ([], []), linestyle="", **options)


def _write_table(path: Path, outages: list[tuple[str, int, Story, Outage]]) -> None:
    with atomic_file(path) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for variant, seed, _, outage in outages:
            sent = " ".join(f"{at_s - outage.begin_s:.3f}" for at_s in outage.sent_s)
            intervals = " ".join(f"{interval:.3f}" for interval in outage.intervals_s)
            resumed = "" if outage.resumed_s is None else f"{outage.resumed_s:.3f}"
            windows = (outage.cwnd_before, outage.cwnd_after, outage.rto_before_ms, outage.rto_after_ms)
            table.writerow([variant, seed, sent, intervals, len(outage.notices_s), resumed, *windows])
