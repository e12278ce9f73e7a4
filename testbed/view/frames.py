"""The air log (formats/air.md) as columns, for windows of time and counts.

A log of some millions of rows is read once, in numbers: names are places in a list. The rows of frames on the air are kept in
order of their start, so that a window is a slice, and its answers look at no other row. What needs every row goes through them in
blocks, without memory for all. Bursts of jammers are kept apart: rows are counted without them.
"""

import io
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analysis.captures import air
from record.errors import RunFileError
from record.files import plain_file
from testbed.view.columns import Column, columns_of

EVENTS = ("tx", "enqueue", "deliver", "drop")
JAM = "jam"
FRAMES = ("rts", "cts", "data", "ack", "bcast", "ba", "bar")
FATES = ("", "delivered", "collision", "hidden", "weak", "error", "busy", "nav")  # of `tx` rows
DROPS = ("queue-full", "codel", "overlimit", "retry-short", "retry-long", "purged", "no-peer", "too-long", "off", "stopped")
BROADCAST, UNKNOWN = 65535, 65534
TX, ENQUEUE, DELIVER, DROP = range(4)
DELIVERED = FATES.index("delivered")
DATA = FRAMES.index("data")
BLOCK = 1 << 18  # rows: what is computed of them stays in the processor's cache
COLUMNS: dict[str, type[pl.DataType] | pl.DataType] = {
    "t_ns": pl.Int64,
    "station": pl.Categorical,
    "event": pl.Enum([*EVENTS, JAM]),
    "frame": pl.Enum(FRAMES),
    "peer": pl.Categorical,
    "packet": pl.UInt32,
    "attempt": pl.UInt32,
    "bytes": pl.UInt32,
    "rate_bps": pl.UInt32,
    "airtime_ns": pl.UInt32,
    "backoff_slots": pl.Int32,
    "fate": pl.Categorical,
    "receivers": pl.UInt32,
    "power_dbm": pl.Float32,
}
FURTHER: dict[str, type[pl.DataType] | pl.DataType] = {**air.FURTHER, "sinr_db": pl.Float32}
MAGIC, VERSION, THINNED = b"MNVF", 2, 1
# of the binary window, in order: name and type
LAYOUT = (
    ("row", "<u4"), ("t_ns", "<i8"), ("airtime_ns", "<u4"), ("station", "<u2"), ("peer", "<u2"), ("frame", "u1"), ("fate", "u1"),
    ("attempt", "u1"), ("flags", "u1"), ("bytes", "<u2"), ("packet", "<u4"), ("power_dbm", "<f4"), ("receivers", "<u2"),
    ("backoff_slots", "<u2"),
)  # fmt: skip
NO_BACKOFF = 65535
CAPTURED = 1  # flag: delivered although another frame was on the air at the receiver


@dataclass(frozen=True)
class Frames:
    """`rows`: every row of the log, a column of numbers each (`event`, `frame`, `fate` are places in EVENTS, FRAMES, FATES or, of
    drops, DROPS; stations places in `stations`; `mode`, `aggregate`, `category` places in `words`). `sent`: the rows of frames on
    the air, in order of their start; `starts`: these (ns). `words`: the texts of those columns of FURTHER that the log has, the
    last one None. `jams`: start and end (ns) of each jammer's bursts."""

    stations: tuple[str, ...]
    rows: dict[str, np.ndarray]
    sent: np.ndarray
    starts: np.ndarray
    words: dict[str, list[str | None]]
    jams: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def jamming(self, at_ns: int) -> list[str]:
        """The jammers that send at an instant."""
        last = {name: int(np.searchsorted(begin, at_ns, "right")) - 1 for name, (begin, _) in self.jams.items()}
        return [name for name, burst in last.items() if burst >= 0 and self.jams[name][1][burst] > at_ns]

    def last_data(self, station: int, until_ns: int) -> int | None:
        """The row of the last unicast data frame that a station began by an instant; None without one."""
        end = int(np.searchsorted(self.starts, until_ns, side="right"))
        for begin in range(end - BLOCK, -BLOCK, -BLOCK):
            rows = self.sent[max(0, begin) : begin + BLOCK]
            own = np.flatnonzero((self.rows["station"][rows] == station) & (self.rows["frame"][rows] == DATA))
            if len(own):
                return int(rows[own[-1]])
        return None

    def rates(self, station: int) -> list[dict[str, object]]:
        """The unicast data frames of a station by receiver and rate, as of `manet rates`: an A-MPDU counts each MPDU."""
        rows = self.sent[(self.rows["station"][self.sent] == station) & (self.rows["frame"][self.sent] == DATA)]
        mode = self.rows["mode"][rows] if "mode" in self.rows else np.zeros(len(rows), dtype=np.uint16)
        keys = np.stack([self.rows["peer"][rows].astype(np.int64), self.rows["rate_bps"][rows].astype(np.int64), mode], axis=1)
        found, place = np.unique(keys, axis=0, return_inverse=True)
        delivered = np.bincount(place.ravel(), self.rows["fate"][rows] == DELIVERED, len(found))
        counts = np.bincount(place.ravel(), minlength=len(found))
        names = self.words.get("mode")
        return [
            {"peer": self.name_of(int(peer)), "rate_bps": int(rate), "mode": names[code] if names else None,
             "frames": int(counts[at]), "delivered": int(delivered[at])}
            for at, (peer, rate, code) in enumerate(found)
        ]  # fmt: skip

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.rows["t_ns"])

    def between(self, begin_ns: int, end_ns: int) -> np.ndarray:
        """The rows of frames on the air at any instant of the window, in order of their start."""
        first = np.searchsorted(self.starts, begin_ns - self.longest_ns, side="left")
        last = np.searchsorted(self.starts, end_ns, side="right")
        rows = self.sent[first:last]
        return rows[self.starts[first:last] + self.rows["airtime_ns"][rows] >= begin_ns]

    def senders(self, begin_ns: int, end_ns: int) -> set[int]:
        """The stations that began a frame with begin <= t <= end."""
        first = np.searchsorted(self.starts, begin_ns, side="left")
        last = np.searchsorted(self.starts, end_ns, side="right")
        return set(np.unique(self.rows["station"][self.sent[first:last]]).tolist())

    @cached_property
    def _dropped(self) -> tuple[np.ndarray, np.ndarray]:
        """The times (ns) and the rows of drops, in order of time."""
        rows, times = in_time(self.rows["t_ns"], chosen(self.rows["event"], DROP))
        return times, rows

    def _dropped_between(self, begin_ns: int, end_ns: int) -> np.ndarray:
        """The rows of drops with begin <= t < end, in order of time."""
        times, rows = self._dropped
        return rows[slice(*np.searchsorted(times, [begin_ns, end_ns]))]

    @cached_property
    def longest_ns(self) -> int:
        """The longest time of a frame on the air."""
        return int(self.rows["airtime_ns"].max(initial=0))

    def thinned(self, begin_ns: int, end_ns: int, limit: int) -> tuple[np.ndarray, int]:
        """As between(), at most `limit` of them, every second, third, ..., and how many there are in all."""
        rows = self.between(begin_ns, end_ns)
        if len(rows) <= limit:
            return rows, len(rows)
        return rows[:: -(-len(rows) // limit)], len(rows)

    def packed(self, chosen: np.ndarray, *, thinned: bool = False) -> bytes:
        """The chosen rows as formats/view.md lays them out: a head, then columns, each at a multiple of 8 bytes."""
        parts = [struct.pack("<4sIII", MAGIC, VERSION, len(chosen), THINNED if thinned else 0)]
        for name, kind in LAYOUT:
            values = chosen if name == "row" else self._flags(chosen) if name == "flags" else self.rows[name][chosen]
            if name == "backoff_slots":
                values = np.where(values < 0, NO_BACKOFF, values)
            if name in ("attempt", "bytes", "receivers"):
                values = np.minimum(values, np.iinfo(kind).max)
            data = np.ascontiguousarray(values.astype(kind)).tobytes()
            parts.append(data + bytes(-len(data) % 8))
        return b"".join(parts)

    def _flags(self, chosen: np.ndarray) -> np.ndarray:
        """CAPTURED for a delivered frame during which another frame was on the air that its receiver senses too: here, one that
        begins or lasts within it and was lost to a collision or a hidden station at the same receiver."""
        flags = np.zeros(len(chosen), dtype=np.uint8)
        t, air, peer, fate = (self.rows[name][chosen] for name in ("t_ns", "airtime_ns", "peer", "fate"))
        lost = np.flatnonzero((fate == FATES.index("collision")) | (fate == FATES.index("hidden")))
        good, end = fate == DELIVERED, t + air
        firsts, lasts = np.searchsorted(t, t[lost] - self.longest_ns), np.searchsorted(t, end[lost])
        for at, first, last in zip(lost, firsts, lasts, strict=True):  # few within a window
            near = slice(first, last)
            overlaps = good[near] & (peer[near] == peer[at]) & (end[near] > t[at])
            flags[near] |= overlaps.astype(np.uint8)
        return flags

    def binned(self, begin_ns: int, end_ns: int, bins: int) -> dict[str, dict[str, list[int]]]:
        """Counts in `bins` equal parts of a window: `fates` of frames, also `retried` and `broadcast`, and `drops` by reason."""
        first, last = np.searchsorted(self.starts, [begin_ns, end_ns])
        sent, retried, broadcast = np.zeros((bins, len(FATES)), np.int64), np.zeros(bins, np.int64), np.zeros(bins, np.int64)

        def places(t: np.ndarray) -> np.ndarray:
            return (t - begin_ns) * bins // max(1, end_ns - begin_ns)

        for here in blocks(first, last):
            rows, place = self.sent[here], places(self.starts[here])
            sent += _table(place, self.rows["fate"][rows], sent.shape)
            retried += np.bincount(place[self.rows["attempt"][rows] > 1], minlength=bins)
            broadcast += np.bincount(place[self.rows["peer"][rows] == BROADCAST], minlength=bins)
        drops = self._dropped_between(begin_ns, end_ns)
        dropped = _table(places(self.rows["t_ns"][drops]), self.rows["fate"][drops], (bins, len(DROPS)))
        fates = {name: sent[:, code].tolist() for code, name in enumerate(FATES) if name}
        fates |= {"retried": retried.tolist(), "broadcast": broadcast.tolist()}
        return {
            "fates": fates,
            "drops": {name: dropped[:, code].tolist() for code, name in enumerate(DROPS) if dropped[:, code].any()},
        }

    def counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """For each station the numbers of frames by fate (`sent`), and of drops by reason (`drops`), of the whole log."""

        def counted(places: np.ndarray, names: Sequence[str]) -> dict[str, dict[str, int]]:
            table = np.zeros((len(self.stations), len(names)), dtype=np.int64)
            for here in blocks(0, len(places)):
                rows = places[here]
                table += _table(self.rows["station"][rows], self.rows["fate"][rows], table.shape)
            return {
                name: {names[code]: int(number) for code, number in enumerate(table[at]) if number}
                for at, name in enumerate(self.stations)
            }

        return {"sent": counted(self.sent, FATES), "drops": counted(self._dropped[1], DROPS)}

    def drops(self, begin_ns: int, end_ns: int, limit: int) -> np.ndarray:
        """The first rows of dropped packets with begin <= t < end, in order of time."""
        return self._dropped_between(begin_ns, end_ns)[:limit]

    def of_packet(self, packet: int) -> np.ndarray:
        """The rows of a packet, in order of time."""
        rows = np.flatnonzero(self.rows["packet"] == packet)
        return rows[np.argsort(self.rows["t_ns"][rows], kind="stable")]

    def as_text(self, row: int) -> dict[str, object]:
        """A row with the words of the log; None for an empty field."""
        return self.as_texts([row])[0]

    def as_texts(self, rows: Sequence[int] | np.ndarray) -> list[dict[str, object]]:
        """As as_text(), of each row."""
        columns = {"row": np.asarray(rows), **{name: column[rows] for name, column in self.rows.items()}}
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [self._as_text(dict(zip(columns, row, strict=True))) for row in values]

    def _as_text(self, value: dict[str, Any]) -> dict[str, object]:
        names = DROPS if value["event"] == DROP else FATES
        power = value["power_dbm"]
        return {
            "row": value["row"], "t_ns": str(value["t_ns"]), "station": self.stations[value["station"]],
            "event": EVENTS[value["event"]], "frame": FRAMES[value["frame"]], "peer": self.name_of(value["peer"]),
            "packet": value["packet"], "attempt": value["attempt"] or None, "bytes": value["bytes"],
            "airtime_ns": value["airtime_ns"] or None,
            "backoff_slots": slots if (slots := value["backoff_slots"]) >= 0 else None, "fate": names[value["fate"]] or None,
            "receivers": value["receivers"] if value["peer"] == BROADCAST else None,
            "power_dbm": None if math.isnan(power) else round(power, 1), "rate_bps": value["rate_bps"] or None,
            **{name: words[value[name]] for name, words in self.words.items()},
            **({"sinr_db": None if math.isnan(value["sinr_db"]) else round(value["sinr_db"], 1)} if "sinr_db" in value else {}),
        }  # fmt: skip

    def name_of(self, peer: int) -> str | None:
        """The name of a peer: `*` for broadcast, None for a MAC address that no station has."""
        if peer == BROADCAST:
            return "*"
        return None if peer == UNKNOWN else self.stations[peer]


def read_frames(path: Path, stations: Sequence[str]) -> Frames:
    """The air log at `path`. Raises RunFileError for a file that is none."""
    if not path.exists():
        raise RunFileError(f"{path}: no air log; did the medium start? see log/ of the run")
    try:
        with plain_file(path) as file:
            head = file.readline().decode().rstrip("\r\n").split(",")
            file.seek(0)
            if (columns := columns_of(file)) is not None and _has_known_words(columns):
                return _of_columns(columns, stations)
            names = [*COLUMNS, *(name for name in FURTHER if name in head)]
            table = pl.read_csv(file, columns=names, schema_overrides=COLUMNS | FURTHER, comment_prefix="#")
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as problem:
        raise RunFileError(f"{path}: not an air log (formats/air.md): {str(problem).splitlines()[0]}") from None
    return _of_columns(_columns_of_table(table), stations)


def no_frames() -> bytes:
    """The packed window of a run that has not begun."""
    return struct.pack("<4sIII", MAGIC, VERSION, 0, 0)


def parse_rows(text: bytes, stations: Sequence[str], head: Sequence[str] = (*air.SCHEMA, *air.OPTIONAL)) -> Frames:
    """The rows of `text`, whole lines of an air log, with the columns of `head`."""
    columns = [*COLUMNS, *(name for name in FURTHER if name in head)]
    table = pl.read_csv(
        io.BytesIO(f"{','.join(head)}\n".encode() + text), columns=columns, schema_overrides=COLUMNS | FURTHER,
        truncate_ragged_lines=True, comment_prefix="#",
    )  # fmt: skip
    return _of_columns(_columns_of_table(table), stations)


def _has_known_words(columns: Mapping[str, Column]) -> bool:
    """Whether all events and kinds of frames are those of this version. If not, the general reader names the unknown one."""
    events, frames = columns["event"].texts or (), columns["frame"].texts or ()
    return set(events) <= {*EVENTS, JAM} and set(frames) <= {*FRAMES, ""}


def _columns_of_table(table: pl.DataFrame) -> dict[str, Column]:
    """The columns of a table that polars has read."""
    none = {"backoff_slots": -1, "power_dbm": float("nan"), "sinr_db": float("nan")}
    kinds = {"attempt": np.uint16, "bytes": np.uint16, "receivers": np.uint16, "backoff_slots": np.int32}

    def column(values: pl.Series) -> Column:
        if not isinstance(values.dtype, pl.Categorical | pl.Enum):
            numbers = values.fill_null(none.get(values.name, 0)).to_numpy()
            return Column(numbers.astype(kinds.get(values.name, numbers.dtype), copy=False))
        distinct = values.unique().drop_nulls()
        physical = distinct.to_physical().to_numpy()
        texts = [""] * (int(physical.max(initial=0)) + 2)  # the last one of an empty field
        for place, text in zip(physical, distinct.cast(pl.String), strict=True):
            texts[place] = text
        return Column(values.to_physical().fill_null(len(texts) - 1).to_numpy(), texts)

    return {name: column(table[name]) for name in table.columns}


def _of_columns(columns: Mapping[str, Column], stations: Sequence[str]) -> Frames:
    columns, jams = _without_jams(columns)
    places = {name: at for at, name in enumerate(stations)}
    fates = {name: code for names in (FATES, DROPS) for code, name in enumerate(names)}
    known: dict[str, tuple[Mapping[str, int], int, type[np.unsignedinteger]]] = {  # codes, that of another text, type
        "station": (places, UNKNOWN, np.uint16), "peer": ({**places, "*": BROADCAST}, UNKNOWN, np.uint16),
        "event": ({name: code for code, name in enumerate(EVENTS)}, 0, np.uint8),
        "frame": ({name: code for code, name in enumerate(FRAMES)}, 0, np.uint8), "fate": (fates, 0, np.uint8),
    }  # fmt: skip
    words: dict[str, list[str | None]] = {}
    for name in ("mode", "aggregate", "category"):
        if name in columns:
            texts = sorted({text for text in columns[name].texts or () if text})
            known[name] = {text: code for code, text in enumerate(texts)}, len(texts), np.uint16
            words[name] = [*texts, None]
    rows = {
        name: _recoded(columns[name], *known[name]) if name in known else columns[name].numbers
        for name in (*COLUMNS, *FURTHER) if name in columns
    }  # fmt: skip
    sent, starts = in_time(rows["t_ns"], chosen(rows["event"], TX))
    return Frames(tuple(stations), rows, sent, starts, words, jams)


def chosen(events: np.ndarray, event: int) -> np.ndarray:
    """The rows of an event, in the order of the log."""
    parts = [here.start + np.flatnonzero(events[here] == event) for here in blocks(0, len(events))]
    return np.concatenate([np.zeros(0, np.uint32), *(part.astype(np.uint32) for part in parts)])


def in_time(t_ns: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows in order of time, and their times."""
    times = t_ns[rows]
    if not (times[1:] < times[:-1]).any():  # as in the log, most often
        return rows, times
    order = np.argsort(times, kind="stable")
    return rows[order], times[order]


def _without_jams(
    columns: Mapping[str, Column],
) -> tuple[Mapping[str, Column], dict[str, tuple[np.ndarray, np.ndarray]]]:
    """The rows that are no bursts of jammers, and start and end of each jammer's bursts."""
    events, names = columns["event"].texts or [], columns["station"].texts or []
    if JAM not in events:
        return columns, {}
    is_burst = columns["event"].numbers == events.index(JAM)
    begin_ns, station = (columns[name].numbers[is_burst] for name in ("t_ns", "station"))
    end_ns, order = begin_ns + columns["airtime_ns"].numbers[is_burst], np.argsort(begin_ns, kind="stable")
    jams = {}
    for place in dict.fromkeys(station[order].tolist()):
        own = order[station[order] == place]
        jams[names[place]] = begin_ns[own], end_ns[own]
    return {name: Column(column.numbers[~is_burst], column.texts) for name, column in columns.items()}, jams


def _recoded(column: Column, codes: Mapping[str, int], otherwise: int, kind: type[np.unsignedinteger]) -> np.ndarray:
    """The code of each row's text, `otherwise` of another one; in the column's own memory, if that is possible."""
    table = np.array([codes.get(text, otherwise) for text in column.texts or [""]], dtype=kind)
    own = column.numbers.dtype == kind and column.numbers.flags.writeable
    found = column.numbers if own else np.empty(len(column.numbers), kind)
    for here in blocks(0, len(found)):
        found[here] = table[column.numbers[here]]
    return found


def blocks(first: int, last: int) -> Iterator[slice]:
    """The places from `first` to before `last` in parts of BLOCK."""
    return (slice(begin, min(begin + BLOCK, last)) for begin in range(first, last, BLOCK))


def _table(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """How often each row and column of a table of this shape is met."""
    index = row.astype(np.int64) * shape[1] + column
    return np.bincount(index, minlength=shape[0] * shape[1])[: shape[0] * shape[1]].reshape(shape)
