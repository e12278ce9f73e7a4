"""Columns of runs.parquet and flows.parquet (formats/store.md): name, type, unit and meaning, and tables of other versions.

A version of the format only adds columns. A reader takes columns by name: one that a file lacks is empty, one that it does not
know is kept. The format gets a new number if a column changes its meaning; `current` then translates the older ones.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from analysis.tables.results import FLOW_METRICS, METRICS, SOME_METRICS

RUNS, FLOWS = "manet-runs/1", "manet-flows/1"
FORMAT = b"format"  # the key in the metadata of a file
AXIS = "axis_"  # before the name of an axis that is also the name of another column
TIME = pa.timestamp("us", tz="UTC")


def column(name: str, kind: pa.DataType, about: str = "", unit: str = "", role: str = "") -> pa.Field:
    """A column with its unit, meaning and role in the metadata of its field."""
    metadata = {"unit": unit, "about": about, "role": role}
    return pa.field(name, kind, metadata={key: text for key, text in metadata.items() if text})


PLACE = (
    column("experiment", pa.string(), "name of the experiment"),
    column("cell", pa.string(), "folder of the cell"),
    column("variant", pa.string(), "variant of the experiment; empty without variants"),
)
# The axes stand between these groups.
OUTCOME = (
    column("seed", pa.int64(), "seed of the random streams"),
    column("profile", pa.string(), "TCP profile of the scenario: period or modern"),
    column("verdict", pa.string(), "verdict.json: valid, suspect or void; empty without one"),
    column("status", pa.string(), "run.json: complete, failed or interrupted"),
    column("ending", pa.string(), "verdict and status in one word: valid, suspect, void, failed or interrupted"),
    column("counts", pa.bool_(), "whether the run may stand in a mean or a figure"),
    column("aside", pa.bool_(), "put aside into <cell>/void and rerun: in no table"),
    column("error", pa.string(), "reason of a run that failed, or of a verdict that is not valid"),
)
ORIGIN = (
    column("checks", pa.string(), 'ok, the failed checks with ";" between them, or "no metrics" before the run was measured'),
    column("run_dir", pa.string(), "directory of the run, relative to the folder of results"),
    column("run_id", pa.string(), "id of run.json, unlike that of any other run"),
    column("started", TIME, "start of the run"),
    column("ended", TIME, "end of the run"),
    column("wall_s", pa.float64(), "time of the host from start to end", "s"),
    column("emulated_s", pa.float64(), "model time of the medium", "s"),
    column("clock", pa.string(), "real or virtual"),
    column("tcp", pa.string(), "the TCP of flow 1 with its parameters, as recorded"),
    column("commit", pa.string(), "commit of the checkout; + if files differed from it"),
    column("kernel", pa.string(), "release of the kernel"),
    column("versions", pa.string(), "versions of the programs, a JSON object"),
    column("host", pa.string(), "name of the machine"),
    column("cpus", pa.int64(), "processors of the machine"),
    column("scenario_sha256", pa.string(), "SHA-256 of scenario.json, equal for all seeds of a cell"),
    column("written", TIME, "time at which this row was made"),
)
METRIC_COLUMNS = tuple(column(name, pa.float64(), unit=unit, role="metric") for name, (unit, _, _) in METRICS.items())
FLOW = (
    column("flow", pa.string(), "flow1, flow2, ..., as in metrics.json"),
    column("traffic", pa.string(), "traffic kind"),
    column("source", pa.string(), "station or host that sends"),
    column("target", pa.string(), "station or host that receives"),
)
OF_FLOWS = FLOW_METRICS | SOME_METRICS
FLOW_COLUMNS = tuple(column(name, pa.float64(), unit=unit, role="metric") for name, (unit, _, _) in OF_FLOWS.items())
OF_RUN = tuple(field for field in OUTCOME if field.name in ("seed", "profile", "ending", "counts"))
GROUPS = {
    RUNS: (PLACE, (*OUTCOME, *METRIC_COLUMNS, *ORIGIN)),
    FLOWS: (PLACE, (*OF_RUN, *FLOW, *FLOW_COLUMNS, next(field for field in ORIGIN if field.name == "run_dir"))),
}


class ForeignFile(ValueError):
    """A table that is no result store; the text has the reason."""


def axis_column(axis: str, form: str = RUNS) -> str:
    """The name of an axis' column: its own, or with AXIS before it. The axis `profile` is the column `profile`."""
    taken = {field.name for group in GROUPS[form] for field in group}
    return f"{AXIS}{axis}" if axis in taken and axis != "profile" else axis


def table_of(rows: Iterable[Mapping[str, Any]], form: str, units: Mapping[str, str] | None = None) -> pa.Table:
    """The table of rows whose entry `axes` holds the values of the axes; `units` of axes, as in experiment.json."""
    rows = list(rows)
    axes = list(dict.fromkeys(axis for row in rows for axis in row["axes"] if axis != "profile"))
    before, after = GROUPS[form]
    fields, columns = list(before), [[row.get(field.name) for row in rows] for field in before]
    for axis in axes:
        values = [row["axes"].get(axis) for row in rows]
        kind = _kind(values)
        fields.append(column(axis_column(axis, form), kind, "axis of the experiment", (units or {}).get(axis) or "", "axis"))
        columns.append([str(value) if pa.types.is_string(kind) and value is not None else value for value in values])
    fields += after
    columns += [[row.get(field.name) for row in rows] for field in after]
    arrays = [pa.array(values, field.type) for field, values in zip(fields, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata={FORMAT: form.encode()}))


def current(table: pa.Table, form: str) -> pa.Table:
    """A table of any version with all columns of this one, in their order, and the unknown ones behind them. ForeignFile for one
    that is no store, or whose column of a known name holds another type."""
    _check_format(table, form)
    before, after = GROUPS[form]
    known = {field.name for group in (before, after) for field in group}
    others = [field for field in table.schema if field.name not in known]
    axes = [field for field in others if (field.metadata or {}).get(b"role") == b"axis"]
    fields = [*before, *axes, *after, *(field for field in others if field not in axes)]
    return pa.Table.from_arrays(
        [_column(table, field) for field in fields], schema=pa.schema(fields, metadata={FORMAT: form.encode()})
    )


def joined(tables: list[pa.Table], form: str) -> pa.Table:
    """All rows of `current` tables. A column whose types differ holds floats, or texts if one is not a number."""
    if not tables:
        return table_of([], form)
    fields: dict[str, pa.Field] = {}
    for field in (field for table in tables for field in table.schema):
        first = fields.setdefault(field.name, field)
        fields[field.name] = first.with_type(_common(first.type, field.type))
    schema = pa.schema(list(fields.values()), metadata={FORMAT: form.encode()})
    parts = [pa.Table.from_arrays([_column(table, field) for field in schema], schema=schema) for table in tables]
    return current(pa.concat_tables(parts), form)


def _check_format(table: pa.Table, form: str) -> None:
    version = (table.schema.metadata or {}).get(FORMAT, b"").decode(errors="replace")
    name = form.partition("/")[0]
    if not re.fullmatch(rf"{name}/[1-9][0-9]{{0,3}}", version):
        raise ForeignFile(f'is no "{form}"')
    if len(set(table.schema.names)) != len(table.schema.names):
        raise ForeignFile("has two columns of one name")


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    if field.name not in table.schema.names:
        return pa.chunked_array([pa.nulls(len(table), field.type)])
    try:
        return table.column(field.name).cast(field.type)
    except pa.ArrowException:
        raise ForeignFile(f'column "{field.name}" is no {field.type}') from None


def _common(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in (first, second))
    return pa.float64() if numbers else pa.string()


def _kind(values: list[Any]) -> pa.DataType:
    """The type of an axis: bool, int64, float64, or string for all else."""
    present = [value for value in values if value is not None]
    for kinds, arrow in (((bool,), pa.bool_()), ((int,), pa.int64()), ((int, float), pa.float64())):
        if present and all(isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)) for value in present):
            return arrow if arrow != pa.int64() or all(abs(value) < 1 << 63 for value in present) else pa.string()
    return pa.string()
