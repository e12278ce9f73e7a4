"""SQL over result stores, by DuckDB in memory. A query can read the tables below and nothing else: no file, no network.

Tables: `runs` and `flows` over all folders; `nights` over all histories of `manet nightly`; one of the runs of each folder
(`table_names`), and of its experiment's name if no other folder has it; `columns` with the type, unit and meaning of all columns.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pyarrow as pa

from analysis.nights import table as nights
from analysis.store import schema
from analysis.store.files import NAMES, read
from record.errors import QueryError

RUNS, FLOWS, NIGHTS, COLUMNS = "runs", "flows", "nights", "columns"
MAX_MEMORY = "2GB"
MAX_ROWS = 1_000_000  # of an answer, which is held in memory
SETTINGS = ("python_enable_replacements = false", "enable_external_access = false", "lock_configuration = true")
READS = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
SURROGATE = re.compile("[\ud800-\udfff]")  # Python's stand-in for a byte of the command line that is not UTF-8
FIRST_LINE = re.compile(r"\s*\n\s*")


def answer(query: str, folders: Iterable[Path], histories: Iterable[Path] = ()) -> pa.Table:
    """The rows of a query over the stores in these folders, and the histories of nights.

    Raises QueryError, and RunFileError for a damaged store."""
    if SURROGATE.search(query):
        raise QueryError("the query is not UTF-8; correct the encoding of the terminal or file")
    tables = tables_of(list(folders), list(histories))
    with duckdb.connect(config={"memory_limit": MAX_MEMORY, "autoload_known_extensions": False}) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        for setting in SETTINGS:
            connection.execute(f"SET {setting}")
        try:
            statements = connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type not in READS:
                raise QueryError("the query is not one SELECT; give one statement that reads")
            relation = connection.sql(query)
            return _bounded(relation.to_arrow_reader() if relation is not None else None)
        except duckdb.Error as problem:
            raise QueryError(_one_line(str(problem), tables)) from None


def _bounded(reader: pa.RecordBatchReader | None) -> pa.Table:
    """All rows of an answer; QueryError for more than MAX_ROWS."""
    if reader is None:
        return pa.table({})
    batches: list[pa.RecordBatch] = []
    for batch in reader:
        batches.append(batch)
        if sum(len(one) for one in batches) > MAX_ROWS:
            raise QueryError(f"the answer has more than {MAX_ROWS} rows; add a LIMIT, or read runs.parquet with DuckDB or polars")
    return pa.Table.from_batches(batches, reader.schema)


def tables_of(folders: list[Path], histories: Iterable[Path] = ()) -> dict[str, pa.Table]:
    """The tables of a query by name."""
    runs = {folder: read(folder) for folder in folders}
    flows = [read(folder, schema.FLOWS) for folder in folders if (folder / NAMES[schema.FLOWS]).is_file()]
    tables = {RUNS: schema.joined(list(runs.values()), schema.RUNS), FLOWS: schema.joined(flows, schema.FLOWS)}
    if of_nights := [nights.read(history) for history in histories]:
        tables[NIGHTS] = pa.concat_tables(of_nights)
    tables |= {name: runs[folder] for folder, name in table_names(folders).items()}
    # an experiment's name where one folder alone is of it, and none is called so: sizes of one experiment are never mixed
    experiments = {folder: view_name(str(table["experiment"][0])) for folder, table in runs.items() if len(table)}
    common = Counter(experiments.values())
    taken = {*tables, *(view_name(folder.resolve().name) for folder in folders)}
    tables |= {name: runs[folder] for folder, name in experiments.items() if common[name] == 1 and name not in taken}
    return tables | {COLUMNS: _columns(tables)}


def table_names(folders: list[Path]) -> dict[Path, str]:
    """The table of each folder: its name; if others have the same, or it is that of another table, with as many of the folders
    above it in front as tell them apart. Names that are the same up to the root get a number."""
    names: dict[Path, str] = {}
    open_names, taken = {folder: folder.resolve().parts for folder in folders}, {RUNS, FLOWS, NIGHTS, COLUMNS}
    for depth in range(1, max(map(len, open_names.values()), default=0) + 1):
        candidates = {folder: view_name("_".join(parts[-depth:]).strip("/")) for folder, parts in open_names.items()}
        common = Counter(candidates.values())
        found = {folder: name for folder, name in candidates.items() if common[name] == 1 and name not in taken}
        names, taken = names | found, {*taken, *found.values()}
        open_names = {folder: parts for folder, parts in open_names.items() if folder not in found}
    for number, (folder, parts) in enumerate(open_names.items(), 1):
        names[folder] = view_name("_".join([*parts, str(number)]).strip("/"))
    return names


def view_name(name: str) -> str:
    """The name of a table: that of a folder or experiment with `_` for each character that SQL would want quoted."""
    word = re.sub(r"\W", "_", name.lower())
    return f"_{word}" if word[:1].isdigit() else word


def _columns(tables: dict[str, pa.Table]) -> pa.Table:
    columns = [(name, field, field.metadata or {}) for name, table in tables.items() for field in table.schema]
    return pa.table(
        {
            "table_name": [name for name, _, _ in columns],
            "column_name": [field.name for _, field, _ in columns],
            "column_type": [str(field.type) for _, field, _ in columns],
            "unit": [_text(metadata, b"unit") for _, _, metadata in columns],
            "about": [_text(metadata, b"about") for _, _, metadata in columns],
        }
    )


def _text(metadata: dict[bytes, bytes], key: bytes) -> str | None:
    return metadata[key].decode(errors="replace") if key in metadata else None


def _one_line(problem: str, tables: dict[str, pa.Table]) -> str:
    """DuckDB's message without the query's line and its caret; for an unknown table the known ones."""
    text = FIRST_LINE.sub(" ", problem.split("\nLINE ")[0]).strip()
    return f"{text}; the tables are {', '.join(tables)}" if "Table with name" in text else text
