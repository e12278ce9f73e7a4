"""The packets at a station, waiting or being sent, from the air log; and the stations that are stalled.

A station is stalled if it has had a packet for a second, and has sent no frame in this time: others hold the medium, or its radio
stands still.
"""

from dataclasses import dataclass

import numpy as np

from testbed.view.frames import BROADCAST, DELIVER, DROP, ENQUEUE, TX, Frames, blocks, chosen, in_time

STALLED_NS = 1_000_000_000
EVERY = 1024  # packets: the latest end of each so many is kept


@dataclass(frozen=True)
class Queue:
    """A station's number of packets, waiting or being sent, and whether it is stalled."""

    packets: int
    stalled: bool


class Lives:
    """The interval in which each packet waits at a station or is being sent: from `enqueue` to its last row."""

    def __init__(self, frames: Frames) -> None:
        rows = frames.rows
        order, self.begin_ns = in_time(rows["t_ns"], chosen(rows["event"], ENQUEUE))
        size = int(rows["packet"].max(initial=0)) + 1
        last_ns, is_dropped = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool)
        for here in blocks(0, frames.count):
            event, packet = rows["event"][here], rows["packet"][here]
            ends = rows["t_ns"][here] + np.where(event == TX, rows["airtime_ns"][here], 0)
            np.maximum.at(last_ns, packet, ends)
            is_dropped[packet[event == DROP]] = True  # some as they came: never in the queue
        self._frames = frames
        self.packet = rows["packet"][order]
        self.station, self.peer, self.bytes = (rows[name][order] for name in ("station", "peer", "bytes"))
        last_ns = last_ns[self.packet]
        ended = (last_ns > self.begin_ns) | is_dropped[self.packet]
        self.end_ns = np.where(ended, last_ns, np.iinfo(np.int64).max)  # the log ends with it in the queue
        self._latest_ns = np.maximum.reduceat(self.end_ns, np.arange(0, len(order), EVERY)) if len(order) else self.end_ns

    def at(self, station: int, at_ns: int) -> list[tuple[int, int, int, int]]:
        """(packet, since when in ns, bytes, peer) of the station's packets at an instant, the oldest first."""
        held = self._held(at_ns)
        here = held[self.station[held] == station]
        return [(int(self.packet[at]), int(self.begin_ns[at]), int(self.bytes[at]), int(self.peer[at])) for at in here[:200]]

    def queues(self, at_ns: int, names: tuple[str, ...]) -> dict[str, Queue]:
        """The queue of each station that has a packet at an instant."""
        here = self._held(at_ns)
        lengths = np.bincount(self.station[here], minlength=len(names))
        oldest = {int(self.station[at]): int(self.begin_ns[at]) for at in here[::-1]}
        sending = self._frames.senders(at_ns - STALLED_NS, at_ns)
        return {
            names[number]: Queue(int(lengths[number]), since_ns <= at_ns - STALLED_NS and number not in sending)
            for number, since_ns in sorted(oldest.items())
        }

    def _held(self, at_ns: int) -> np.ndarray:
        """The places of the packets that are at a station at an instant, in the order in which they came."""
        until = int(np.searchsorted(self.begin_ns, at_ns, side="right"))
        parts = np.flatnonzero(self._latest_ns[: -(-until // EVERY)] > at_ns)
        places = (parts[:, None] * EVERY + np.arange(EVERY)).ravel()
        places = places[: np.searchsorted(places, until)]
        return places[self.end_ns[places] > at_ns]


class Waiting:
    """The waiting packets of a run under way, from the new rows of its log.

    A packet that was queued before the first row is not counted; after a gap in the rows, the count restarts.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._packets: dict[int, tuple[int, int]] = {}  # station and instant of `enqueue`
        self._sent_ns: dict[int, int] = {}

    def forget(self) -> None:
        """Rows were lost."""
        self._packets.clear()

    def take(self, frames: Frames) -> None:
        """New rows."""
        rows = frames.rows
        for t_ns, event, station, peer, packet in zip(
            *(rows[name].tolist() for name in ("t_ns", "event", "station", "peer", "packet")), strict=True
        ):
            if event == ENQUEUE:
                self._packets[packet] = station, t_ns
            elif event == TX:
                self._sent_ns[station] = t_ns
            if event in (DELIVER, DROP) or (event == TX and peer == BROADCAST):
                self._packets.pop(packet, None)

    def queues(self, at_ns: int) -> dict[str, Queue]:
        """The queue of each station that has a packet."""
        queues: dict[str, Queue] = {}
        for number, since_ns in self._packets.values():
            name = self._names[number]
            silent = max(since_ns, self._sent_ns.get(number, 0)) <= at_ns - STALLED_NS
            before = queues.get(name, Queue(0, False))
            queues[name] = Queue(before.packets + 1, before.stalled or silent)
        return queues
