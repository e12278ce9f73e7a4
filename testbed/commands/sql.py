"""`manet sql`: a query over the runs of experiments, from their result stores (formats/store.md)."""

import argparse
import math
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.commands.options import NO_STORE, add_verb, folder, results_folder

if TYPE_CHECKING:
    import pyarrow as pa

EXAMPLES = """
  ./manet sql "select variant, hops, avg(acked_kbps), count(*)
               from hv_fig1 where counts group by all order by all"
                    the means of results/hv-fig1
  ./manet sql "select * from columns where table_name = 'runs'"
                    columns with unit and meaning
  ./manet sql "select folder, ending, count(*) from runs group by all"
                    how the runs of every experiment ended
  ./manet sql "select experiment, seed, host from runs where ending = 'void'" \\
              /tmp/odd-hops results --json

Tables: runs and flows (of all folders), nights (of `manet nightly`), one of
each folder's runs with its name and "_" for "-", and columns. Folders of the
same name have the name of the folder above in front (campaign_hv_hv_fig1). A
query reads nothing else and writes nothing. Put `where counts` before you take
a mean: void runs have rows. Runs whose files were changed after their rows were
written are named, and the status is 1.
"""


NAMED_RUNS = 3  # at most so many runs that were changed
MIN_COLUMN = 12  # characters of a column on a terminal, with its border
UNLIMITED = 100_000  # characters of a line in a file or pipe


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "sql", "query the runs of experiments with SQL", EXAMPLES)
    parser.add_argument("query", metavar="QUERY", help="a query in DuckDB's SQL")
    parser.add_argument("folders", metavar="FOLDER", nargs="*", type=folder,
                        help="a folder of results, or one that holds such folders (default: results)")  # fmt: skip
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV")
    form.add_argument("--json", action="store_true", help="print a JSON array with an object for each row")


def run(options: argparse.Namespace) -> int:
    """Answer the query on standard output; returns 1 if files of runs in the answer's tables were changed since."""
    import csv
    import json

    from analysis.store.query import answer
    from testbed.output import exact

    folders, histories = _stores(options.folders)
    table = answer(options.query, folders, histories)
    if options.json:
        print(json.dumps(_objects(table), default=str, indent=1))
    elif options.csv:
        writer = csv.writer(sys.stdout if sys.stdout.isatty() else exact(sys.stdout), lineterminator="\n")
        writer.writerows([table.column_names, *_rows(table)])
    elif table.column_names:
        _print(table)
    return _changed(folders)


def _changed(folders: list[Path]) -> int:
    """Name the runs whose files differ from what was measured; 1 if there are any."""
    from analysis.store.stale import changed_runs

    of_folders = {place: changed_runs(place) for place in folders}
    for place, found in of_folders.items():
        if found.compared < found.runs:
            text = f"the files of {found.compared} of {found.runs} runs were compared; `./manet report {place}` compares all"
            print(f"manet sql: {place}: {text}", file=sys.stderr)
    changed = [(place, name, why) for place, found in of_folders.items() for name, why in found.reasons.items()]
    for place, name, why in changed[:NAMED_RUNS]:
        text = f"{place / name}: {why}; its row is of before: `./manet report {place}`"
        print(f"manet sql: {text}", file=sys.stderr)
    if len(changed) > NAMED_RUNS:
        print(f"manet sql: and {len(changed) - NAMED_RUNS} more runs", file=sys.stderr)
    return 1 if changed else 0


def _stores(folders: list[Path]) -> tuple[list[Path], list[Path]]:
    """The folders with a store, and those with a history of nights, each once whatever paths lead to it; UsageError for a named
    folder without one."""
    from analysis.nights.table import histories_below
    from analysis.store.files import stores_below
    from testbed.errors import UsageError

    stores: dict[Path, Path] = {}
    histories: dict[Path, Path] = {}
    for place in folders or [results_folder()]:
        below = stores_below(place)
        nights = histories_below(place)
        if not below and not nights:
            raise UsageError(f"{place}: {NO_STORE}")
        for path in below:
            stores.setdefault(path.resolve(), path)
        for path in nights:
            histories.setdefault(path.resolve(), path)
    return list(stores.values()), list(histories.values())


def _rows(table: "pa.Table") -> Iterator[tuple[Any, ...]]:
    columns = [_values(name, column) for name, column in zip(table.column_names, table.columns, strict=True)]
    return zip(*columns, strict=True) if columns else iter(())


def _values(name: str, column: "pa.ChunkedArray") -> list[Any]:
    """The values of a column; UsageError for those that Python has no type for, such as a date before the year 1."""
    import pyarrow as pa

    from testbed.errors import UsageError, shortened

    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError, TypeError, NotImplementedError, pa.ArrowException) as problem:
        text = f'column "{shortened(name)}": a value cannot be shown ({shortened(str(problem))})'
        raise UsageError(f'{text}; write "{shortened(name)}"::VARCHAR') from None
    return values


def _objects(table: "pa.Table") -> list[dict[str, Any]]:
    """The rows as JSON objects. JSON has no NaN and no infinity: such values are null. UsageError for columns of one name."""
    from testbed.errors import UsageError

    names = table.column_names
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f'--json: two columns are called "{twice[0]}"; name one with AS')
    return [{name: _finite(value) for name, value in zip(names, row, strict=True)} for row in _rows(table)]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print(table: "pa.Table") -> None:
    """The rows as a table, as wide as the terminal; numbers to the right, with at most six digits."""
    import pyarrow as pa
    from rich.table import Table
    from rich.text import Text

    from testbed.output import console, plain

    shown = Table()
    for field in table.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
        shown.add_column(Text(plain(field.name)), justify="right" if number else "left", overflow="fold")
    for row in _rows(table):
        shown.add_row(*(Text(plain(_text(value))) for value in row))
    least = MIN_COLUMN * table.num_columns  # wider than a terminal if need be: no column disappears
    console(max(shutil.get_terminal_size().columns, least) if sys.stdout.isatty() else UNLIMITED).print(shown)


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
