"""A flow over time, from its story: congestion window and slow-start threshold, and every packet, after Holland and Vaidya
(1999), figure 6: sent, received, acknowledged, dropped (station and reason), with the notices and actions of TCP's layers.

Times are seconds from the start of the traffic, as in the story. Shaded: stand-by, from its event to the repair. Dotted
verticals: the scenario's events. Dropped ACKs are drawn at the segment up to which they acknowledge.
"""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes

from analysis.captures.tcp_samples import held_from, with_gaps
from analysis.drawing import style
from analysis.story.journeys import NO_RECORD, Journey
from analysis.story.story import AGAIN, FIRST, PROBE, Acknowledgement, Story, Transmission, window_of
from record.errors import RunFileError

WINDOW, PACKETS, BOTH = "window", "packets", "story"
CONTENTS = (BOTH, WINDOW, PACKETS)
WIDTH_IN = 8.0
HEIGHT_IN = {WINDOW: 2.6, PACKETS: 4.4, BOTH: 6.4}
# Drops closer than this part of the axes share one text that names their stations.
NAME_APART = 0.045

_SENT = {FIRST: (style.BLACK, "o", "sent"), AGAIN: (style.ORANGE, "s", "sent again"), PROBE: (style.PURPLE, "D", "probe")}
_EVENTS = {  # event of tcp.csv: colour, marker, name
    "notice": (style.VERMILION, "v", "notice"),
    "timeout": (style.BLACK, "x", "time-out"),
    "repair": (style.GREEN, "^", "repair"),
    "window": (style.PURPLE, "s", "window set"),
}
_REASONS = {  # the most frequent have fixed markers; others take a spare one
    "no-route": (style.VERMILION, "X"),
    "retry-short": (style.BLUE, "X"),
    "retry-long": (style.BLACK, "P"),
    "queue-full": (style.GREEN, "X"),
    "codel": (style.PURPLE, "X"),
    "purged": (style.GREEN, "P"),
    "off": (style.GREY, "X"),
    NO_RECORD: (style.GREY, "*"),
}
_THIN = {"X": "x", "P": "+", "*": "1"}  # an ACK's marker instead of a segment's
_SPARE = [(style.ORANGE, "X"), (style.BLACK, "P"), (style.ORANGE, "P"), (style.BLACK, "X")]


def draw(
    story: Story, content: str, file: Path, begin_s: float | None = None, end_s: float | None = None, *, lead: str = "",
) -> list[Path]:  # fmt: skip
    """Draw `content` (of CONTENTS) into `file` (.png) and a PDF of the same name; returns both. Both times (s) bound the axis;
    `lead`: the title's first words."""
    if file.suffix != ".png":
        raise RunFileError(f"{file}: figures are written as .png (and as .pdf); give a name that ends in .png")
    span = window_of(story, begin_s, end_s)
    rows = 2 if content == BOTH else 1
    ratios = [1, 1.8] if content == BOTH else [1]
    with style.page(file.parent, file.stem, HEIGHT_IN[content], WIDTH_IN, nrows=rows, sharex=True, height_ratios=ratios) as drawn:
        axes, written = drawn
        axes[-1].set_xlim(*span)
        axes[-1].set_xlabel("time since the start of the traffic (s)")
        above = 12 if story.scenario_events else 3  # points over the upper panel, where the events' names are
        title = f"{lead}{story.flow.name}: {story.flow.source} to {story.flow.target}, {story.tcp}"
        axes[0].set_title(title, loc="left", pad=above)
        for one in axes:
            _draw_frame(one, story)
        _name_scenario_events(axes[0], story, span)
        if content != PACKETS:
            _draw_window(axes[0], story)
            _legend(axes[0], "outside upper center", set())
        if content != WINDOW:
            _draw_packets(axes[-1], story, span)
            _legend(axes[-1], "outside lower center", {"stand-by"} if content == BOTH else set())
    return written


def _legend(axes: Axes, place: Literal["outside upper center", "outside lower center"], listed: set[str]) -> None:
    """Place the legend outside the panels, without the entries that another legend has `listed`."""
    entries = {name: handle for handle, name in zip(*axes.get_legend_handles_labels(), strict=True) if name not in listed}
    axes.figure.legend(entries.values(), entries.keys(), loc=place, ncols=5 if len(entries) > 8 else 8, columnspacing=1.2,
                       handletextpad=0.5)  # fmt: skip


def _draw_frame(axes: Axes, story: Story) -> None:
    """Draw stand-by and scenario events, which both panels show."""
    for place, (begin_s, end_s) in enumerate(story.stand_bys_s):
        axes.axvspan(begin_s, end_s, color="#e4e4e4", linewidth=0, zorder=0, label="stand-by" if place == 0 else None)
    for event in story.scenario_events:
        axes.axvline(story.seconds(event.t_ns), color=style.BLACK, linewidth=0.7, linestyle=":", zorder=1)


def _name_scenario_events(axes: Axes, story: Story, span: tuple[float, float]) -> None:
    """Name the events above the panel; simultaneous events share one text."""
    texts: dict[float, list[str]] = {}
    for event in story.scenario_events:
        at_s = story.seconds(event.t_ns)
        near = next((place for place in texts if abs(place - at_s) < NAME_APART * (span[1] - span[0])), at_s)
        texts.setdefault(near, []).append(
            f"{event.node} {event.detail}" if event.event == "power" else f"{event.event} {event.node}"
        )
    for at_s, words in texts.items():
        if span[0] <= at_s <= span[1]:
            shown = words if len(words) < 3 else [words[0], f"and {len(words) - 1} more"]
            axes.annotate(", ".join(shown), (at_s, 1), xycoords=("data", "axes fraction"), xytext=(0, 2),
                          textcoords="offset points", fontsize=6.5, ha="center", va="bottom")  # fmt: skip


def _draw_window(axes: Axes, story: Story) -> None:
    windows = held_from(story.rows, "snd_cwnd")
    thresholds = with_gaps(held_from(story.rows, "ssthresh"))
    for held, colour, line, name in ((windows, style.BLUE, "-", "cwnd"), (thresholds, style.VERMILION, "--", "ssthresh")):
        axes.step([story.seconds(t_ns) for t_ns, _ in held], [value for _, value in held], where="post", color=colour,
                  linewidth=1.0, linestyle=line, label=name)  # fmt: skip
    axes.set_ylabel("segments")
    top = max([*(value for _, value in windows), *(value for _, value in thresholds if value == value), 2])
    axes.set_ylim(0, top * 1.25)
    for event, (colour, marker, name) in _EVENTS.items():
        at_s = [story.seconds(one.t_ns) for one in story.tcp_events if one.event == event]
        if at_s:
            axes.plot(
                at_s, [top * 1.15] * len(at_s), color=colour, marker=marker, linestyle="", markersize=4.5, label=name, zorder=5
            )
    probes = [story.seconds(one.t_ns) for one in story.tcp_events if one.event == "probe"]
    if probes:
        axes.plot(probes, [top * 0.06] * len(probes), color=style.PURPLE, marker="|", linestyle="", markersize=7, label="probe")


def _draw_packets(axes: Axes, story: Story, span: tuple[float, float]) -> None:
    """Draw data as points, and ACKs as the line below which everything is acknowledged."""
    data = [sent for sent in story.data if _within(story, sent.journey, span)]
    acks = [ack for ack in story.acknowledgements if _within(story, ack.journey, span)]
    for kind, (colour, marker, name) in _SENT.items():
        _points(axes, [(story.seconds(sent.journey.sent_ns), sent.segment) for sent in data if sent.kind == kind],
                color=colour, marker=marker, markersize=2.6 if kind == FIRST else 3.6, label=name, zorder=3)  # fmt: skip
    _points(axes, [(story.seconds(sent.journey.at_ns), sent.segment) for sent in data if sent.journey.received],
            color=style.SKY, marker=".", markersize=3.2, label="received", zorder=2)  # fmt: skip
    acked = sorted((story.seconds(ack.journey.at_ns), ack.segment) for ack in acks if ack.journey.received)
    highest = list(accumulate((segment for _, segment in acked), max))
    if acked:
        times = [at_s for at_s, _ in acked]
        axes.step(times, highest, where="post", color=style.GREEN, linewidth=0.9, label="ACKed", zorder=2)
    notices = [story.seconds(event.t_ns) for event in story.tcp_events if event.event == "notice"]
    for place, at_s in enumerate(notices):
        axes.axvline(at_s, ymin=0.94, color=style.VERMILION, linewidth=1.2, label="notice" if place == 0 else None)
    axes.set_ylabel("segment")
    shown = [sent.segment for sent in data if span[0] <= story.seconds(sent.journey.sent_ns) <= span[1]] or [0, 1]
    room = max(2, 0.06 * (max(shown) - min(shown)))
    axes.set_ylim(max(0, min(shown) - room), max(shown) + room)
    _draw_drops(axes, story, data, acks, span)


def _within(story: Story, journey: Journey, span: tuple[float, float]) -> bool:
    return story.seconds(journey.sent_ns) <= span[1] and story.seconds(journey.at_ns) >= span[0]


def _draw_drops(
    axes: Axes, story: Story, data: list[Transmission], acks: list[Acknowledgement], span: tuple[float, float]
) -> None:
    """Draw drops by reason: data thick, ACKs thin, with the stations' names at each cluster."""
    sent: list[Transmission | Acknowledgement] = [*data, *acks]
    lost = [packet for packet in sent if not packet.journey.received]
    reasons = sorted({packet.journey.fate for packet in lost}, key=lambda reason: (reason not in _REASONS, reason))
    spare = iter(_SPARE * 3)
    for reason in reasons:
        colour, thick = _REASONS.get(reason) or next(spare)
        name = reason if reason == NO_RECORD else f"dropped: {reason}"
        for of_data in (True, False):
            here = [packet for packet in lost if packet.journey.fate == reason and isinstance(packet, Transmission) == of_data]
            places = [(story.seconds(packet.journey.at_ns), packet.segment) for packet in here]
            thin = {"marker": _THIN[thick], "markersize": 4}
            options = {"marker": thick, "markersize": 5.5, "markeredgewidth": 0} if of_data else thin
            _points(axes, places, color=colour, label=name if of_data else f"ACK {name}", zorder=4, **options)
    _name_stations(axes, story, lost, span)


def _name_stations(axes: Axes, story: Story, lost: list[Transmission | Acknowledgement], span: tuple[float, float]) -> None:
    """Drops that are close together share one text, to their right."""
    wide, tall = NAME_APART * (span[1] - span[0]), 2 * NAME_APART * (axes.get_ylim()[1] - axes.get_ylim()[0])
    clusters: list[list[tuple[float, float, str]]] = []
    for packet in sorted(lost, key=lambda packet: packet.journey.at_ns):
        place = (story.seconds(packet.journey.at_ns), packet.segment, packet.journey.node)
        if not span[0] <= place[0] <= span[1]:
            continue
        near = (c for c in clusters if place[0] - c[0][0] < wide and abs(place[1] - c[0][1]) < tall)
        cluster = next(near, None)
        if cluster is None:
            clusters.append([place])
        else:
            cluster.append(place)
    for cluster in clusters:
        names = ", ".join(sorted({node for _, _, node in cluster}))
        axes.annotate(names, (max(x for x, _, _ in cluster), min(y for _, y, _ in cluster)), xytext=(5, -2), fontsize=6,
                      textcoords="offset points", color=style.GREY, va="top", annotation_clip=True, zorder=6)  # fmt: skip


def _points(axes: Axes, places: Sequence[tuple[float, float]], **options: Any) -> None:
    if places:
        axes.plot(*zip(*places, strict=True), linestyle="", **options)
