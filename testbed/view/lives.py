"""The packets at a station, waiting or being sent, from the air log; and the stations that are stalled.

A station is stalled if it has had a packet for a second, and has sent no frame in this time: others hold the medium, or its radio
stands still.
"""

from dataclasses import dataclass

import numpy as np

from testbed.view.frames import BROADCAST, DELIVER, DROP, ENQUEUE, TX, Frames

STALLED_NS = 1_000_000_000


@dataclass(frozen=True)
class Queue:
    """A station's number of packets, waiting or being sent, and whether it is stalled."""

    packets: int
    stalled: bool


class Lives:
    """The interval in which each packet waits at a station or is being sent: from `enqueue` to its last row."""

    def __init__(self, frames: Frames) -> None:
        rows = frames.rows
        entered = np.flatnonzero(rows["event"] == ENQUEUE)
        size = int(rows["packet"].max(initial=0)) + 1
        last_ns = np.zeros(size, dtype=np.int64)
        ends = rows["t_ns"] + np.where(rows["event"] == TX, rows["airtime_ns"], 0)
        np.maximum.at(last_ns, rows["packet"], ends)
        dropped = rows["packet"][rows["event"] == DROP]  # some as they came: never in the queue
        order = entered[np.argsort(rows["t_ns"][entered], kind="stable")]
        self.packet = rows["packet"][order]
        self.station, self.peer, self.bytes = (rows[name][order] for name in ("station", "peer", "bytes"))
        self.begin_ns, last_ns = rows["t_ns"][order], last_ns[self.packet]
        ended = (last_ns > self.begin_ns) | np.isin(self.packet, dropped)
        self.end_ns = np.where(ended, last_ns, np.iinfo(np.int64).max)  # the log ends with it in the queue
        sent_by, sent_ns = rows["station"][frames.sent], rows["t_ns"][frames.sent]
        self._sent_ns = [sent_ns[sent_by == number] for number in range(len(frames.stations))]

    def at(self, station: int, at_ns: int) -> list[tuple[int, int, int, int]]:
        """(packet, since when in ns, bytes, peer) of the station's packets at an instant, the oldest first."""
        until = int(np.searchsorted(self.begin_ns, at_ns, side="right"))
        here = np.flatnonzero((self.station[:until] == station) & (self.end_ns[:until] > at_ns))
        return [(int(self.packet[at]), int(self.begin_ns[at]), int(self.bytes[at]), int(self.peer[at])) for at in here[:200]]

    def queues(self, at_ns: int, names: tuple[str, ...]) -> dict[str, Queue]:
        """The queue of each station that has a packet at an instant."""
        until = int(np.searchsorted(self.begin_ns, at_ns, side="right"))
        here = np.flatnonzero(self.end_ns[:until] > at_ns)
        lengths = np.bincount(self.station[here], minlength=len(names))
        oldest = {int(self.station[at]): int(self.begin_ns[at]) for at in here[::-1]}
        return {
            names[number]: Queue(int(lengths[number]), self._is_stalled(number, since_ns, at_ns))
            for number, since_ns in sorted(oldest.items())
        }

    def _is_stalled(self, station: int, since_ns: int, at_ns: int) -> bool:
        if since_ns > at_ns - STALLED_NS:
            return False
        sent = self._sent_ns[station]
        return not np.searchsorted(sent, at_ns, side="right") - np.searchsorted(sent, at_ns - STALLED_NS)


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
