"""Measured links as rows: a table of links (formats/links.md), from CSV or Parquet, and written as the medium reads it.

`medium/src/phy/measured.rs` reads the written form and interpolates; both are tested on formats/examples/links.csv.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mobility.trace import MAX_TIME_S, STATION_NAME

FORMAT = "# manet-links/1"
# What a table has of each link, with the least and the largest value; as in medium/src/phy/measured.rs
COLUMNS = {"rssi_dbm": (-300.0, 100.0), "loss_db": (0.0, 300.0), "delivery": (0.0, 1.0)}
ENDS = ("time_s", "from", "to")
RATE = "rate_bps"
MAX_RATE_BPS = 50_000_000_000


class LinksError(ValueError):
    """One line that names the file, its line and the remedy."""


@dataclass(frozen=True)
class Row:
    """From `time_s` on, frames from `source` to `target` have this value, or none: no link. `rate_bps`: their rate."""

    time_s: float
    source: str
    target: str
    value: float | None
    rate_bps: int | None = None


@dataclass(frozen=True)
class Links:
    """The content of a file, in order of time. `column`: what the values are. `notes` say how it was read, for the user."""

    name: str
    column: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    stations: tuple[str, ...] = field(default=())

    def pairs(self) -> list[tuple[str, str]]:
        """The directed links, in order of the stations."""
        place = {name: number for number, name in enumerate(self.stations)}
        return sorted({(row.source, row.target) for row in self.rows}, key=lambda ends: (place[ends[0]], place[ends[1]]))


def made(name: str, column: str, rows: Iterable[Row], stations: Sequence[str] | None = None, notes: Sequence[str] = ()) -> Links:
    """The links of these rows, which are checked and sorted. LinksError for a wrong one. `stations`: those that may occur."""
    ordered = sorted(rows, key=lambda row: row.time_s)
    if not ordered:
        raise LinksError(f"{name}: has no rows; give a file with at least one link")
    found = dict.fromkeys(end for row in ordered for end in (row.source, row.target))
    for row in ordered:
        if wrong := _mistake(row, column):
            raise LinksError(f"{name}: {wrong}")
    for station in found:
        if stations is not None and station not in stations:
            names = ", ".join(stations[:5]) + (", ..." if len(stations) > 5 else "")
            raise LinksError(f'{name}: names "{station}", and the stations are {names}; rename it, or the station')
    return Links(name, column, tuple(ordered), tuple(notes), tuple(stations or found))


def _mistake(row: Row, column: str) -> str | None:
    """What is wrong with a row, and the remedy."""
    least, most = COLUMNS[column]
    if not 0 <= row.time_s <= MAX_TIME_S:
        return f"time_s {row.time_s:g} is outside 0 to {MAX_TIME_S:g} s; let the times begin at 0"
    if row.source == row.target:
        return f'a link from "{row.source}" to itself; remove it'
    for end in (row.source, row.target):
        if not STATION_NAME.fullmatch(end):
            return f'"{end[:40]}" is no station name; use at most 10 of a-z, 0-9 and "-", beginning with a letter'
    if row.value is not None and not least <= row.value <= most:
        return f"{column} {row.value:g} is outside {least:g} to {most:g}; correct it, or leave it empty for no link"
    if row.rate_bps is not None and not (column == "delivery" and 0 < row.rate_bps <= MAX_RATE_BPS):
        return f"{RATE} {row.rate_bps} is for delivery, from 1 to {MAX_RATE_BPS} bit/s; correct it, or leave it empty"
    return None


def write(links: Links) -> str:
    """The text of the file that the medium reads."""
    with_rate = any(row.rate_bps is not None for row in links.rows)
    lines = [FORMAT, *(f"# {note}" for note in links.notes), ",".join([*ENDS, *([RATE] if with_rate else []), links.column])]
    for row in links.rows:
        rate = [str(row.rate_bps or "")] if with_rate else []
        value = "" if row.value is None else _number(row.value)
        lines.append(",".join([_number(row.time_s), row.source, row.target, *rate, value]))
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return repr(value + 0.0).removesuffix(".0")


def is_table(header: str) -> bool:
    """Whether a line of CSV is the header of a table of links."""
    return set(ENDS) <= {word.strip() for word in header.split(",")}


def parse_csv(text: str, name: str, stations: Sequence[str] | None = None) -> Links:
    """The links of a CSV file with a header; lines that begin with `#` are left out. LinksError names the line."""
    lines = csv.reader(io.StringIO(text), skipinitialspace=True)
    header: dict[str, int] | None = None
    column, rows = "", []
    try:
        for fields in lines:
            if not any(word.strip() for word in fields) or fields[0].lstrip().startswith("#"):
                continue
            place = f"{name}:{lines.line_num}"
            if header is None:
                header = {word.strip(): number for number, word in enumerate(fields)}
                column = _column_of(header, place)
            elif len(fields) != len(header):
                raise LinksError(f"{place}: {len(fields)} fields; the header has {len(header)}")
            else:
                row = _row({key: fields[number].strip() for key, number in header.items()}, column, place)
                if wrong := _mistake(row, column):
                    raise LinksError(f"{place}: {wrong}")
                rows.append(row)
    except csv.Error as problem:
        raise LinksError(f"{name}:{lines.line_num}: {problem}; give a plain CSV file") from None
    if header is None:
        raise LinksError(f"{name}: has no header; begin with time_s,from,to, and one of {', '.join(COLUMNS)}")
    return made(name, column, rows, stations)


def _column_of(header: Mapping[str, int], place: str) -> str:
    """The value column; LinksError for columns that are no table of links."""
    known = [key for key in COLUMNS if key in header]
    missing = [key for key in ENDS if key not in header]
    strange = sorted(set(header) - {*ENDS, RATE, *COLUMNS})
    if missing:
        raise LinksError(f'{place}: has no column "{missing[0]}"; a table has time_s, from, to, and one of {", ".join(COLUMNS)}')
    if strange:
        remedy = "remove it" if known else f"one of {', '.join(COLUMNS)} has the value"
        raise LinksError(f'{place}: the column "{strange[0][:40]}" is not known; {remedy}')
    if len(known) != 1:
        raise LinksError(f"{place}: has {len(known)} of the columns {', '.join(COLUMNS)}; give one")
    if RATE in header and known[0] != "delivery":
        raise LinksError(f"{place}: {RATE} is for delivery; remove it")
    return known[0]


def _row(cells: Mapping[str, str], column: str, place: str) -> Row:
    return Row(
        _parsed(cells["time_s"], "time_s", place),
        cells["from"],
        cells["to"],
        _parsed(cells[column], column, place) if cells[column] else None,
        _rate_of(cells.get(RATE, ""), place),
    )


def _parsed(text: str, column: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise LinksError(f"{place}: {column} `{text[:40]}` is no number; correct it")
    return value


def _rate_of(text: str, place: str) -> int | None:
    if not text:
        return None
    rate = _parsed(text, RATE, place)
    if rate != int(rate):
        raise LinksError(f"{place}: {RATE} `{text[:40]}` is no whole number; give bit/s")
    return int(rate)


def parse_parquet(data: bytes, name: str, stations: Sequence[str] | None = None) -> Links:
    """The links of a Parquet file with the columns of the CSV file; null and NaN are no link. LinksError names the row."""
    import polars as pl  # takes long to import, and few scenarios need it

    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, OSError) as problem:
        raise LinksError(f"{name}: is no whole Parquet file ({str(problem).splitlines()[0][:80]}); write it again") from None
    column = _column_of({key: number for number, key in enumerate(frame.columns)}, name)
    rows = []
    for number, cells in enumerate(frame.iter_rows(named=True), start=1):
        place = f"{name}: row {number}"
        row = _row_of_cells(cells, column, place)
        if wrong := _mistake(row, column):
            raise LinksError(f"{place}: {wrong}")
        rows.append(row)
    return made(name, column, rows, stations)


def _row_of_cells(cells: Mapping[str, Any], column: str, place: str) -> Row:
    texts = {key: "" if value is None or value != value else str(value) for key, value in cells.items()}
    return _row(texts, column, place)


def parquet(links: Links) -> bytes:
    """The links as a Parquet file with the columns of the CSV file."""
    import polars as pl

    columns: dict[str, list[Any]] = {
        "time_s": [row.time_s for row in links.rows],
        "from": [row.source for row in links.rows],
        "to": [row.target for row in links.rows],
    }
    types: dict[str, Any] = {"time_s": pl.Float64, "from": pl.String, "to": pl.String, links.column: pl.Float64}
    if any(row.rate_bps is not None for row in links.rows):
        columns[RATE], types[RATE] = [row.rate_bps for row in links.rows], pl.Int64
    columns[links.column] = [row.value for row in links.rows]
    buffer = io.BytesIO()
    pl.DataFrame(columns, schema_overrides=types).write_parquet(buffer)
    return buffer.getvalue()


def shifted(links: Links, by_s: float) -> Links:
    """The same links, `by_s` later; LinksError if a time would be before 0."""
    rows = [replace(row, time_s=row.time_s + by_s) for row in links.rows]
    return made(links.name, links.column, rows, links.stations, links.notes)
