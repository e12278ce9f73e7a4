"""The result store: rows of runs, pending and whole files, and their readers."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

from analysis.store import files, schema
from analysis.store.rows import now
from analysis.tables.results import collect
from analysis.tests.test_tables import EXPERIMENT, make_run, metrics_of
from record.errors import RunFileError


@pytest.fixture
def results(tmp_path):
    """A folder of results: three runs of which one is void, and one put aside."""
    for seed, (kbps, verdict) in enumerate(((600.0, "valid"), (620.0, "suspect"), (9.0, "void")), start=1):
        make_run(tmp_path, "ns2", 2, seed, kbps, verdict)
    make_run(tmp_path, "ns2", 1, 1, None, "void")
    aside = tmp_path / "ns2-hops1" / "void"
    aside.mkdir()
    (tmp_path / "ns2-hops1" / "seed-1").rename(aside / "seed-1-try-1")
    (tmp_path / "experiment.json").write_text(json.dumps(EXPERIMENT | {"units": {"hops": "hops"}}))
    return tmp_path


def written(results: Path) -> list[dict]:
    files.write(collect(results), now())
    return files.read_folder(results).to_pylist()


def test_every_run_has_a_row_with_its_ending(results):
    rows = {row["run_dir"]: row for row in written(results)}
    assert {name: (row["ending"], row["counts"], row["aside"]) for name, row in rows.items()} == {
        "ns2-hops2/seed-1": ("valid", True, False),
        "ns2-hops2/seed-2": ("suspect", True, False),
        "ns2-hops2/seed-3": ("void", False, False),
        "ns2-hops1/void/seed-1-try-1": ("void", False, True),
    }
    assert [rows[f"ns2-hops2/seed-{seed}"]["acked_kbps"] for seed in (1, 2, 3)] == [600.0, 620.0, 9.0]
    assert (rows["ns2-hops2/seed-1"]["hops"], rows["ns2-hops2/seed-1"]["experiment"]) == (2, "hv-fig1")


def test_a_run_put_aside_with_values_of_other_types_has_no_row(results):
    path = results / "ns2-hops1" / "void" / "seed-1-try-1" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seed": "one"}))
    assert len(written(results)) == 3
    files.append(path.parent, results)
    assert len(files.read_folder(results)) == 3


def test_origin_and_durations_are_those_of_run_json(results):
    path = results / "ns2-hops2" / "seed-1" / "run.json"
    more = {"id": "0123", "started": "2026-11-23T21:02:43.500+00:00", "ended": "2026-11-23T23:02:56.750+02:00",
            "commit": "abc+", "kernel": "6.12", "host": {"name": "vm", "cpus": 2}, "tcp": {"flow1": "newreno"},
            "versions": {"iperf3": "3.12"}}  # fmt: skip
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
    row = next(row for row in written(results) if row["run_dir"] == "ns2-hops2/seed-1")
    assert row["wall_s"] == 13.25  # 21:02:56.75 - 21:02:43.5, both in UTC
    assert (row["run_id"], row["commit"], row["kernel"], row["host"], row["cpus"]) == ("0123", "abc+", "6.12", "vm", 2)
    assert (row["tcp"], json.loads(row["versions"])) == ("newreno", {"iperf3": "3.12"})


def test_columns_have_units_and_meanings(results):
    written(results)
    fields = pq.read_schema(results / "runs.parquet")
    assert fields.field("acked_kbps").metadata[b"unit"] == b"kbit/s"
    assert fields.field("hops").metadata == {b"unit": b"hops", b"about": b"axis of the experiment", b"role": b"axis"}
    assert fields.metadata[b"format"] == b"manet-runs/1"
    without = [field.name for field in fields if not {b"about", b"unit"} & (field.metadata or {}).keys()]
    assert without == []


def test_a_run_is_in_the_store_as_soon_as_it_is_appended_and_measured_later(tmp_path):
    make_run(tmp_path, "ns2", 2, 1, None)
    run = tmp_path / "ns2-hops2" / "seed-1"
    files.append(run)
    (row,) = files.read_folder(tmp_path).to_pylist()
    assert (row["checks"], row["acked_kbps"], row["ending"]) == ("no metrics", None, "valid")
    make_run(tmp_path / "measured", "ns2", 2, 1, 600.0)
    (run / "metrics.json").write_text((tmp_path / "measured/ns2-hops2/seed-1/metrics.json").read_text())
    files.append(run)
    (row,) = files.read_folder(tmp_path).to_pylist()
    assert (row["checks"], row["acked_kbps"]) == ("ok", 600.0)


def test_a_rerun_replaces_the_row_of_its_place(results):
    written(results)
    with metrics_of(results / "ns2-hops2" / "seed-1") as metrics:
        metrics["flows"]["flow1"]["acked_bps"] = 7e3
    files.append(results / "ns2-hops2" / "seed-1")
    assert sorted(row["acked_kbps"] or 0 for row in files.read_folder(results).to_pylist()) == [0, 7, 9, 620]
    files.merge(results)
    assert sorted(row["acked_kbps"] or 0 for row in pq.read_table(results / "runs.parquet").to_pylist()) == [0, 7, 9, 620]
    assert not (results / files.PENDING).exists()


def test_pending_rows_are_moved_when_there_are_many(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MERGE_AT", 3)
    for seed in range(1, 6):
        make_run(tmp_path, "ns2", 2, seed, 600.0 + seed)
        files.append(tmp_path / "ns2-hops2" / f"seed-{seed}")
    assert pq.read_table(tmp_path / "runs.parquet")["seed"].to_pylist() == [1, 2, 3]
    assert files.read_folder(tmp_path)["seed"].to_pylist() == [1, 2, 3, 4, 5]


def test_a_large_table_is_replaced_less_often(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MERGE_AT", 2)
    monkeypatch.setattr(files, "MERGE_SHARE", 1.0)
    moved = []
    for seed in range(1, 8):
        make_run(tmp_path, "ns2", 2, seed, 600.0 + seed)
        files.append(tmp_path / "ns2-hops2" / f"seed-{seed}")
        moved.append(pq.read_table(tmp_path / "runs.parquet").num_rows if (tmp_path / "runs.parquet").exists() else 0)
    assert moved == [0, 2, 2, 4, 4, 4, 4]
    assert files.read_folder(tmp_path)["seed"].to_pylist() == list(range(1, 8))


def test_a_writer_that_waited_holds_the_lock_file_that_the_next_one_opens(tmp_path):
    """Its last holder removes the file, with the folder of the rows that it has moved."""

    def hold():
        with files._locked(tmp_path) as alone:
            return alone, (tmp_path / files.PENDING / files.LOCK).exists()

    with ThreadPoolExecutor(1) as pool:
        with files._locked(tmp_path):
            waiting = pool.submit(hold)
            time.sleep(0.05)  # most likely it waits; if not, it finds no file and makes one
            (tmp_path / files.PENDING / files.LOCK).unlink()
        assert waiting.result(timeout=60) == (True, True)


def test_many_writers_at_once_lose_and_repeat_no_row(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MERGE_AT", 2)
    for seed in range(1, 41):
        make_run(tmp_path, "ns2", 2, seed, 600.0 + seed)

    def enter(seeds: range) -> None:
        for seed in seeds:
            files.append(tmp_path / "ns2-hops2" / f"seed-{seed}")

    writers = [threading.Thread(target=enter, args=(range(first, 41, 4),)) for first in range(1, 5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert files.read_folder(tmp_path)["seed"].to_pylist() == list(range(1, 41))
    files.merge(tmp_path)
    assert pq.read_table(tmp_path / "runs.parquet")["seed"].to_pylist() == list(range(1, 41))


def test_a_crash_between_replacing_and_removing_shows_no_run_twice(results, monkeypatch):
    files.append(results / "ns2-hops2" / "seed-1")

    def crash(*_arguments, **_named):
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", crash)
        with pytest.raises(SystemExit):
            files.merge(results)
    assert (results / "runs.parquet").exists() and list((results / files.PENDING).glob("*.json"))
    assert len(files.read_folder(results)) == 1
    files.merge(results)
    assert len(pq.read_table(results / "runs.parquet")) == 1


def test_a_run_that_ends_while_the_tables_are_made_stays(results):
    began = now()
    collected = collect(results)
    make_run(results, "ns2", 2, 4, 640.0)
    files.append(results / "ns2-hops2" / "seed-4")
    files.write(collected, began)
    assert "ns2-hops2/seed-4" in pq.read_table(results / "runs.parquet")["run_dir"].to_pylist()


def test_a_run_that_was_left_out_leaves_the_store(results):
    """A run moved out of the results before the report has no row after it, even if its row was pending."""
    files.append(results / "ns2-hops2" / "seed-1")
    (results / "ns2-hops2" / "seed-1").rename(results.with_name("elsewhere"))
    assert "ns2-hops2/seed-1" not in [row["run_dir"] for row in written(results)]


@pytest.mark.parametrize(
    ("values", "read"),
    [
        (((1, 2), (2, 3)), [1, 2]), (((1, 2), (0.5, 3)), [0.5, 1.0]), (((1, 2), ("x", 3)), ["1", "x"]),
        (((True, 2), (False, 3)), [False, True]), (((2**70, 2),), [str(2**70)]), ((({"a": 1}, 2),), ['{"a": 1}']),
    ],
)  # fmt: skip
def test_an_axis_has_the_type_of_its_values(tmp_path, values, read):
    """Also when a run of another type is entered later."""
    for axis, seed in values:
        make_run(tmp_path, "ns2", seed, seed, 600.0)
        path = tmp_path / f"ns2-hops{seed}" / f"seed-{seed}" / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"axes": {"x": axis}}))
        files.append(path.parent)
    files.merge(tmp_path)
    found = pq.read_table(tmp_path / "runs.parquet")["x"].to_pylist()
    assert sorted(found) == read and {type(value) for value in found} == {type(value) for value in read}


def test_an_axis_named_like_a_column_gets_another_name():
    row = {"axes": {"loss": 0.1, "profile": "modern", "hops": 3}, "loss": 0.5, "profile": "modern"}
    table = schema.table_of([row], schema.RUNS)
    assert [table[name].to_pylist() for name in ("loss", "axis_loss", "profile", "hops")] == [[0.5], [0.1], ["modern"], [3]]


def test_flows_have_rows_of_their_own(results):
    with metrics_of(results / "ns2-hops2" / "seed-1") as metrics:
        metrics["flows"]["flow2"] = {"acked_bps": 5e3, "traffic": "bulk", "from": "sta3", "to": "sta1"}
    written(results)
    rows = files.read_folder(results, schema.FLOWS).to_pylist()
    second = next(row for row in rows if row["flow"] == "flow2")
    assert len(rows) == 4
    assert [second[name] for name in ("run_dir", "acked_kbps", "source", "target", "hops", "counts")] == [
        "ns2-hops2/seed-1", 5.0, "sta3", "sta1", 2, True,
    ]  # fmt: skip


@pytest.mark.cluster
def test_pandas_reads_the_file_in_one_line(results):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: ./setup.sh --cluster, whose Snakemake needs it")
    written(results)
    assert pandas.read_parquet(str(results / "runs.parquet")).query("counts")["acked_kbps"].mean() == 610


def test_polars_and_duckdb_read_the_file_in_one_line(results):
    written(results)
    path = str(results / "runs.parquet")
    assert pl.read_parquet(path).filter("counts")["acked_kbps"].mean() == 610
    assert duckdb.sql(f"select avg(acked_kbps) from '{path}' where counts").fetchall() == [(610.0,)]


def test_a_folder_without_a_store_names_the_remedy(tmp_path):
    with pytest.raises(RunFileError, match=r"no runs.parquet; `./manet report .*` writes it"):
        files.read_folder(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"run,seed\n"])
def test_a_damaged_file_is_named_with_the_remedy(results, damage):
    (results / "runs.parquet").write_bytes(damage)
    with pytest.raises(RunFileError, match=r"runs.parquet: cannot be read as Parquet; remove it"):
        files.read_folder(results)


def test_the_report_repairs_a_damaged_store(results):
    (results / "runs.parquet").write_bytes(b"PAR1")
    assert len(written(results)) == 4


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"format": "manet-runs/1", "axes": {}, "row": 1}', '{"format": "x"}'])
def test_a_damaged_pending_row_is_named_with_the_remedy(results, text):
    files.append(results / "ns2-hops2" / "seed-1")
    (part,) = (results / files.PENDING).glob("*.json")
    part.write_text(text)
    with pytest.raises(RunFileError, match=r"json: is no row of a run; remove it"):
        files.read_folder(results)


def test_a_pending_row_of_other_types_is_named_with_the_remedy(results):
    files.append(results / "ns2-hops2" / "seed-1")
    (part,) = (results / files.PENDING).glob("*.json")
    part.write_text(part.read_text().replace('"seed": 1', '"seed": "one"'))
    with pytest.raises(RunFileError, match="holds rows of another kind; remove it"):
        files.read_folder(results)
