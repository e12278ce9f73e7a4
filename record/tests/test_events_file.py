"""Rows of events.csv, of this version and of older ones."""

from pathlib import Path

from record.events_file import EVENTS_FILE, read_events


def test_a_run_without_events_has_no_rows(tmp_path: Path) -> None:
    assert read_events(tmp_path) == []


def test_a_file_without_sources_has_the_scenario_s_events_only(tmp_path: Path) -> None:
    (tmp_path / EVENTS_FILE).write_text("t_s,at_s,event,station,detail\n1,1,power,sta3,off\n")
    assert [row["source"] for row in read_events(tmp_path)] == ["scenario"]
    (tmp_path / EVENTS_FILE).write_text("t_s,at_s,event,station,detail,source\n1,,power,sta3,off,view\n")
    assert read_events(tmp_path)[0] == {
        "t_s": "1", "at_s": "", "event": "power", "station": "sta3", "detail": "off", "source": "view",
    }  # fmt: skip
