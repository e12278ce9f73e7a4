"""nights.parquet: a row per repetition of each figure of each night (formats/nights.md).

It follows the result store's conventions (analysis/store): typed columns with unit and meaning, the format in the metadata of the
file, which is replaced as a whole. A lock keeps two nights from writing at once.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.nights.change import Night, Series
from analysis.store.files import UNREADABLE
from analysis.store.schema import FORMAT, TIME, column
from record.errors import RunFileError
from record.files import atomic_file, plain_file

NIGHTS = "manet-nights/1"
NAME, LOCK = "nights.parquet", ".nights.lock"
COLUMNS = (
    column("night", pa.string(), "id of the night"),
    column("date", TIME, "begin of the night"),
    column("commit", pa.string(), "commit of the checkout; + if files differed from it"),
    column("commits", pa.string(), "commits since the night before on this machine: old..new"),
    column("part", pa.string(), "validation, campaign, kernels or speed"),
    column("metric", pa.string(), "name of the figure, which begins with its part"),
    column("unit", pa.string(), "unit of the value"),
    column("value", pa.float64(), "the figure of this repetition"),
    column("repetition", pa.int64(), "number of the repetition, from 1"),
    column("run", pa.string(), "where the repetition's files are, relative to the history, or its seed"),
    column("machine", pa.string(), "the machine: a hash of its id and processor"),
    column("kernel", pa.string(), "release of the kernel, of the guest's where it ran in one"),
    column("reference", pa.string(), "the program that a ratio is of: the begin of its SHA-256"),
    column("exact", pa.bool_(), "unchanged code gives the same value to the bit"),
    column("relevant", pa.float64(), "smallest change that matters, as a share; empty: the metric is not watched"),
    column("p", pa.float64(), "significance of the change of the night's figure; empty: not tested"),
    column("alarm", pa.bool_(), "a change beyond noise: later nights are not compared with this one"),
    column("baseline", pa.bool_(), "the series begins anew here: the change was accepted"),
)
SCHEMA = pa.schema(list(COLUMNS), metadata={FORMAT: NIGHTS.encode()})
PLACE = ("part", "metric", "machine", "kernel", "reference")  # what makes a series


def table_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The table of rows by column name; missing entries are empty."""
    rows = list(rows)
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in SCHEMA]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def read(history: Path) -> pa.Table:
    """All rows of a history in their order; none if there is no file. RunFileError for a file of another kind."""
    path = history / NAME
    try:
        with plain_file(path) as file:
            history_rows = pq.ParquetFile(file).read(use_threads=False)
        if (history_rows.schema.metadata or {}).get(FORMAT) == NIGHTS.encode():
            return table_of(history_rows.to_pylist())
    except FileNotFoundError:
        return table_of(())
    except UNREADABLE:
        raise RunFileError(f"{path}: cannot be read as Parquet; move it away, and the history begins anew") from None
    raise RunFileError(f'{path}: is no "{NIGHTS}"; move it away, and the history begins anew')


def append(history: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add the rows of a night."""
    with locked(history):
        write(history, pa.concat_tables([read(history), table_of(rows)]))


def accept(history: Path, metrics: Iterable[str]) -> int:
    """Make the newest night of these metrics the start of their series; returns the number of its rows."""
    wanted = set(metrics)
    with locked(history):
        rows = read(history).to_pylist()
        newest = {place_of(row): row["night"] for row in rows if row["metric"] in wanted}
        changed = [row for row in rows if newest.get(place_of(row)) == row["night"]]
        for row in changed:
            row |= {"baseline": True, "alarm": False}
        write(history, table_of(rows))
    return len(changed)


def write(history: Path, table: pa.Table) -> None:
    """Replace the file."""
    with atomic_file(history / NAME, "wb") as file:
        pq.write_table(table, file, compression="zstd")


def histories_below(folder: Path) -> list[Path]:
    """The folder, or those directly in it, that hold nights.parquet."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [path for path in (folder, *inside) if (path / NAME).is_file()]


def place_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The series that a row belongs to."""
    return tuple(row[name] for name in PLACE)


def series_of(rows: Iterable[Mapping[str, Any]]) -> list[Series]:
    """The watched series of rows in the order of nights, with all their nights."""
    found: dict[tuple[Any, ...], dict[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        if row["relevant"] is not None:
            found.setdefault(place_of(row), {}).setdefault(row["night"], []).append(row)
    return [_series(list(nights.values())) for nights in found.values()]


def _series(nights: list[list[Mapping[str, Any]]]) -> Series:
    last = nights[-1][0]
    return Series(
        last["part"], last["metric"], last["unit"], last["relevant"], bool(last["exact"]),
        tuple(_night(rows) for rows in nights), place_of(last),
    )  # fmt: skip


def _night(rows: list[Mapping[str, Any]]) -> Night:
    first = rows[0]
    return Night(
        first["night"], first["commit"] or "unknown", tuple(row["value"] for row in rows),
        tuple(row["run"] or "" for row in rows), bool(first["alarm"]), bool(first["baseline"]),
    )  # fmt: skip


@contextmanager
def locked(history: Path) -> Iterator[None]:
    """Lock the history for this process until the block ends; waits for another holder."""
    history.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(history / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
