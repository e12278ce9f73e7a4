"""All TCPs under one and the same outage (shaded): a relay has no power for a while.

A panel a TCP, of its run with the first seed: data as it left the source for the first time, again, or as a probe; what the
source's TCP sent and its routing held (crosses, told by tcp.csv); the ACKs that came back (line); notices of the broken route
(ticks above). In brackets: data reached the target that long after the relay was there again. outage.csv has the numbers of every
run: when each retransmission was sent (seconds after the outage began), their intervals, window and RTO before and after.
"""

import csv
import json
from itertools import accumulate
from pathlib import Path

from matplotlib.axes import Axes

from analysis import style
from analysis.errors import AnalysisError, RunFileError
from analysis.outage import MERGED_S, Outage, outage_of
from analysis.rundir import RunDirectory
from analysis.story import AGAIN, FIRST, PROBE, Story, read_story

BEFORE_S, AFTER_S = 1.5, 6.0  # of the time axis, around the outage
PANEL_IN = 0.95
COLUMNS = (
    "variant",
    "seed",
    "sent_s",
    "intervals_s",
    "notices",
    "resumed_s",
    "cwnd_before",
    "cwnd_after",
    "rto_before_ms",
    "rto_after_ms",
)
_SENT = {FIRST: (style.BLACK, ".", "data"), AGAIN: (style.ORANGE, "s", "again"), PROBE: (style.PURPLE, "D", "probe")}


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`, and write outage.csv there; returns the files written."""
    out_dir = Path(out_dir)
    found = _outages(out_dir)
    if not found:
        raise RunFileError(f"{out_dir}: no complete run; run the experiment first (`manet run tcp-outage`)")
    _write_table(out_dir / "outage.csv", found)
    panels: dict[str, tuple[Story, Outage]] = {}
    for variant, _, story, outage in found:
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
    """Of every complete run that is not put aside; in the experiment's order of variants, then of seeds."""
    found = []
    for path in out_dir.rglob("run.json"):
        run = RunDirectory(path.parent)
        if "void" in path.relative_to(out_dir).parts or run.run["status"] != "complete":
            continue
        try:
            story = read_story(run, run.flows[0])
        except AnalysisError:  # a flow that never began has nothing to show
            continue
        found.append((run.run["variant"], run.run["seed"], story, outage_of(story)))
    description = out_dir / "experiment.json"
    order = json.loads(description.read_text())["variants"] if description.exists() else []
    return sorted(found, key=lambda run: (order.index(run[0]) if run[0] in order else len(order), run[0], run[1]))


def _draw_panel(axes: Axes, variant: str, story: Story, outage: Outage) -> None:
    """Times count from the outage's begin, segments from the last one acknowledged then."""
    zero_s, low, high = outage.begin_s, -BEFORE_S, outage.end_s - outage.begin_s + AFTER_S
    acks = sorted(
        (story.seconds(ack.journey.at_ns) - zero_s, ack.segment) for ack in story.acknowledgements if ack.journey.received
    )
    base = max((segment for at_s, segment in acks if at_s < 0), default=0)
    for kind, (colour, marker, name) in _SENT.items():
        sent = [
            (story.seconds(one.journey.sent_ns) - zero_s, one.segment - base)
            for one in story.data
            if one.kind == kind and one.journey.captured
        ]
        axes.plot(*zip(*sent, strict=True) if sent else ([], []), color=colour, marker=marker, linestyle="", label=name,
                  markersize=3.5, zorder=3)  # fmt: skip
    held = [at_s - zero_s for at_s in outage.sent_s if not _left(story, at_s)]
    axes.plot(
        held,
        [1] * len(held),
        color=style.VERMILION,
        marker="x",
        linestyle="",
        markersize=4,
        label="sent, held by routing",
        zorder=4,
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
    axes.set_title(f"{style.look(variant).name} [{resumed}]", loc="left", fontsize=7.5, pad=2)
    axes.set_ylabel("segment", fontsize=7)


def _left(story: Story, at_s: float) -> bool:
    """Whether a packet was seen leaving then."""
    return any(abs(story.seconds(one.journey.sent_ns) - at_s) <= MERGED_S and one.journey.captured for one in story.data)


def _write_table(path: Path, found: list[tuple[str, int, Story, Outage]]) -> None:
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for variant, seed, _, outage in found:
            sent = " ".join(f"{at_s - outage.begin_s:.3f}" for at_s in outage.sent_s)
            intervals = " ".join(f"{interval:.3f}" for interval in outage.intervals_s)
            resumed = "" if outage.resumed_s is None else f"{outage.resumed_s:.3f}"
            windows = (outage.cwnd_before, outage.cwnd_after, outage.rto_before_ms, outage.rto_after_ms)
            table.writerow([variant, seed, sent, intervals, len(outage.notices_s), resumed, *windows])
