"""Files of the result store that other versions made stay readable (fixtures/store), and damaged ones are errors of one line.

`version-1.parquet` was written by the first version and is never written again. `fewer-columns.parquet` stands for an older
one: nine columns, narrower integers, no units. `version-2.parquet` stands for a newer one: unknown columns, another order and
compression. All three hold the same three runs.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.store import files, schema
from analysis.store.query import answer
from record.errors import RunFileError

CORPUS = Path(__file__).parent / "fixtures" / "store"
NAMES = ("version-1", "fewer-columns", "version-2")
ROWS = [("ns2-hops1", 1, 1, "valid", 1200.0), ("ns2-hops2", 2, 1, "valid", 600.0), ("ns2-hops2", 2, 2, "void", 9.0)]


def folder_of(tmp_path: Path, name: str) -> Path:
    """A folder of results with this file as its store."""
    out = tmp_path / name
    out.mkdir()
    (out / "runs.parquet").write_bytes((CORPUS / f"{name}.parquet").read_bytes())
    return out


@pytest.mark.parametrize("name", NAMES)
def test_files_of_every_version_give_the_same_runs(tmp_path, name):
    table = files.read_folder(folder_of(tmp_path, name))
    columns = [table[column].to_pylist() for column in ("cell", "hops", "seed", "ending", "acked_kbps")]
    assert list(zip(*columns, strict=True)) == ROWS


@pytest.mark.parametrize("name", NAMES)
def test_every_known_column_is_there_with_its_type_and_unit(tmp_path, name):
    found = files.read_folder(folder_of(tmp_path, name)).schema
    for field in (*schema.PLACE, *schema.OUTCOME, *schema.METRIC_COLUMNS, *schema.ORIGIN):
        assert found.field(field.name).type == field.type
        assert found.field(field.name).metadata == field.metadata


def test_columns_of_a_newer_version_are_kept(tmp_path):
    table = files.read_folder(folder_of(tmp_path, "version-2"))
    assert table["energy_j"].to_pylist() == [1.5, 2.5, 3.5]
    assert table["phases"].to_pylist() == [["setup"], ["setup", "traffic"], None]
    assert table.schema.field("energy_j").metadata[b"unit"] == b"J"


def test_a_query_joins_the_versions(tmp_path):
    folders = [folder_of(tmp_path, name) for name in NAMES]
    table = answer("select count(*) n, avg(acked_kbps) mean, sum(energy_j) energy from runs where counts", folders)
    assert table.to_pylist() == [{"n": 6, "mean": 900.0, "energy": 4.0}]


def test_a_run_is_appended_to_a_store_of_another_version(tmp_path):
    """Its former rows stay, with the columns that this version does not know."""
    from analysis.tests.test_tables import make_run

    out = folder_of(tmp_path, "version-2")
    make_run(out, "ns2", 3, 1, 400.0)
    files.append(out / "ns2-hops3" / "seed-1")
    files.merge(out)
    table = pq.read_table(out / "runs.parquet")
    assert list(zip(table["hops"].to_pylist(), table["energy_j"].to_pylist(), strict=True)) == [
        (1, 1.5), (2, 2.5), (2, 3.5), (3, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (pa.table({"seed": [1]}), 'is no "manet-runs/1"'),
        (pa.table({"seed": [1]}).replace_schema_metadata({"format": "manet-flows/1"}), 'is no "manet-runs/1"'),
        (pa.table({"seed": ["one"]}).replace_schema_metadata({"format": "manet-runs/3"}), 'column "seed" is no int64'),
    ],
)
def test_a_table_of_another_kind_is_refused_by_name(tmp_path, table, text):
    pq.write_table(table, tmp_path / "runs.parquet")
    with pytest.raises(RunFileError, match=text):
        files.read_folder(tmp_path)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(NAMES), data=st.data())
def test_a_file_with_any_bytes_changed_is_a_table_or_an_error_of_one_line(tmp_path_factory, name, data):
    content = bytearray((CORPUS / f"{name}.parquet").read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)) | st.none())
    out = tmp_path_factory.mktemp("fuzz")
    (out / "runs.parquet").write_bytes(content[:cut])
    try:
        assert files.read_folder(out).schema.names[0] == "experiment"
    except RunFileError as problem:
        assert len(str(problem).splitlines()) == 1
