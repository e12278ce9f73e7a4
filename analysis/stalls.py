"""When a TCP flow stood still: the times in which no acknowledgement that says anything new reached the source."""

from itertools import pairwise
from typing import NamedTuple

from analysis.errors import RunFileError
from analysis.rundir import RunDirectory
from analysis.story import Acknowledgement, Story, Transmission


class Stall(NamedTuple):
    """Seconds since the start of the traffic; `end_s` is the end of the traffic where nothing came any more."""

    begin_s: float
    end_s: float

    @property
    def lasts_s(self) -> float:
        """Duration, s."""
        return self.end_s - self.begin_s


def longest_stall(story: Story) -> Stall:
    """The first of the longest ones, from the flow's first packet on."""
    marks = [begin_s(story), *_news_s(story), traffic_end_s(story.run)]
    return max((Stall(*pair) for pair in pairwise(marks)), key=lambda stall: stall.lasts_s)


def begin_s(story: Story) -> float:
    """Time of the flow's first packet, seconds from the start of the traffic; a RunFileError if it sent none."""
    if not story.transmissions:
        raise RunFileError(f"{story.run.path}: {story.flow.name} sent nothing; did its ends ever meet?")
    return min(story.seconds(sent.journey.sent_ns) for sent in story.transmissions)


def traffic_end_s(run: RunDirectory) -> float:
    """End of the traffic, seconds from its start."""
    return run.scenario["warmup"] + run.scenario["duration"] + max(flow["start"] for flow in run.scenario["flows"])


def _news_s(story: Story) -> list[float]:
    """When an ACK of more than all before came in."""
    highest, found = -1, []
    end_s = traffic_end_s(story.run)
    for ack in sorted(story.acknowledgements, key=lambda ack: ack.journey.at_ns):
        at_s = story.seconds(ack.journey.at_ns)
        if ack.journey.received and ack.upto > highest and at_s < end_s:
            highest = ack.upto
            found.append(at_s)
    return found


def under_way_in(story: Story, stall: Stall) -> list[Transmission | Acknowledgement]:
    """What either end sent in a stall, or had under way when it began; in the order of time."""
    both = [*story.transmissions, *story.acknowledgements]
    chosen = [
        one
        for one in both
        if story.seconds(one.journey.sent_ns) < stall.end_s and story.seconds(one.journey.at_ns) > stall.begin_s
    ]
    return sorted(chosen, key=lambda one: one.journey.sent_ns)
