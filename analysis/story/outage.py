"""TCP during and after an outage of a station on its path: figures from a flow's story.

The outage lasts from the scenario's first event `power off` to the `power on` of the same station. A retransmission counts at the
time at which TCP sent it: captured at the station, received by its routing without a route, or reported by the TCP itself (events
`timeout` and `probe` of tcp.csv); reports within MERGED_S count once. Time-outs in a stand-by do not count.
"""

from dataclasses import dataclass
from itertools import pairwise

from analysis.story.story import FIRST, Story
from record.errors import RunFileError

MERGED_S = 0.05  # an event and the packet it is about: milliseconds apart, tens of them on a loaded host


@dataclass(frozen=True)
class Outage:
    """Times in seconds from the start of the traffic."""

    begin_s: float
    end_s: float
    station: str
    sent_s: list[float]  # retransmissions and probes during the outage
    notices_s: list[float]
    first_data_s: float | None  # time at which data first reached the target after it; None: never
    cwnd_before: int | None  # segments, at the last ACK before the outage
    cwnd_after: int | None  # once the first ACK after it was processed
    rto_before_ms: float | None
    rto_after_ms: float | None

    @property
    def intervals_s(self) -> list[float]:
        """Times between consecutive retransmissions, s."""
        return [later - earlier for earlier, later in pairwise(self.sent_s)]

    @property
    def resumed_s(self) -> float | None:
        """Seconds from the station's return to the first data at the target; None: no data."""
        return None if self.first_data_s is None else self.first_data_s - self.end_s


def outage_of(story: Story) -> Outage:
    """The story's first outage; a RunFileError if the scenario has none."""
    begin_s, end_s, station = _span(story)
    arrived = [story.seconds(sent.journey.at_ns) for sent in story.data if sent.journey.received]
    cwnd_before, rto_before_ms, cwnd_after, rto_after_ms = _states(story, begin_s, end_s)
    return Outage(
        begin_s, end_s, station,
        sent_s=retransmissions_s(story, begin_s, end_s),
        notices_s=[at_s for at_s in _events(story, "notice") if begin_s <= at_s < end_s],
        first_data_s=min((at_s for at_s in arrived if at_s >= end_s), default=None),
        cwnd_before=cwnd_before, cwnd_after=cwnd_after, rto_before_ms=rto_before_ms, rto_after_ms=rto_after_ms,
    )  # fmt: skip


def retransmissions_s(story: Story, begin_s: float, end_s: float) -> list[float]:
    """Times at which TCP retransmitted a segment or sent a probe, in [begin, end)."""
    frozen = story.stand_bys_s
    left = [story.seconds(sent.journey.sent_ns) for sent in story.data if sent.kind != FIRST and sent.journey.time_known]
    timeouts = [at_s for at_s in _events(story, "timeout") if not any(low < at_s < high for low, high in frozen)]
    merged: list[float] = []
    for at_s in sorted([*left, *timeouts, *_events(story, "probe")]):
        if begin_s <= at_s < end_s and (not merged or at_s - merged[-1] > MERGED_S):
            merged.append(at_s)
    return merged


def _span(story: Story) -> tuple[float, float, str]:
    switched = [event for event in story.scenario_events if event.event == "power"]
    off = next((event for event in switched if event.detail == "off"), None)
    on = next((event for event in switched if off and event.node == off.node and event.t_ns > off.t_ns), None)
    if off is None or on is None:
        raise RunFileError(f"{story.run.path / 'events.csv'}: no station is switched off and on again; there is no outage")
    return story.seconds(off.t_ns), story.seconds(on.t_ns), off.node


def _events(story: Story, name: str) -> list[float]:
    return [story.seconds(event.t_ns) for event in story.tcp_events if event.event == name]


def _states(story: Story, begin_s: float, end_s: float) -> tuple[int | None, float | None, int | None, float | None]:
    """Window (segments) and RTO (ms) before the outage, and both after it. A sample is the state before its ACK is processed."""
    columns = ("t_ns", "snd_una", "snd_cwnd", "rto_us")
    rows = [(story.seconds(t_ns), *values) for t_ns, *values in story.samples.select(columns).drop_nulls().iter_rows()]
    before = [(cwnd, rto_us / 1e3) for at_s, _, cwnd, rto_us in rows if at_s < begin_s]
    later = [row for row in rows if row[0] >= end_s]
    after = [(cwnd, rto_us / 1e3) for _, una, cwnd, rto_us in later if una != later[0][1]]
    return *(before[-1] if before else (None, None)), *(after[0] if after else (None, None))
