"""The air log: reading it, and pairing deliveries with captured frames."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.captures.air import (
    OPTIONAL,
    PACKET_SCHEMA,
    SCHEMA,
    air_summary,
    match_deliveries,
    read_air,
    read_data_attempts,
    read_packet_rows,
)
from record.errors import RunFileError

HEADER = ",".join([*SCHEMA, *OPTIONAL])
EPOCH_NS = 10**18


def _log(deliveries: list[tuple[int, int]]) -> pl.DataFrame:
    """A log of nothing but deliveries (time, bytes) at sta2."""
    rows = [
        (t, "sta2", "deliver", "data", "sta1", number, None, size, None, None, None, "", None, None)
        for number, (t, size) in enumerate(deliveries, start=1)
    ]
    return pl.DataFrame(rows, schema=SCHEMA | OPTIONAL, orient="row")


def _arrivals(frames: list[tuple[int, int]]) -> pl.DataFrame:
    return pl.DataFrame(
        {"t_ns": [EPOCH_NS + t for t, _ in frames], "ip_bytes": [size for _, size in frames]},
        schema={"t_ns": pl.Int64, "ip_bytes": pl.Int32},
    )


def test_rows_with_empty_numbers_are_read(tmp_path):
    path = tmp_path / "air.csv"
    path.write_text(
        f"{HEADER}\n5,sta1,tx,rts,sta2,1,1,20,1000000,352000,3,hidden,,-70.5\n9,sta1,drop,data,sta2,1,,1500,,,,retry-short,,\n"
    )
    air = read_air(path)
    assert air["fate"].to_list() == ["hidden", "retry-short"]
    assert air["power_dbm"].to_list() == [-70.5, None]
    assert air_summary(air, 0, 10)["stations"]["sta1"]["drops"] == {"retry-short": 1}


def test_a_log_from_before_it_had_the_received_power_is_read(tmp_path):
    path = tmp_path / "air.csv"
    path.write_text(f"{HEADER.removesuffix(',power_dbm')}\n5,sta1,tx,rts,sta2,1,1,20,1000000,352000,3,hidden,\n")
    assert read_air(path)["power_dbm"].to_list() == [None]
    assert read_air(path).schema == SCHEMA | OPTIONAL


def test_a_log_without_rows_is_silence(tmp_path):
    path = tmp_path / "air.csv"
    path.write_text(HEADER + "\n")
    assert air_summary(read_air(path), 0, 10**9) == {"window_s": 1.0, "stations": {}}


@pytest.mark.parametrize("read", [read_air, read_packet_rows])
@pytest.mark.parametrize("content", ["", "t_ns,station\n1,sta1\n", HEADER + "\nnow,sta1,tx,rts,sta2,1,1,20,1,1,3,hidden,,\n"])
def test_a_file_in_another_format_is_an_error_that_names_it(tmp_path, content, read):
    path = tmp_path / "air.csv"
    path.write_text(content)
    with pytest.raises(RunFileError, match=str(path)):
        read(path)


@pytest.mark.parametrize("damage", ["\x00\x00\x00", "9,sta1,tx,rts,sta2,one,1,20,1000000,352000,3,hidden,,\n"])
def test_damage_in_any_part_of_the_log_is_an_error_that_names_it(tmp_path, monkeypatch, damage):
    """The rows of packets are read in parts; of a log that a full disk or a killed medium cut, a part ends in the middle."""
    monkeypatch.setattr("analysis.captures.air.READ_AT_ONCE", 100)
    path, row = tmp_path / "air.csv", "5,sta1,tx,rts,sta2,1,1,20,1000000,352000,3,hidden,,-70.5\n"
    path.write_text(f"{HEADER}\n{row * 20}")
    assert len(read_packet_rows(path)) == 20 and read_packet_rows(path).columns == list(PACKET_SCHEMA)
    path.write_text(f"{HEADER}\n{row * 10}{damage}{row * 10}")
    with pytest.raises(RunFileError, match=f"{path}: not an air log"):
        read_packet_rows(path)


@pytest.mark.parametrize("text", ["hops = 2\n", '# a comment\n[a]\nb = "c, d, e"\nf = [1, 2, 3]\n', ""])
def test_a_file_that_is_no_air_log_is_refused_by_the_columns_that_it_lacks(tmp_path, text):
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    with pytest.raises(RunFileError, match=r"not an air log .*: no column t_ns"):
        read_data_attempts(path)


def test_a_column_more_is_no_error_and_the_received_power_is_read(tmp_path):
    path = tmp_path / "air.csv"
    rows = ("9,sta2,deliver,data,sta1,1,,1500,,,,,,-64.25,x", "9,sta1,tx,data,sta2,1,1,1500,1,1,0,delivered,1,,")
    path.write_text("\n".join([f"{HEADER},more", *rows]) + "\n")
    assert read_air(path)["power_dbm"].to_list() == [-64.25, None]


def test_columns_are_found_by_name(tmp_path):
    path = tmp_path / "air.csv"
    path.write_text(",".join(reversed(SCHEMA)) + "\n,,,,,1500,,1,sta1,data,deliver,sta2,9\n")
    assert read_air(path)["bytes"].to_list() == [1500]
    path.write_text(HEADER.replace(",receivers", "") + "\n9,sta2,deliver,data,sta1,1,,1500,,,,,\n")
    with pytest.raises(RunFileError, match="no column receivers"):
        read_air(path)


def test_stations_are_listed_in_the_order_people_count(tmp_path):
    path = tmp_path / "air.csv"
    lines = [f"5,sta{number},tx,rts,sta1,1,1,20,1000000,352000,3,delivered,,-60.0\n" for number in (10, 9, 2)]
    path.write_text(HEADER + "\n" + "".join(lines))
    assert list(air_summary(read_air(path), 0, 10)["stations"]) == ["sta2", "sta9", "sta10"]


def test_a_frame_missing_in_one_source_is_identified_by_its_size():
    log = _log([(100, 1500), (200, 40), (300, 1500)])
    missed = match_deliveries(log, _arrivals([(110, 1500), (310, 1500)]), "sta2", EPOCH_NS)
    assert (len(missed.matched), missed.only_air, missed.only_capture) == (2, 1, 0)
    extra = match_deliveries(log, _arrivals([(110, 1500), (210, 40), (250, 99), (310, 1500)]), "sta2", EPOCH_NS)
    assert (len(extra.matched), extra.only_air, extra.only_capture) == (3, 0, 1)


def test_a_window_that_cuts_an_a_mpdu_has_each_frame_once():
    """A-MPDUs of twenty full frames, then a short frame and nineteen full ones, each delivered at one instant and captured up to
    3 us later, so that a capture cut at the same instant begins with frames that the medium delivered before."""
    frames = [(1000 * ppdu, 200 if ppdu % 2 and mpdu == 0 else 1500) for ppdu in range(1, 11) for mpdu in range(20)]
    log, captured = _log(frames), _arrivals([(t + 3, size) for t, size in frames])
    for begin, end, ppdus in ((0, 20_000, 10), (4001, 20_000, 6), (0, 7001, 7), (4001, 7001, 3)):
        matching = match_deliveries(log, captured, "sta2", EPOCH_NS, (EPOCH_NS + begin, EPOCH_NS + end))
        assert (len(matching.matched), matching.only_air, matching.only_capture) == (20 * ppdus, 0, 0)
        assert set(matching.matched["lag_ns"]) == {3}


def test_a_frame_without_a_partner_counts_in_the_window_that_has_it():
    log, captured = _log([(100, 1500), (200, 40), (300, 1500)]), _arrivals([(110, 1500), (250, 99), (310, 1500)])
    for begin, end, alone in ((0, 1000, (1, 1)), (150, 210, (1, 0)), (220, 400, (0, 1)), (0, 150, (0, 0))):
        matching = match_deliveries(log, captured, "sta2", EPOCH_NS, (EPOCH_NS + begin, EPOCH_NS + end))
        assert (matching.only_air, matching.only_capture) == alone


def test_other_stations_deliveries_do_not_count():
    assert match_deliveries(_log([(100, 1500)]), _arrivals([]), "sta3", EPOCH_NS).only_air == 0


@given(st.lists(st.tuples(st.integers(1, 10**6), st.sampled_from([40, 576, 1500])), max_size=30), st.integers(0, 10**6))
def test_a_complete_capture_matches_whatever_the_lag(steps, lag_ns):
    times = [sum(step for step, _ in steps[: count + 1]) for count in range(len(steps))]
    frames = [(t, size) for t, (_, size) in zip(times, steps, strict=True)]
    matching = match_deliveries(_log(frames), _arrivals([(t + lag_ns, size) for t, size in frames]), "sta2", EPOCH_NS)
    assert (matching.only_air, matching.only_capture) == (0, 0)
    assert matching.matched["lag_ns"].to_list() == [lag_ns] * len(frames)


@pytest.mark.parametrize("read", [read_air, read_packet_rows])
def test_a_log_that_was_closed_before_the_end_is_not_taken_for_a_whole_one(tmp_path, read):
    path = tmp_path / "air.csv"
    path.write_text(f"{HEADER}\n5,sta1,tx,rts,sta2,1,1,20,1000000,352000,3,hidden,\n# closed: air.csv has reached its limit\n")
    with pytest.raises(RunFileError, match=r"air.csv: is incomplete, it was closed before the run ended: air.csv has reached"):
        read(path)
