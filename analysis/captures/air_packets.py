"""Captured frames matched with packets of the air log, and the history of a packet on the air.

A station's TAP keeps the order of frames. So sent frames of one size to one neighbour match the log's `enqueue` rows in order,
and received frames from one neighbour match its `deliver` rows. An `enqueue` row is later than its frame, a `deliver` row
earlier; a row in the wrong order, or a second away, has no match. A host's immediate answer enters the medium at the instant of
the frame that caused it (docs/verdict.md). This is earlier than the capture by the medium's lateness.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from analysis.captures.air import MATCH_TOLERANCE_NS
from record.run import Captured

# Largest apparent reversal of capture and medium: both read the clock of one host, at different instants.
EARLY_NS = 5_000_000
_ARP_BYTES = 28
_MATCHED_AT_ONCE = 4096
OUT, IN = "out", "in"


class Attempt(NamedTuple):
    """A frame on the air for a packet: RTS or the data frame itself."""

    t_ns: int
    frame: str
    number: int
    fate: str
    rate_bps: int | None = None
    mode: str | None = None  # name of the MCS, of a radio with one
    aggregate: str | None = None  # place and number in its A-MPDU, "2/28"
    sinr_db: float | None = None  # lowest over the MPDU, of reception by SINR

    @property
    def rate(self) -> str | None:
        """`ht-mcs7-20`, or `54 Mbit/s`; None if the log does not say."""
        return self.mode or (None if self.rate_bps is None else f"{self.rate_bps / 1e6:g} Mbit/s")


@dataclass(slots=True, eq=False)
class AirPacket:
    """One packet from a station's queue to its end; times are CLOCK_REALTIME. Read from the columns of the log when asked for."""

    number: int
    _log: "AirPackets"
    _place: int

    @property
    def station(self) -> str:
        """The station in whose queue it was."""
        return self._log.stations.of(self._place)

    @property
    def peer(self) -> str:
        """The station that it was for."""
        return self._log.peers.of(self._place)

    @property
    def queued_ns(self) -> int:
        """Time at which it entered the queue."""
        return int(self._log.queued_ns[self._place])

    @property
    def attempts(self) -> list[Attempt]:
        """Every frame sent for it, in order of time."""
        tried, here = self._log.tried, self._log.tried.rows_of(self._place)
        columns = tried.t_ns[here].tolist(), tried.frames.within(here), tried.attempts[here].to_list(), tried.fates.within(here)
        return [Attempt(*each) for each in zip(*columns, *tried.radio(here), strict=True)]

    @property
    def has_own_rate(self) -> bool:
        """Whether the rates of frames are worth telling: those of MCS, or several."""
        return self._log.rates_differ

    @property
    def fates(self) -> list[str]:
        """The fates of `attempts`."""
        return self._log.tried.fates.within(self._log.tried.rows_of(self._place))

    @property
    def delivered(self) -> list[tuple[int, str]]:
        """When and to whom."""
        deliveries, here = self._log.delivered, self._log.delivered.rows_of(self._place)
        return list(zip(deliveries.t_ns[here].tolist(), deliveries.stations.within(here), strict=True))

    @property
    def dropped(self) -> tuple[int, str, str] | None:
        """When, by which station and why: of the last drop."""
        drops, here = self._log.dropped, self._log.dropped.rows_of(self._place)
        last = here.stop - 1
        return (int(drops.t_ns[last]), drops.stations.of(last), drops.fates.of(last)) if last >= here.start else None

    @property
    def power_dbm(self) -> float | None:
        """Of its last reception; None if the log does not say."""
        here = self._log.delivered.rows_of(self._place)
        power: float | None = self._log.delivered.power_dbm[here.stop - 1] if here.stop > here.start else None
        return power


class PairedCaptures:
    """Captured frames with the numbers of their packets in the air log."""

    def __init__(self, all_captured: Iterable[Captured], log: pl.DataFrame, epoch_ns: int, late_ns: int) -> None:
        """`log`: as analysis.captures.air.read_packet_rows gives it; `late_ns`: the medium's maximum lateness."""
        self._names = {entry.mac: entry.node for entry in all_captured if entry.radio}
        self._log, self._epoch_ns, self._late_ns = log, epoch_ns, late_ns

    def frames(self, captured: Captured, packets: pl.DataFrame, chosen: pl.Expr) -> pl.DataFrame:
        """The capture with `direction` (out: the node sent it, in: it was sent to the node, else null) and, of the frames
        `chosen`, `air_packet` (or null)."""
        sent, received = pl.col("eth_src") == captured.mac, pl.col("eth_dst") == captured.mac
        packets = packets.with_columns(direction=pl.when(sent).then(pl.lit(OUT)).when(received).then(pl.lit(IN)).otherwise(None))
        own = packets.filter(chosen)
        if not captured.radio or own.is_empty():
            return packets.with_columns(air_packet=pl.lit(None, dtype=pl.Int64))
        numbers = np.zeros(len(packets), dtype=np.int64)
        for direction in (OUT, IN):
            self._number(captured.node, packets, own, direction, numbers)
        return packets.with_columns(air_packet=pl.Series(numbers).replace(0, None))

    def _number(self, station: str, packets: pl.DataFrame, own: pl.DataFrame, direction: str, numbers: np.ndarray) -> None:
        """Fill in the numbers of the frames of this direction that are like `own`: as long, and of the same neighbour."""
        out = direction == OUT
        mac = "eth_dst" if out else "eth_src"
        size = pl.when(pl.col("protocol") == "arp").then(_ARP_BYTES).otherwise(pl.col("ip_bytes"))
        alike = own.filter(pl.col("direction") == direction).select(mac, size=size).unique()
        earliest, latest = (-EARLY_NS - self._late_ns, MATCH_TOLERANCE_NS) if out else (-MATCH_TOLERANCE_NS, EARLY_NS)
        if alike.is_empty():
            return
        log = self._queued.filter((pl.col("station") == station) & (pl.col("event") == ("enqueue" if out else "deliver")))
        for neighbour, octets in alike.iter_rows():
            if neighbour not in self._names:
                continue
            like = (pl.col("direction") == direction) & (pl.col(mac) == neighbour) & (size == octets)
            rows = packets.select(pl.arg_where(like)).to_series().to_numpy()
            waiting = log.filter((pl.col("peer") == self._names[neighbour]) & (pl.col("bytes") == octets))
            times_ns, queued_ns = packets["t_ns"].to_numpy()[rows], waiting["t_ns"].to_numpy() + self._epoch_ns
            frame, packet = _in_step(times_ns, queued_ns, earliest, latest)
            numbers[rows[frame]] = waiting["packet"].to_numpy()[packet]

    @cached_property
    def _queued(self) -> pl.DataFrame:
        """Rows of unicast packets that entered a queue or were delivered, in order of time."""
        rows = self._log.filter(pl.col("event").is_in(["enqueue", "deliver"]) & (pl.col("frame") == "data"))
        return rows.select("t_ns", "station", "event", "peer", "bytes", "packet").sort("t_ns", maintain_order=True)


def _in_step(times_ns: np.ndarray, queued_ns: np.ndarray, earliest: int, latest: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of frames and of rows that match, both in order. `earliest`, `latest`: limits of a row's time minus its frame's.
    A row below `earliest` has no frame; a frame whose next row is above `latest` has no row."""
    frames: list[np.ndarray] = []
    rows: list[np.ndarray] = []
    frame = row = 0
    while (count := min(len(times_ns) - frame, len(queued_ns) - row, _MATCHED_AT_ONCE)) > 0:
        apart_ns = queued_ns[row : row + count] - times_ns[frame : frame + count]
        wrong = (apart_ns < earliest) | (apart_ns > latest)
        good = int(wrong.argmax()) if wrong.any() else count
        frames.append(np.arange(frame, frame + good))
        rows.append(np.arange(row, row + good))
        frame, row = frame + good, row + good
        if good < count:
            too_early = bool(apart_ns[good] < earliest)  # the capture has lost its frame
            frame, row = frame + (not too_early), row + too_early
    none = np.empty(0, dtype=np.int64)
    return np.concatenate([none, *frames]), np.concatenate([none, *rows])


class AirPackets:
    """The log's history of some packets. CTS and ACK have no number: a lost one is a retry of the packet it answered."""

    def __init__(self, log: pl.DataFrame, epoch_ns: int, numbers: pl.Series) -> None:
        chosen = log.filter(pl.col("packet").is_in(numbers.drop_nulls().unique().cast(pl.UInt32).implode()))
        rows = chosen.sort("packet", "t_ns", maintain_order=True).with_columns(pl.col("t_ns") + epoch_ns)
        queued = rows.filter(pl.col("event") == "enqueue").unique("packet", keep="last", maintain_order=True)
        self._numbers = queued["packet"].to_numpy()
        self.queued_ns = queued["t_ns"].to_numpy()
        self.stations, self.peers = _Names(queued["station"]), _Names(queued["peer"])
        data = rows.filter((pl.col("event") == "tx") & (pl.col("frame") == "data"))
        self.rates_differ = "mode" in rows.columns or data["rate_bps"].n_unique() > 1
        self.tried, self.delivered, self.dropped = (
            _Group(rows.filter(pl.col("event") == event), self._numbers) for event in ("tx", "deliver", "drop")
        )

    def places_of(self, numbers: pl.Series) -> pl.Series:
        """For each number the place of the packet among these; null if the log lacks its beginning."""
        known = pl.DataFrame({"number": self._numbers.astype(np.int64), "place": np.arange(len(self._numbers))})
        asked = pl.DataFrame({"number": numbers.cast(pl.Int64)})
        return asked.join(known, on="number", how="left", maintain_order="left")["place"]

    def at(self, place: int) -> AirPacket:
        """The packet at this place."""
        return AirPacket(int(self._numbers[place]), self, place)

    def ended(self) -> pl.DataFrame:
        """`place` of those that were dropped or delivered, and whether they were `lost`, `arrived`."""
        ends = (self.dropped.counts > 0, self.delivered.counts > 0)
        frame = pl.DataFrame({"place": np.arange(len(self._numbers)), "lost": ends[0], "arrived": ends[1]})
        return frame.filter(pl.col("lost") | pl.col("arrived"))


class _Names:
    """A column of few different texts."""

    def __init__(self, column: pl.Series) -> None:
        different = column.unique().drop_nulls()
        physical = different.to_physical().to_list()
        self._names: list[Any] = [None] * (max(physical, default=-1) + 2)  # the last one of an empty field
        for code, name in zip(physical, different.cast(pl.String), strict=True):
            self._names[code] = name
        self._codes = column.to_physical().fill_null(len(self._names) - 1).to_numpy()

    def of(self, row: int) -> str:
        return self._names[self._codes[row]]

    def within(self, rows: slice) -> list[str]:
        return [self._names[code] for code in self._codes[rows].tolist()]


class _Group:
    """Rows of one event in the order of their packets; those of packet `numbers[i]` are `rows_of(i)`."""

    def __init__(self, rows: pl.DataFrame, numbers: np.ndarray) -> None:
        packets = rows["packet"].to_numpy()
        self._begins, self._ends = (np.searchsorted(packets, numbers, side) for side in ("left", "right"))
        self.t_ns, self.attempts, self.power_dbm = rows["t_ns"].to_numpy(), rows["attempt"], rows["power_dbm"]
        self.stations, self.frames, self.fates = (_Names(rows[name]) for name in ("station", "frame", "fate"))
        self._rates = rows["rate_bps"]
        self._modes, self._aggregates = (_Names(rows[name]) if name in rows.columns else None for name in ("mode", "aggregate"))
        self._sinr_db = rows["sinr_db"] if "sinr_db" in rows.columns else None

    def radio(self, rows: slice) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Rate, mode, aggregate and SINR of each row; None where the log does not say."""
        none = [None] * (rows.stop - rows.start)
        modes, aggregates = (none if names is None else names.within(rows) for names in (self._modes, self._aggregates))
        return self._rates[rows].to_list(), modes, aggregates, none if self._sinr_db is None else self._sinr_db[rows].to_list()

    @property
    def counts(self) -> np.ndarray:
        return self._ends - self._begins

    def rows_of(self, place: int) -> slice:
        return slice(int(self._begins[place]), int(self._ends[place]))
