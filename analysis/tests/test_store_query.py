"""SQL over result stores: names of the tables, and the limits of a query."""

from pathlib import Path

import pytest

from analysis.store import files, query
from analysis.store.rows import now
from analysis.tables.results import collect
from analysis.tests.test_tables import EXPERIMENT, make_run
from record.errors import QueryError


def folder(out: Path, kbps: float) -> Path:
    """A folder of results of hv-fig1 with one run."""
    make_run(out, "ns2", 2, 1, kbps)
    files.write(collect(out, EXPERIMENT), now())
    return out


@pytest.fixture
def folders(tmp_path):
    return [folder(tmp_path / "hv-fig1", 600.0), folder(tmp_path / "hv-fig1-quick", 500.0), folder(tmp_path / "2026 test", 400.0)]


def rows(text: str, folders: list[Path]) -> list[tuple]:
    return [tuple(row.values()) for row in query.answer(text, folders).to_pylist()]


def test_each_folder_is_a_table_and_all_are_in_runs(folders):
    assert rows("select sum(acked_kbps) from runs", folders) == [(1500.0,)]
    for name, kbps in (("hv_fig1", 600.0), ("hv_fig1_quick", 500.0), ("_2026_test", 400.0)):
        assert rows(f"select acked_kbps from {name}", folders) == [(kbps,)]


def test_the_name_of_the_experiment_is_a_table_where_it_is_unambiguous(folders):
    assert rows("select acked_kbps from hv_fig1", folders[2:]) == [(400.0,)]
    with pytest.raises(QueryError, match="the tables are runs, flows, hv_fig1_quick, _2026_test, columns"):
        query.answer("select acked_kbps from hv_fig1", folders[1:])


def test_folders_of_the_same_name_are_told_apart_by_the_folders_above(tmp_path):
    """The short name is no table then, also not that of a third folder whose experiment is called so."""
    places = ["campaign-hv/hv-fig1", "results/hv-fig1", "other", "runs"]
    folders = [folder(tmp_path / place, kbps) for place, kbps in zip(places, (600.0, 500.0, 400.0, 300.0), strict=True)]
    above = query.view_name(tmp_path.name)
    names = ("campaign_hv_hv_fig1", "results_hv_fig1", "other", f"{above}_runs")
    assert [rows(f"select acked_kbps from {name}", folders) for name in names] == [[(600.0,)], [(500.0,)], [(400.0,)], [(300.0,)]]
    with pytest.raises(QueryError, match=f"the tables are runs, flows, {names[2]}, {names[0]}, {names[1]}, {names[3]}, columns"):
        query.answer("select * from hv_fig1", folders)


def test_names_that_differ_in_no_letter_of_sql_get_a_number(tmp_path):
    folders = [folder(tmp_path / name, kbps) for name, kbps in (("a-b", 600.0), ("a_b", 500.0))]
    assert [name[-6:] for name in query.table_names(folders).values()] == ["_a_b_1", "_a_b_2"]
    assert [rows(f"select acked_kbps from {name}", folders) for name in query.table_names(folders).values()] == [
        [(600.0,)],
        [(500.0,)],
    ]


def test_units_and_meanings_are_a_table(folders):
    text = "select column_type, unit from columns where table_name = 'runs' and column_name = 'acked_kbps'"
    assert rows(text, folders) == [("double", "kbit/s")]


def test_flows_are_a_table(folders):
    assert rows("select flow, acked_kbps from flows order by all", folders) == [
        ("flow1", 400.0),
        ("flow1", 500.0),
        ("flow1", 600.0),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "selct", "", ";", "select * from nowhere", "select nothing from runs", "select 1; select 2", "drop view runs",
        "create table t as select 1", "insert into runs select * from runs", "pragma database_list", "call pragma_version()",
        "set enable_external_access = true", "install httpfs", "load httpfs", "select * from runs where seed = 'a'", "select 1 +",
        "select error('a\nb')", "select '" + "x" * 10_000,
    ],
)  # fmt: skip
def test_a_query_that_is_wrong_or_changes_something_is_an_error_of_one_line(folders, text):
    with pytest.raises(QueryError) as problem:
        query.answer(text, folders)
    assert len(str(problem.value).splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "copy runs to '{}'", "copy (select 1) to '{}' (format parquet)", "attach '{}'", "export database '{}'",
        "copy (select 1) to '{}' (format csv, use_tmp_file false)", "attach '{}' as other (type sqlite)", "vacuum into '{}'",
    ],
)  # fmt: skip
def test_a_query_writes_no_file(folders, tmp_path, text):
    target = tmp_path / "written"
    with pytest.raises(QueryError):
        query.answer(text.format(target), folders)
    assert not target.exists()


@pytest.mark.parametrize(
    "text",
    [
        "select * from '{}'", "select * from read_csv('{}')", "select * from read_text('{}')", "select * from read_blob('{}')",
        "select * from read_parquet('{}')", "select * from parquet_metadata('{}')", "select * from glob('{}')",
        "select * from read_json('{}')", "select * from sniff_csv('{}')", "from read_csv_auto('{}')",
        "explain analyze select * from read_text('{}')",
    ],
)  # fmt: skip
def test_a_query_reads_no_other_file(folders, tmp_path, text):
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    with pytest.raises(QueryError):
        query.answer(text.format(secret), folders)


def test_a_query_does_not_see_variables_of_the_program(folders):
    """DuckDB would replace an unknown table by a variable of its caller: `tables` is one."""
    with pytest.raises(QueryError, match="does not exist"):
        query.answer("select * from tables", folders)


def test_an_answer_without_an_end_is_refused(folders, monkeypatch):
    monkeypatch.setattr(query, "MAX_ROWS", 5000)
    with pytest.raises(QueryError, match="more than 5000 rows; add a LIMIT"):
        query.answer("select seed, x from runs, range(1000000000000) r(x)", folders)
