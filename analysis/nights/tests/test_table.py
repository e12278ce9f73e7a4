"""nights.parquet, its series and its page."""

from datetime import UTC, datetime
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.nights import page, table
from record.errors import RunFileError


def row(night, value, repetition=1, **more):
    return {
        "night": f"n{night}", "date": datetime(2026, 1, night, tzinfo=UTC), "commit": f"c{night}", "part": "speed",
        "metric": "speed/x", "unit": "s", "value": value, "repetition": repetition, "run": f"r{repetition}",
        "machine": "m", "kernel": "k", "reference": "", "exact": False, "relevant": 0.03, "alarm": False, "baseline": False,
    } | more  # fmt: skip


def test_rows_are_read_as_they_were_appended(tmp_path):
    table.append(tmp_path, [row(1, 1.0), row(1, 2.0, 2)])
    table.append(tmp_path, [row(2, 3.0)])
    (series,) = table.series_of(table.read(tmp_path).to_pylist())
    assert [night.values for night in series.nights] == [(1.0, 2.0), (3.0,)]
    assert series.nights[0].runs == ("r1", "r2")


def test_another_machine_kernel_or_reference_is_another_series():
    rows = [row(1, 1.0), row(2, 1.0, machine="n"), row(3, 1.0, kernel="l"), row(4, 1.0, reference="r"), row(5, 1.0)]
    assert [len(series.nights) for series in table.series_of(rows)] == [2, 1, 1, 1]


def test_a_metric_that_is_not_watched_has_no_series():
    assert table.series_of([row(1, 1.0, relevant=None)]) == []


def test_accepting_makes_the_newest_night_the_baseline(tmp_path):
    table.append(tmp_path, [row(1, 1.0), row(2, 2.0, alarm=True), row(2, 2.0, metric="speed/y", alarm=True)])
    assert table.accept(tmp_path, ["speed/x"]) == 1
    assert [(one["metric"], one["baseline"], one["alarm"]) for one in table.read(tmp_path).to_pylist()] == [
        ("speed/x", False, False), ("speed/x", True, False), ("speed/y", False, True),
    ]  # fmt: skip


def test_a_missing_history_is_empty_and_a_foreign_file_is_refused(tmp_path):
    assert len(table.read(tmp_path)) == 0
    pq.write_table(pa.table({"a": [1]}), tmp_path / table.NAME)
    with pytest.raises(RunFileError, match=r'nights\.parquet: is no "manet-nights/1"'):
        table.read(tmp_path)
    (tmp_path / table.NAME).write_text("no Parquet")
    with pytest.raises(RunFileError, match="cannot be read"):
        table.read(tmp_path)


def test_a_history_of_other_types_or_with_any_damage_is_one_line(tmp_path):
    other = pa.table({"night": [1]}).replace_schema_metadata({"format": table.NIGHTS})
    pq.write_table(other, tmp_path / table.NAME)
    with pytest.raises(RunFileError, match="cannot be read"):
        table.read(tmp_path)
    (tmp_path / table.NAME).unlink()
    table.append(tmp_path, [row(1, 1.0)])
    content = (tmp_path / table.NAME).read_bytes()
    random = Random(1)
    for _ in range(200):
        damaged = bytearray(content)
        damaged[random.randrange(len(content))] = random.randrange(256)
        (tmp_path / table.NAME).write_bytes(damaged)
        try:
            table.read(tmp_path)
        except RunFileError as problem:
            assert len(str(problem).splitlines()) == 1


def test_the_page_marks_alarms_and_needs_nothing_from_elsewhere():
    text = page.rendered([row(1, 1.0), row(2, 1.0), row(3, 2.0, alarm=True), row(3, 1.0, metric="<b>")])
    assert text.count('class="changed"') == 2  # the figure and its last point
    assert "1 changed in the last" in text and "&lt;b&gt;" in text
    assert "<script" not in text and "http" not in text.replace("http-equiv", "")


def test_an_alarm_of_a_part_that_did_not_run_in_the_last_night_is_not_counted_in_it():
    other = {"part": "campaign", "metric": "campaign/y", "alarm": True}
    text = page.rendered([row(1, 1.0), row(2, 2.0, **other), row(3, 1.0)])
    assert "0 changed in the last" in text and "2 s, of n2" in text
    assert '<figure class="changed">' not in text
