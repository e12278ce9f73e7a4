"""The files of the result store: one Parquet file per table, replaced as a whole, and before it one small file per ended run.

A run that ends is entered by `append` into `.runs.pending/`, as a file with a name of its own: no lock, no file that two
writers share, so processes on several machines can write at once. `merge` moves these rows into runs.parquet, under a lock; it
replaces the file atomically before it removes what it has moved. A crash leaves a row in both places, and the readers below take
the newest row of each run. `write` makes both tables again from the runs themselves (`manet run`, `manet report`).

A directory of small files as a Parquet dataset has no lock either, but no way to compact it without an instant at which a reader
sees a run twice or not at all. With one file any tool reads a complete table in one line, at any time.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.store import schema
from analysis.store.rows import as_json, flow_rows, from_json, row_of, row_of_directory
from analysis.tables.results import Results, run_row
from record import records
from record.errors import RunFileError
from record.files import atomic_file, plain_file, read_object, read_text, write_atomic
from record.found_runs import ASIDE

NAMES = {schema.RUNS: "runs.parquet", schema.FLOWS: "flows.parquet"}
PENDING, LOCK = ".runs.pending", "lock"
CAMPAIGN = "campaign.json"  # in a folder of several experiments' results
UNREADABLE = (pa.ArrowException, UnicodeDecodeError, MemoryError, OSError)  # of damaged Parquet; OSError: of a damaged page
MERGE_AT = 64  # pending rows at which `append` moves them; of a large table more, which is replaced as a whole:
MERGE_SHARE = 1 / 100  # of its rows, so that a run's row takes as long however many there are


def append(run_dir: Path, out_dir: Path | None = None) -> None:
    """Enter a run that has ended into the store of its folder of results (default: two folders up)."""
    out_dir = out_dir or run_dir.parents[1]
    entry = row_of_directory(run_dir, out_dir)
    if not _fits(entry):
        return
    row = as_json(entry)
    part = out_dir / PENDING / f"{time.time_ns()}-{os.getpid()}-{os.urandom(4).hex()}.json"
    for last_try in (False, False, True):
        part.parent.mkdir(exist_ok=True)
        try:
            write_atomic(part, row)
            break
        except FileNotFoundError:  # another process has removed the empty folder meanwhile
            if last_try:
                raise
    if (pending := len(_parts(out_dir))) >= MERGE_AT:
        with suppress(RunFileError):  # a damaged file: the rows stay pending, and the report writes it again
            if pending >= MERGE_SHARE * _written_rows(out_dir):
                merge(out_dir)


def merge(out_dir: Path) -> None:
    """Move the pending rows into runs.parquet. Another process that does so at the same time is left to it."""
    with _locked(out_dir, fcntl.LOCK_NB) as alone:
        parts = _parts(out_dir)
        if alone and parts:
            _replace(out_dir, [*_whole(out_dir, schema.RUNS), _pending(out_dir, parts)], parts)


def write(results: Results, since: datetime) -> None:
    """Regenerate both tables from the runs of the folder. Pending rows made before `since`, when the runs were looked for, are in
    them or gone; later ones are kept."""
    out_dir, axes, name = results.directory, results.experiment.axes, results.experiment.name
    rows = [row_of(row, out_dir, name, axes) for row in results.rows]
    aside = (run_row(run_dir, out_dir, axes) for run_dir in _put_aside(out_dir))
    put_aside = [row for row in (row_of(row, out_dir, name, axes) for row in aside) if _fits(row)]
    units = _units(out_dir)
    _write(out_dir / NAMES[schema.FLOWS], schema.table_of((one for row in rows for one in flow_rows(row)), schema.FLOWS, units))
    with _locked(out_dir):
        parts = _parts(out_dir)
        later = [part for part in parts if _time_of(part) >= since.timestamp() * 1e9]
        table = schema.table_of([*rows, *put_aside], schema.RUNS, units)
        _replace(out_dir, [table, _pending(out_dir, later)], parts)


def _put_aside(out_dir: Path) -> list[Path]:
    """The runs in `void/` with an intact run.json."""
    paths = sorted(out_dir.glob(f"*/{ASIDE}/*/{records.RUN}"))
    return [path.parent for path in paths if records.wrong_value(path.name, read_object(path)) is None]


def _fits(row: dict[str, Any]) -> bool:
    """Whether the store can hold the row: an edited run.json may have values of other types."""
    try:
        schema.table_of([row], schema.RUNS)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError):
        return False
    return True


def read(folders: Path | Iterable[Path], form: str = schema.RUNS) -> pa.Table:
    """All rows of these folders of results; a RunFileError for one without a store. `folder` names the folder of each row."""
    tables = []
    for out_dir in [folders] if isinstance(folders, Path) else folders:
        table = read_folder(out_dir, form)
        where = schema.column("folder", pa.string(), "folder of results")
        tables.append(table.append_column(where, pa.array([str(out_dir)] * len(table), pa.string())))
    return schema.joined(tables, form)


def read_folder(out_dir: Path, form: str = schema.RUNS) -> pa.Table:
    """All rows of one folder of results, with those that are pending; the newest of each run."""
    for _ in range(3):  # a merge between listing and reading removes a part, whose row is then in the whole file
        parts = _parts(out_dir) if form == schema.RUNS else []
        with suppress(FileNotFoundError):
            pending = [_pending(out_dir, parts)] if parts else []
            tables = [*_whole(out_dir, form), *pending]
            break
    else:
        tables = _whole(out_dir, form)
    if not tables:
        raise RunFileError(f"{out_dir}: no {NAMES[form]}; `./manet report {out_dir}` writes it")
    joined = _joined(tables, form, out_dir)
    return _newest(joined) if form == schema.RUNS and parts else joined


def stores_below(folder: Path) -> list[Path]:
    """The folders with a store: `folder`, or those directly in it and in the campaigns' folders in it."""
    if is_store(folder):
        return [folder]
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    deeper = (stores_below(path) if (path / CAMPAIGN).is_file() else [path] for path in inside)
    return [path for paths in deeper for path in paths if is_store(path)]


def is_store(folder: Path) -> bool:
    """Whether the folder holds a store."""
    return (folder / NAMES[schema.RUNS]).is_file() or bool(_parts(folder))


def _replace(out_dir: Path, tables: list[pa.Table], parts: list[Path]) -> None:
    """Write the whole file with the newest row of each run, then remove the parts."""
    _write(out_dir / NAMES[schema.RUNS], _newest(_joined(tables, schema.RUNS, out_dir)))
    for part in parts:
        part.unlink(missing_ok=True)
    with suppress(OSError):  # another process appends
        (out_dir / PENDING / LOCK).unlink(missing_ok=True)
        (out_dir / PENDING).rmdir()


def _joined(tables: list[pa.Table], form: str, out_dir: Path) -> pa.Table:
    try:
        return schema.joined(tables, form)
    except schema.ForeignFile as problem:
        raise RunFileError(f"{out_dir / NAMES[form]}: {problem}; `./manet report {out_dir}` writes it again") from None


def _newest(table: pa.Table) -> pa.Table:
    """The last written row of each run, in the order of variants, axes and seeds; later rows win among equal times."""
    if len(table) < 2:  # nothing to compare, and PyArrow imports its functions for it
        return table
    order = table.append_column("_row", pa.array(range(len(table)), pa.int64()))
    order = order.select(["run_dir", "written", "_row"]).sort_by([("written", "ascending"), ("_row", "ascending")])
    last = dict(zip(order["run_dir"].to_pylist(), order["_row"].to_pylist(), strict=True))
    newest = table.take(pa.array(sorted(last.values()), pa.int64()))
    axes = [field.name for field in newest.schema if (field.metadata or {}).get(b"role") == b"axis"]
    return newest.sort_by([(name, "ascending") for name in ("variant", *axes, "seed", "run_dir")])


def _whole(out_dir: Path, form: str) -> list[pa.Table]:
    path = out_dir / NAMES[form]
    return [_read(path, form)] if path.is_file() else []


def _written_rows(out_dir: Path) -> int:
    """The number of rows of runs.parquet."""
    path = out_dir / NAMES[schema.RUNS]
    try:
        with plain_file(path) as file:
            rows: int = pq.ParquetFile(file).metadata.num_rows
    except FileNotFoundError:
        return 0
    except UNREADABLE:
        raise RunFileError(f"{path}: cannot be read as Parquet") from None
    return rows


def _pending(out_dir: Path, parts: list[Path]) -> pa.Table:
    """The rows of these parts. FileNotFoundError if another process has moved one meanwhile."""
    rows = []
    for part in parts:
        try:
            rows.append(from_json(read_text(part)))
        except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
            raise RunFileError(f"{part}: is no row of a run; remove it, and `./manet report {out_dir}` enters the run") from None
    try:
        return schema.table_of(rows, schema.RUNS, _units(out_dir))
    except (TypeError, AttributeError, pa.ArrowException):
        raise RunFileError(
            f"{out_dir / PENDING}: holds rows of another kind; remove it, then `./manet report {out_dir}`"
        ) from None


def _read(path: Path, form: str) -> pa.Table:
    """A file of any version. FileNotFoundError if another process has removed it meanwhile."""
    try:
        with plain_file(path) as file:  # not by read_table, which imports pandas and takes columns from the name
            return schema.current(pq.ParquetFile(file).read(use_threads=False), form)
    except FileNotFoundError:
        raise
    except (schema.ForeignFile, *UNREADABLE) as problem:
        why = str(problem).splitlines()[0] if isinstance(problem, schema.ForeignFile) else "cannot be read as Parquet"
    raise RunFileError(f"{path}: {why}; remove it, and `./manet report {path.parent}` writes the store again")


def _write(path: Path, table: pa.Table) -> None:
    with atomic_file(path, "wb") as file:
        pq.write_table(table, file, compression="zstd")


@contextmanager
def _locked(out_dir: Path, mode: int = 0) -> Iterator[bool]:
    """Whether the store is this process's alone until the block ends; waits for that, but with LOCK_NB as `mode`. False where the
    file system has no locks."""
    descriptor, alone = _lock(out_dir / PENDING / LOCK, mode)
    try:
        yield alone
    finally:
        os.close(descriptor)


def _lock(lock: Path, mode: int) -> tuple[int, bool]:
    """The open lock file, and whether it is held; opened again if its last holder removed it meanwhile."""
    while True:
        lock.parent.mkdir(exist_ok=True)
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | mode)
        except OSError:
            return descriptor, False
        with suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == lock.stat().st_ino:
                return descriptor, True
        os.close(descriptor)


def _parts(out_dir: Path) -> list[Path]:
    """Pending rows, the oldest first."""
    return sorted((out_dir / PENDING).glob("*.json"), key=_time_of)


def _time_of(part: Path) -> int:
    digits = part.name.partition("-")[0]
    return int(digits) if digits.isdecimal() else 0


def _units(out_dir: Path) -> dict[str, Any]:
    return read_object(out_dir / "experiment.json").get("units") or {}
