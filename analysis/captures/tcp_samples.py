"""tcp.csv (formats/tcp.md): the kernel's per-ACK samples of each connection, and the events of its TCP in the same stream.

An event is an action of a layer or an input to it (notice, stand-by, probe, repair, timeout, window). Runs recorded before events
existed have samples only.
"""

from itertools import pairwise
from pathlib import Path

import polars as pl

from record.errors import RunFileError
from record.files import plain_file

# The kernel's "no threshold yet" (TCP_INFINITE_SSTHRESH in include/net/tcp.h).
INFINITE_THRESHOLD = 1 << 20  # none (0x7FFFFFFF), or a value that no window has (end of docs/timelines.md)

SCHEMA = {
    "t_ns": pl.Int64,  # CLOCK_REALTIME
    "station": pl.String,
    "cookie": pl.String,
    "saddr": pl.String,
    "sport": pl.Int64,
    "daddr": pl.String,
    "dport": pl.Int64,
    "snd_nxt": pl.Int64,
    "snd_una": pl.Int64,
    "snd_cwnd": pl.Int64,
    "ssthresh": pl.Int64,
    "srtt_us": pl.Int64,
    "rto_us": pl.Int64,
    "ca_state": pl.Int64,
    "event": pl.String,  # "" for a sample
    "detail": pl.String,
}
_EVENTS = ("event", "detail")
SET_BY_LAYER = "window"  # the only event whose row has the state after it


def read_samples(path: Path) -> pl.DataFrame:
    """All rows in file order, as SCHEMA says; event and detail are empty texts where the file has none."""
    if not path.exists():
        raise RunFileError(f"{path}: no TCP samples; does `manet doctor` find tcp_probe?")
    try:
        with plain_file(path) as file:
            rows = pl.read_csv(file, schema_overrides=SCHEMA, truncate_ragged_lines=False)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as problem:
        raise RunFileError(f"{path}: not TCP samples (formats/tcp.md): {str(problem).splitlines()[0]}") from None
    missing = [name for name in SCHEMA if name not in rows.columns and name not in _EVENTS]
    if missing:
        raise RunFileError(f"{path}: not TCP samples (formats/tcp.md): no column {missing[0]}")
    rows = rows.with_columns(pl.lit("").alias(name) for name in _EVENTS if name not in rows.columns)
    return rows.select(list(SCHEMA)).with_columns(pl.col(name).fill_null("") for name in _EVENTS)


def stand_bys(rows: pl.DataFrame) -> list[tuple[int, int | None]]:
    """Intervals from each `stand-by` to the next `repair`, both in ns of CLOCK_REALTIME; None for one that never ended."""
    found: list[tuple[int, int | None]] = []
    since = None
    for t_ns, event in rows.select("t_ns", "event").iter_rows():
        if event == "stand-by" and since is None:
            since = t_ns
        elif event == "repair" and since is not None:
            found.append((since, t_ns))
            since = None
    return found if since is None else [*found, (since, None)]


def fixed_rtos(rows: pl.DataFrame) -> list[tuple[int, int | None]]:
    """Times in which reno-f retransmits instead of the kernel: from each second timeout in a row to the next segment received."""
    if rows.filter((pl.col("event") == "algorithm") & pl.col("detail").str.contains("reno-f(", literal=True)).is_empty():
        return []
    found: list[tuple[int, int | None]] = []
    since = None
    for t_ns, event, detail in rows.select("t_ns", "event", "detail").iter_rows():
        if event == "timeout" and detail == "2" and since is None:
            since = t_ns
        elif event == "" and since is not None:
            found.append((since, t_ns))
            since = None
    return found if since is None else [*found, (since, None)]


def held_from(rows: pl.DataFrame, column: str) -> list[tuple[int, int]]:
    """The times (ns) from which the socket had each value of `column`, up to the last row that has one.

    A row has the state before its segment or timeout is processed, so its value was held since the row before; a `window` row has
    the value that a layer has just set. Samples alone are not enough: while every segment is lost there are none.
    """
    found: list[tuple[int, int]] = []
    before_ns = None
    for t_ns, event, value in rows.select("t_ns", "event", column).drop_nulls().iter_rows():
        found.append((t_ns if before_ns is None or event == SET_BY_LAYER else before_ns, value))
        before_ns = t_ns
    return [*found, (before_ns, found[-1][1])] if before_ns is not None else []


def mean_held(held: list[tuple[int, int]], begin_ns: int, end_ns: int) -> float | None:
    """The mean over time of `held_from` in [begin_ns, end_ns): each value counts as long as it was held, the last one to the end.
    The time before the first does not count; None if there is no other."""
    spans = [
        (max(0, min(until_ns, end_ns) - max(since_ns, begin_ns)), value)
        for (since_ns, value), (until_ns, _) in pairwise([*held, (end_ns, 0)])
    ]
    whole_ns = sum(span_ns for span_ns, _ in spans)
    return sum(span_ns * value for span_ns, value in spans) / whole_ns if whole_ns else None


def with_gaps(held: list[tuple[int, int]]) -> list[tuple[int, float]]:
    """Thresholds for a line, with gaps while the kernel has none."""
    return [(t_ns, float("nan") if value >= INFINITE_THRESHOLD else value) for t_ns, value in held]


def samples(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows that are samples."""
    return rows.filter(pl.col("event") == "")
