"""The air log (formats/air.md) as columns, for windows of time and counts.

A log of some millions of rows is read once, in numbers: names are places in a list. The rows of frames on the air are kept in
order of their start, so that a window is a slice. Bursts of jammers are kept apart: rows are counted without them.
"""

import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from analysis.captures import air
from record.errors import RunFileError
from record.files import plain_file

EVENTS = ("tx", "enqueue", "deliver", "drop")
JAM = "jam"
FRAMES = ("rts", "cts", "data", "ack", "bcast", "ba", "bar")
FATES = ("", "delivered", "collision", "hidden", "weak", "error", "busy", "nav")  # of `tx` rows
DROPS = ("queue-full", "codel", "overlimit", "retry-short", "retry-long", "purged", "no-peer", "too-long", "off", "stopped")
BROADCAST, UNKNOWN = 65535, 65534
TX, ENQUEUE, DELIVER, DROP = range(4)
DELIVERED = FATES.index("delivered")
DATA = FRAMES.index("data")
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
    the air, in order of their start. `words`: the texts of those columns of FURTHER that the log has, the last one None. `jams`:
    start and end (ns) of each jammer's bursts."""

    stations: tuple[str, ...]
    rows: dict[str, np.ndarray]
    sent: np.ndarray
    words: dict[str, list[str | None]]
    jams: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def jamming(self, at_ns: int) -> list[str]:
        """The jammers that send at an instant."""
        last = {name: int(np.searchsorted(begin, at_ns, "right")) - 1 for name, (begin, _) in self.jams.items()}
        return [name for name, burst in last.items() if burst >= 0 and self.jams[name][1][burst] > at_ns]

    def last_data(self, station: int, until_ns: int) -> int | None:
        """The row of the last unicast data frame that a station began by an instant; None without one."""
        rows = self.sent[: np.searchsorted(self.rows["t_ns"][self.sent], until_ns, side="right")]
        own = np.flatnonzero((self.rows["station"][rows] == station) & (self.rows["frame"][rows] == DATA))
        return int(rows[own[-1]]) if len(own) else None

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
        starts = self.rows["t_ns"][self.sent]
        first = np.searchsorted(starts, begin_ns - self.longest_ns, side="left")
        last = np.searchsorted(starts, end_ns, side="right")
        rows = self.sent[first:last]
        return rows[self.rows["t_ns"][rows] + self.rows["airtime_ns"][rows] >= begin_ns]

    @property
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
        good = fate == DELIVERED
        for at in lost:  # few within a window
            near = slice(*np.searchsorted(t, [t[at] - self.longest_ns, t[at] + air[at]]))
            overlaps = good[near] & (peer[near] == peer[at]) & (t[near] + air[near] > t[at])
            flags[near] |= overlaps.astype(np.uint8)
        return flags

    def binned(self, begin_ns: int, end_ns: int, bins: int) -> dict[str, dict[str, list[int]]]:
        """Counts in `bins` equal parts of a window: `fates` of frames, also `retried` and `broadcast`, and `drops` by reason."""
        t, event, fate = (self.rows[name] for name in ("t_ns", "event", "fate"))
        here = np.flatnonzero((t >= begin_ns) & (t < end_ns) & ((event == TX) | (event == DROP)))
        place = (t[here] - begin_ns) * bins // max(1, end_ns - begin_ns)
        is_sent = event[here] == TX

        def table(mask: np.ndarray, names: Sequence[str]) -> np.ndarray:
            index = place[mask] * len(names) + fate[here[mask]]
            return np.bincount(index, minlength=bins * len(names)).reshape(bins, len(names))

        def counted(mask: np.ndarray) -> list[int]:
            return np.bincount(place[mask], minlength=bins).tolist()

        sent, dropped = table(is_sent, FATES), table(~is_sent, DROPS)
        fates = {name: sent[:, code].tolist() for code, name in enumerate(FATES) if name}
        fates["retried"] = counted(is_sent & (self.rows["attempt"][here] > 1))
        fates["broadcast"] = counted(is_sent & (self.rows["peer"][here] == BROADCAST))
        return {
            "fates": fates,
            "drops": {name: dropped[:, code].tolist() for code, name in enumerate(DROPS) if dropped[:, code].any()},
        }

    def counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """For each station the numbers of frames by fate (`sent`), and of drops by reason (`drops`), of the whole log."""
        station, event, fate = (self.rows[name] for name in ("station", "event", "fate"))

        def counted(kind: int, names: Sequence[str]) -> dict[str, dict[str, int]]:
            mask = event == kind
            table = np.zeros((len(self.stations), len(names)), dtype=np.int64)
            np.add.at(table, (station[mask], fate[mask]), 1)
            return {
                name: {names[code]: int(number) for code, number in enumerate(table[at]) if number}
                for at, name in enumerate(self.stations)
            }

        return {"sent": counted(TX, FATES), "drops": counted(DROP, DROPS)}

    def drops(self, begin_ns: int, end_ns: int, limit: int) -> list[int]:
        """The first rows of dropped packets with begin <= t < end, in order of time."""
        t = self.rows["t_ns"]
        rows = np.flatnonzero((self.rows["event"] == DROP) & (t >= begin_ns) & (t < end_ns))
        chosen: list[int] = rows[np.argsort(t[rows], kind="stable")][:limit].tolist()
        return chosen

    def of_packet(self, packet: int) -> np.ndarray:
        """The rows of a packet, in order of time."""
        rows = np.flatnonzero(self.rows["packet"] == packet)
        return rows[np.argsort(self.rows["t_ns"][rows], kind="stable")]

    def as_text(self, row: int) -> dict[str, object]:
        """A row with the words of the log; None for an empty field."""
        value = {name: column[row].item() for name, column in self.rows.items()}
        names = DROPS if value["event"] == DROP else FATES
        power = value["power_dbm"]
        return {
            "row": row, "t_ns": str(value["t_ns"]), "station": self.stations[value["station"]], "event": EVENTS[value["event"]],
            "frame": FRAMES[value["frame"]], "peer": self.name_of(value["peer"]), "packet": value["packet"],
            "attempt": value["attempt"] or None, "bytes": value["bytes"], "airtime_ns": value["airtime_ns"] or None,
            "backoff_slots": slots if (slots := value["backoff_slots"]) >= 0 else None, "fate": names[value["fate"]] or None,
            "receivers": value["receivers"] if value["peer"] == BROADCAST else None,
            "power_dbm": None if np.isnan(power) else round(power, 1), "rate_bps": value["rate_bps"] or None,
            **{name: words[value[name]] for name, words in self.words.items()},
            **({"sinr_db": None if np.isnan(value["sinr_db"]) else round(value["sinr_db"], 1)} if "sinr_db" in value else {}),
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
            columns = [*COLUMNS, *(name for name in FURTHER if name in head)]
            table = pl.read_csv(file, columns=columns, schema_overrides=COLUMNS | FURTHER, comment_prefix="#")
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as problem:
        raise RunFileError(f"{path}: not an air log (formats/air.md): {str(problem).splitlines()[0]}") from None
    return _of_table(table, stations)


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
    return _of_table(table, stations)


def _of_table(table: pl.DataFrame, stations: Sequence[str]) -> Frames:
    bursts = table.filter(pl.col("event") == JAM).sort("t_ns")
    jams = {
        str(name): (own["t_ns"].to_numpy(), (own["t_ns"] + own["airtime_ns"].cast(pl.Int64)).to_numpy())
        for (name,), own in bursts.group_by("station", maintain_order=True)
    }
    table = table.filter(pl.col("event") != JAM)
    rows = {
        "t_ns": table["t_ns"].to_numpy(),
        "station": _places(table["station"], stations).astype(np.uint16),
        "event": table["event"].to_physical().to_numpy().astype(np.uint8),
        "frame": table["frame"].to_physical().to_numpy().astype(np.uint8),
        "peer": _places(table["peer"], stations).astype(np.uint16),
        "packet": table["packet"].to_numpy(),
        "attempt": _whole(table["attempt"], np.uint16),
        "bytes": _whole(table["bytes"], np.uint16),
        "rate_bps": _whole(table["rate_bps"], np.uint32),
        "airtime_ns": _whole(table["airtime_ns"], np.uint32),
        "backoff_slots": table["backoff_slots"].fill_null(-1).to_numpy().astype(np.int32),
        "fate": _codes(table["fate"], {name: code for names in (FATES, DROPS) for code, name in enumerate(names)}),
        "receivers": _whole(table["receivers"], np.uint16),
        "power_dbm": table["power_dbm"].fill_null(float("nan")).to_numpy(),
    }
    words: dict[str, list[str | None]] = {}
    for name in ("mode", "aggregate", "category"):
        if name in table.columns:
            texts = table[name].unique().drop_nulls().cast(pl.String).sort().to_list()
            rows[name] = _codes(table[name], {text: at for at, text in enumerate(texts)}, len(texts))
            words[name] = [*texts, None]
    if "sinr_db" in table.columns:
        rows["sinr_db"] = table["sinr_db"].fill_null(float("nan")).to_numpy()
    sent = np.flatnonzero(rows["event"] == TX).astype(np.uint32)
    sent = sent[np.argsort(rows["t_ns"][sent], kind="stable")]
    return Frames(tuple(stations), rows, sent, words, jams)


def _whole(column: pl.Series, kind: type[np.unsignedinteger]) -> np.ndarray:
    return column.fill_null(0).to_numpy().astype(kind)


def _places(column: pl.Series, stations: Sequence[str]) -> np.ndarray:
    return _codes(column, {**{name: at for at, name in enumerate(stations)}, "*": BROADCAST}, UNKNOWN)


def _codes(column: pl.Series, codes: dict[str, int], otherwise: int = 0) -> np.ndarray:
    """A number for each text of a categorical column; `otherwise` for another text, and for none."""
    distinct = column.unique().drop_nulls()
    physical = distinct.to_physical().to_numpy()
    none = int(physical.max(initial=0)) + 1
    table = np.full(none + 1, otherwise, dtype=np.uint16)
    table[physical] = [codes.get(name, otherwise) for name in distinct.cast(pl.String)]
    return table[column.to_physical().fill_null(none).to_numpy()]
