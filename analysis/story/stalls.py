"""Stalls of a TCP flow: the times in which no new acknowledgement reached the source."""

from itertools import pairwise
from typing import NamedTuple

from analysis.story.story import Acknowledgement, Story, Transmission
from record.errors import RunFileError


class Stall(NamedTuple):
    """Seconds from the start of the traffic; `end_s` is the end of the traffic if no ACK ended the stall."""

    begin_s: float
    end_s: float

    @property
    def lasts_s(self) -> float:
        """Duration, s."""
        return self.end_s - self.begin_s


def longest_stall(story: Story) -> Stall:
    """The longest stall after the flow's first packet; the first of several equal ones."""
    marks = [begin_s(story), *_new_acks_s(story), story.run.scenario.traffic_seconds()]
    return max((Stall(*pair) for pair in pairwise(marks)), key=lambda stall: stall.lasts_s)


def begin_s(story: Story) -> float:
    """Time of the flow's first packet, seconds from the start of the traffic; a RunFileError if it sent none."""
    if not story.transmissions:
        raise RunFileError(f"{story.run.path}: {story.flow.name} sent nothing; did its ends ever meet?")
    return min(story.seconds(sent.journey.sent_ns) for sent in story.transmissions)


def _new_acks_s(story: Story) -> list[float]:
    """Arrival times of ACKs that acknowledge more than all before, s."""
    highest, new_acks_s = -1, []
    end_s = story.run.scenario.traffic_seconds()
    for ack in sorted(story.acknowledgements, key=lambda ack: ack.journey.at_ns):
        at_s = story.seconds(ack.journey.at_ns)
        if ack.journey.received and ack.next_byte > highest and at_s < end_s:
            highest = ack.next_byte
            new_acks_s.append(at_s)
    return new_acks_s


def packets_during(story: Story, stall: Stall) -> list[Transmission | Acknowledgement]:
    """Packets of both ends that were sent or in flight during a stall, in order of time."""
    chosen = [
        packet
        for packet in story.packets
        if story.seconds(packet.journey.sent_ns) < stall.end_s and story.seconds(packet.journey.at_ns) > stall.begin_s
    ]
    return sorted(chosen, key=lambda packet: packet.journey.sent_ns)
