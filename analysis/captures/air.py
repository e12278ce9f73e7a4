"""The medium's log of the air (formats/air.md): attempts, fates, drops, air time and deliveries.

The times are model time; a run's `epoch_ns` (run.json) turns a capture's clock into it.
"""

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from record.closed_log import closing_reason
from record.errors import RunFileError
from record.files import plain_file

SCHEMA: dict[str, type[pl.DataType]] = {
    "t_ns": pl.Int64,
    "station": pl.String,
    "event": pl.String,
    "frame": pl.String,
    "peer": pl.String,
    "packet": pl.Int64,
    "attempt": pl.Int32,
    "bytes": pl.Int32,
    "rate_bps": pl.Int64,
    "airtime_ns": pl.Int64,
    "backoff_slots": pl.Int32,
    "fate": pl.String,
    "receivers": pl.Int32,
}
# Received power of a frame that arrived; logs made before it was written have none.
OPTIONAL: dict[str, type[pl.DataType]] = {"power_dbm": pl.Float64}

# Of the rows of numbered packets. Names are few, so that a number for each is enough.
PACKET_SCHEMA: dict[str, type[pl.DataType]] = {
    "t_ns": pl.Int64,
    "station": pl.Categorical,
    "event": pl.Categorical,
    "frame": pl.Categorical,
    "peer": pl.Categorical,
    "packet": pl.UInt32,
    "attempt": pl.Int32,
    "bytes": pl.Int32,
    "rate_bps": pl.UInt32,
    "fate": pl.Categorical,
    "power_dbm": pl.Float64,
}
# Of them only in the logs of radios with an MCS, with aggregation, with reception by SINR, with EDCA.
FURTHER: dict[str, type[pl.DataType]] = {
    "mode": pl.Categorical, "aggregate": pl.Categorical, "sinr_db": pl.Float64, "category": pl.Categorical,
}  # fmt: skip
# Of attempts; the last two only if the radio has them (formats/air.md).
ATTEMPT_SCHEMA: dict[str, type[pl.DataType]] = {
    "station": pl.Categorical,
    "event": pl.Categorical,
    "frame": pl.Categorical,
    "peer": pl.Categorical,
    "rate_bps": pl.Int64,
    "airtime_ns": pl.Int64,
    "fate": pl.Categorical,
    "mode": pl.Categorical,
    "aggregate": pl.String,
}
NO_FATE = pl.col("fate").fill_null("")
READ_AT_ONCE = 1 << 22  # bytes of the log: bounds the memory for its text

# A frame reaches the capture as soon as the host schedules the medium and the capturing program: milliseconds on an idle
# host. A second is far above the delay in any run that is not void, and too short to confuse a packet with one of
# the next window.
MATCH_TOLERANCE_NS = 1_000_000_000
ALWAYS = (-math.inf, math.inf)


def read_air(path: Path) -> pl.DataFrame:
    """The whole log as SCHEMA says, with the log's columns of FURTHER; a torn last line (from a killed medium) is an error that
    names the line."""
    with _air_log(path) as file:
        return _with_columns(_rows_of(path, file, SCHEMA | OPTIONAL | FURTHER).with_columns(NO_FATE), SCHEMA | OPTIONAL)


def begins_ppdu(frames: pl.DataFrame) -> pl.Expr:
    """Of data frames of the log: whether a row is a frame of its own or the first MPDU of an A-MPDU. For `filter`: without
    aggregation it is one value for all."""
    if "aggregate" not in frames.columns:
        return pl.lit(True)
    place = pl.col("aggregate")
    return place.is_null() | place.cast(pl.String).str.starts_with("1/")


def read_packet_rows(path: Path) -> pl.DataFrame:
    """The log's rows of numbered packets, without CTS and ACK: as PACKET_SCHEMA says, with the log's columns of FURTHER. Errors
    as of `read_air`."""
    with _air_log(path) as file:
        parts = [_rows_of(path, text, PACKET_SCHEMA | FURTHER).filter(pl.col("packet") > 0) for text in _blocks(file)]
    return _with_columns(pl.concat(parts).with_columns(NO_FATE), PACKET_SCHEMA)


def read_data_attempts(path: Path) -> pl.DataFrame:
    """The log's `tx` rows of data frames to one station as ATTEMPT_SCHEMA says; columns that the log lacks are empty.
    Errors as of `read_air`."""
    chosen = (pl.col("event") == "tx") & (pl.col("frame") == "data")
    with _air_log(path) as file:
        parts = [_rows_of(path, text, ATTEMPT_SCHEMA).filter(chosen) for text in _blocks(file)]
    return _with_columns(pl.concat(parts), ATTEMPT_SCHEMA)


def _with_columns(rows: pl.DataFrame, schema: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    """The columns of `schema`, empty where the log lacks them, then the log's columns of FURTHER."""
    absent = [pl.lit(None, dtype=kind).alias(name) for name, kind in schema.items() if name not in rows.columns]
    further = [name for name in FURTHER if name in rows.columns and name not in schema]
    return rows.with_columns(*absent).select([*schema, *further])


def _air_log(path: Path) -> io.BufferedReader:
    if not path.exists():
        raise RunFileError(f"{path}: no air log; did the medium start? see log/ of the run")
    if (why := closing_reason(path)) is not None:
        raise RunFileError(f"{path}: is incomplete, it was closed before the run ended: {why}")
    return plain_file(path)


def _blocks(file: io.BufferedReader) -> Iterator[io.BytesIO]:
    """The log in parts of whole lines, each with the log's head."""
    head, text = file.readline(), file.read(READ_AT_ONCE)
    yield io.BytesIO(head + text + (rest := file.readline()))
    while rest:
        text = file.read(READ_AT_ONCE)
        rest = file.readline()
        if text:
            yield io.BytesIO(head + text + rest)


def _rows_of(path: Path, log: io.BufferedReader | io.BytesIO, kinds: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    """The columns of `kinds` that a log has. RunFileError for a log that lacks one of SCHEMA."""
    try:
        head = [name.strip() for name in log.readline().decode().rstrip("\r\n").split(",")]
        missing = [name for name in SCHEMA if name not in head]
        if missing:
            raise RunFileError(f"{path}: not an air log (formats/air.md): no column {missing[0]}; made by another version?")
        log.seek(0)
        rows = pl.read_csv(log, columns=[name for name in kinds if name in head] or None, schema_overrides=kinds)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as problem:
        first_line = str(problem).splitlines()[0]
        raise RunFileError(f"{path}: not an air log (formats/air.md): {first_line}") from None
    return rows


def air_summary(air: pl.DataFrame, begin_ns: int, end_ns: int) -> dict[str, Any]:
    """metrics.json's `air`: for each station the attempts by frame type, fates, drops by reason, and share of the air time."""
    air = air.select("t_ns", "station", "event", "frame", "fate", "airtime_ns")  # a filter copies every column
    window = air.filter(pl.col("t_ns").is_between(begin_ns, end_ns, closed="left") & (pl.col("event") != "jam"))
    sent = window.filter(pl.col("event") == "tx")
    drops = window.filter(pl.col("event") == "drop")
    airtime = dict(sent.group_by("station").agg(pl.col("airtime_ns").sum()).iter_rows())
    attempts, fates, reasons = _counts(sent, "frame"), _counts(sent, "fate"), _counts(drops, "fate")
    stations = {
        name: {
            "attempts": attempts.get(name, {}),
            "fates": fates.get(name, {}),
            "airtime_share": airtime.get(name, 0) / (end_ns - begin_ns),
            "drops": reasons.get(name, {}),
        }
        for name in sorted(window["station"].unique(), key=natural)
    }
    return {"window_s": (end_ns - begin_ns) / 1e9, "stations": stations}


@dataclass(frozen=True)
class Matching:
    """Deliveries of the air log matched with the frames that a station captured."""

    matched: pl.DataFrame  # the captured rows, with `air_bytes` and `lag_ns` (capture minus delivery)
    only_air: int  # delivered by the medium, missing in the capture
    only_capture: int  # captured, missing in the medium's log


def match_deliveries(
    air: pl.DataFrame, arrivals: pl.DataFrame, station: str, epoch_ns: int, window_ns: tuple[float, float] = ALWAYS
) -> Matching:
    """Pair a station's `deliver` rows with the frames that its capture received, both in order of time, and give those of a
    window (CLOCK_REALTIME): frames that the medium delivered in it, and captured ones without a partner.

    A TAP keeps the order of frames, so both lists are walked in step. If sizes or times differ, the earlier entry has no partner.
    Both are of the whole run: if one of them began with frames of an A-MPDU that the window cuts from the other, each frame would
    find a later one. `arrivals` are rows of analysis.captures.pcap addressed to the station.
    """
    handed = air.filter((pl.col("event") == "deliver") & (pl.col("station") == station) & (pl.col("frame") == "data"))
    deliveries = list(zip((handed["t_ns"] + epoch_ns).to_list(), handed["bytes"].to_list(), strict=True))
    frames = list(zip(arrivals["t_ns"].to_list(), arrivals["ip_bytes"].to_list(), strict=True))
    begin_ns, end_ns = window_ns
    left = right = 0
    rows, sizes, lags, only_air_ns, only_capture_ns = [], [], [], [], []
    while left < len(deliveries) and right < len(frames):
        at_ns = deliveries[left][0]
        lag = frames[right][0] - at_ns
        same_size = frames[right][1] in (deliveries[left][1], 0)  # 0: ARP, whose size the capture's row does not have
        if same_size and abs(lag) <= MATCH_TOLERANCE_NS:
            if begin_ns <= at_ns < end_ns:
                rows.append(right)
                sizes.append(deliveries[left][1])
                lags.append(lag)
            left, right = left + 1, right + 1
        elif lag > 0:
            only_air_ns.append(at_ns)
            left += 1
        else:
            only_capture_ns.append(frames[right][0])
            right += 1
    only_air_ns += [at_ns for at_ns, _ in deliveries[left:]]
    only_capture_ns += [at_ns for at_ns, _ in frames[right:]]
    matched = arrivals[rows].with_columns(air_bytes=pl.Series(sizes, dtype=pl.Int64), lag_ns=pl.Series(lags, dtype=pl.Int64))
    alone = (sum(begin_ns <= at_ns < end_ns for at_ns in times) for times in (only_air_ns, only_capture_ns))
    return Matching(matched, *alone)


def _counts(rows: pl.DataFrame, column: str) -> dict[str, dict[str, int]]:
    counted = rows.filter(pl.col(column) != "").group_by("station", column).len().sort("station", column)
    result: dict[str, dict[str, int]] = {}
    for station, value, count in counted.iter_rows():
        result.setdefault(station, {})[value] = count
    return result


def natural(name: str) -> tuple[str, int, str]:
    """sta2 before sta10."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0), name
