"""The packets at a station, waiting or being sent, from the air log."""

import numpy as np

from testbed.view.frames import DROP, ENQUEUE, TX, Frames


class Lives:
    """From when to when each packet waits at a station or is being sent: from `enqueue` to its last row."""

    def __init__(self, frames: Frames) -> None:
        rows = frames.rows
        entered = np.flatnonzero(rows["event"] == ENQUEUE)
        size = int(rows["packet"].max(initial=0)) + 1
        last_ns = np.zeros(size, dtype=np.int64)
        ends = rows["t_ns"] + np.where(rows["event"] == TX, rows["airtime_ns"], 0)
        np.maximum.at(last_ns, rows["packet"], ends)
        refused = rows["packet"][(rows["event"] == DROP) & (rows["fate"] == 0)]  # queue-full: never in it
        order = entered[np.argsort(rows["t_ns"][entered], kind="stable")]
        self.packet = rows["packet"][order]
        self.station, self.peer, self.bytes = (rows[name][order] for name in ("station", "peer", "bytes"))
        self.begin_ns, self.end_ns = rows["t_ns"][order], last_ns[self.packet]
        self.end_ns = np.where(np.isin(self.packet, refused), self.begin_ns, self.end_ns)

    def at(self, station: int, at_ns: int) -> list[tuple[int, int, int, int]]:
        """(packet, since when in ns, bytes, peer) of the station's packets at an instant, the oldest first."""
        until = int(np.searchsorted(self.begin_ns, at_ns, side="right"))
        here = np.flatnonzero((self.station[:until] == station) & (self.end_ns[:until] > at_ns))
        return [(int(self.packet[at]), int(self.begin_ns[at]), int(self.bytes[at]), int(self.peer[at])) for at in here[:200]]
