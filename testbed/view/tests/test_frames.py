"""The air log as columns: windows, counts and the binary layout agree with the file, read by Python's csv."""

import csv
import json
import struct
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from record.errors import RunFileError
from testbed.programs import BUILT, ROOT
from testbed.view.app import PAGE
from testbed.view.columns import columns_of
from testbed.view.frames import DROPS, FATES, LAYOUT, NO_BACKOFF, TX, Frames, parse_rows, read_frames
from testbed.view.recorded import STRIP_BINS

STATIONS = tuple(f"sta{number}" for number in range(1, 6))


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    """An air log of the simulator: hidden stations, errors, broadcasts, drops."""
    folder = tmp_path_factory.mktemp("sim")
    config = json.loads((ROOT / "formats/examples/sim.json").read_text())
    config["radio"] = str(ROOT / "medium/radios/ns2-dsss-2m.toml")
    (folder / "medium.json").write_text(json.dumps(config))
    subprocess.run([BUILT.medium, "sim", folder / "medium.json"], check=True, capture_output=True)
    return folder / "air.csv"


@pytest.fixture(scope="module")
def rows(log) -> list[dict[str, str]]:
    with log.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def frames(log) -> Frames:
    return read_frames(log, STATIONS)


def test_counts_by_fate_and_station_are_those_of_the_file(frames, rows):
    counts = frames.counts()
    for station in STATIONS:
        sent = Counter(row["fate"] for row in rows if row["event"] == "tx" and row["station"] == station)
        drops = Counter(row["fate"] for row in rows if row["event"] == "drop" and row["station"] == station)
        assert (counts["sent"][station], counts["drops"][station]) == (dict(sent), dict(drops))
    assert sum(sum(table.values()) for table in counts["sent"].values()) > 50


def test_bins_of_a_window_sum_to_its_counts(frames, rows):
    begin, end = 10_000_000, 60_000_000
    found = frames.binned(begin, end, 7)
    here = [row for row in rows if begin <= int(row["t_ns"]) < end]
    for fate in FATES[1:]:
        assert sum(found["fates"][fate]) == sum(row["event"] == "tx" and row["fate"] == fate for row in here)
    assert sum(found["fates"]["retried"]) == sum(row["event"] == "tx" and int(row["attempt"] or 0) > 1 for row in here)
    assert sum(map(sum, found["drops"].values())) == sum(row["event"] == "drop" for row in here)


@pytest.mark.parametrize(("begin", "end"), [(0, 10**12), (20_000_000, 20_500_000), (33_333_333, 33_333_334), (10**11, 10**12)])
def test_a_window_has_every_frame_on_the_air_in_it(frames, rows, begin, end):
    wanted = {
        place for place, row in enumerate(rows)
        if row["event"] == "tx" and int(row["t_ns"]) <= end and int(row["t_ns"]) + int(row["airtime_ns"]) >= begin
    }  # fmt: skip
    found = frames.between(begin, end)
    assert set(found.tolist()) == wanted
    assert (np.diff(frames.rows["t_ns"][found]) >= 0).all(), "in order of their start"


def test_the_packed_columns_are_the_rows_of_the_file(frames, rows):
    chosen = frames.between(0, 10**12)
    packed = frames.packed(chosen)
    assert struct.unpack_from("<4sIII", packed) == (b"MNVF", 2, len(chosen), 0)
    offset, columns = 16, {}
    for name, kind in LAYOUT:
        columns[name] = np.frombuffer(packed, kind, len(chosen), offset)
        offset += -(-columns[name].nbytes // 8) * 8
    assert offset == len(packed)
    for place, number in enumerate(columns["row"]):
        row = rows[number]
        assert int(row["t_ns"]) == columns["t_ns"][place] and STATIONS[columns["station"][place]] == row["station"]
        assert FATES[columns["fate"][place]] == row["fate"] and int(row["packet"]) == columns["packet"][place]
        assert ("*" if columns["peer"][place] == 65535 else STATIONS[columns["peer"][place]]) == row["peer"]
        power = columns["power_dbm"][place]
        assert columns["backoff_slots"][place] == (int(row["backoff_slots"]) if row["backoff_slots"] else NO_BACKOFF)
        assert (row["power_dbm"] == "" and np.isnan(power)) or abs(float(row["power_dbm"]) - power) < 0.05


def test_the_strip_that_is_kept_is_the_one_of_the_page():
    assert f"BINS = {STRIP_BINS}," in (PAGE / "overview.js").read_text()


def test_a_thinned_window_says_how_many_there_are(frames):
    found, total = frames.thinned(0, 10**12, 10)
    assert len(found) <= 10 < total == len(frames.sent)
    assert struct.unpack_from("<4sIII", frames.packed(found, thinned=True))[3] == 1


def test_rows_that_a_log_gains_are_read_without_its_head(log, frames):
    lines = log.read_bytes().splitlines(keepends=True)
    tail = parse_rows(b"".join(lines[101:]), STATIONS)
    assert tail.count == frames.count - 100
    assert (tail.rows["t_ns"] == frames.rows["t_ns"][100:]).all() and (tail.rows["event"] == TX).sum() > 0


def assert_same(one: Frames, other: Frames) -> None:
    assert (one.stations, one.words, one.rows.keys()) == (other.stations, other.words, other.rows.keys())
    for name, column in one.rows.items():
        assert column.dtype == other.rows[name].dtype
        assert np.array_equal(column, other.rows[name], equal_nan=column.dtype.kind == "f"), name
    assert np.array_equal(one.sent, other.sent) and np.array_equal(one.starts, other.starts)
    assert {name: [times.tolist() for times in of] for name, of in one.jams.items()} == {
        name: [times.tolist() for times in of] for name, of in other.jams.items()
    }


@pytest.mark.parametrize(
    ("radio", "overrides"),
    [("ns2-dsss-2m", {}), ("dot11n-ht20", {}), ("dot11n-ht20", {"access": "edca"}), ("dot11ax-he20", {"reception": "sinr"})],
)
def test_the_program_and_the_reader_of_any_log_give_the_same_columns(radio, overrides, tmp_path):
    config = json.loads((ROOT / "formats/examples/sim.json").read_text())
    config |= {"radio": str(ROOT / f"medium/radios/{radio}.toml"), "radio_overrides": overrides}
    config["jammers"] = [
        {"name": "jam1", "position": [70, 0, 0], "kind": "periodic", "tx_power_w": 0.01, "on_s": 1e-3, "off_s": 8e-3}
    ]
    (tmp_path / "medium.json").write_text(json.dumps(config))
    subprocess.run([BUILT.medium, "sim", tmp_path / "medium.json"], check=True, capture_output=True)
    log = tmp_path / "air.csv"
    with log.open("rb") as file:
        assert columns_of(file) is not None
    head, *lines = log.read_bytes().splitlines(keepends=True)
    found = read_frames(log, STATIONS)
    assert_same(found, parse_rows(b"".join(lines), STATIONS, head.decode().strip().split(",")))
    assert found.count > 100 and "jam1" in found.jams


@pytest.mark.parametrize("end", ["# closed: the disk is full\n", "5,sta1,tx", "5,sta1,enqueue,data,sta2,1,,552,,,,,"])
def test_a_log_that_was_closed_or_torn_has_its_whole_rows(end, log, frames, tmp_path):
    (tmp_path / "air.csv").write_text(log.read_text() + end)
    again = read_frames(tmp_path / "air.csv", STATIONS)
    assert again.count == frames.count + (not end.startswith("#"))
    for name, column in frames.rows.items():
        assert np.array_equal(column, again.rows[name][: frames.count], equal_nan=column.dtype.kind == "f")


def test_a_row_as_text_has_the_words_of_the_file(frames, rows):
    for place, row in enumerate(rows):
        text = frames.as_text(place)
        assert (text["t_ns"], text["event"], text["frame"], text["fate"] or "") == (
            row["t_ns"],
            row["event"],
            row["frame"],
            row["fate"],
        )
    assert set(DROPS) >= {row["fate"] for row in rows if row["event"] == "drop"}


def test_bursts_of_jammers_are_left_out(log, frames, tmp_path):
    head, *lines = log.read_text().splitlines(keepends=True)
    burst = "1000000,jam1,jam,,*,,,,,1000000000,,,,\n"
    (tmp_path / "air.csv").write_text("".join([head, burst, *lines[:50], burst, *lines[50:]]))
    again = read_frames(tmp_path / "air.csv", STATIONS)
    assert again.count == frames.count and again.counts() == frames.counts() and again.longest_ns == frames.longest_ns
    assert parse_rows(burst.encode(), STATIONS).count == 0


def test_a_jammer_sends_from_the_start_of_a_burst_to_its_end(log, tmp_path):
    head, *rows = log.read_text().splitlines(keepends=True)
    bursts = [
        f"{begin_ms * 1_000_000},{name},jam,,*,,,,,2000000,,,,\n" for name, begin_ms in (("jam1", 1), ("jam2", 2), ("jam1", 10))
    ]
    (tmp_path / "air.csv").write_text("".join([head, *bursts, *rows]))
    frames = read_frames(tmp_path / "air.csv", STATIONS)
    at = {ms: frames.jamming(int(ms * 1e6)) for ms in (0.9, 1.0, 2.5, 3.5, 9.9, 11.9, 12.0)}
    assert at == {0.9: [], 1.0: ["jam1"], 2.5: ["jam1", "jam2"], 3.5: ["jam2"], 9.9: [], 11.9: ["jam1"], 12.0: []}


def test_rates_and_the_last_data_frame_of_a_station_are_those_of_its_rows(rows, frames):
    rows = [row for row in rows if (row["event"], row["frame"]) == ("tx", "data")]
    for place, name in enumerate(STATIONS):
        own = [row for row in rows if row["station"] == name]
        counted = Counter((row["peer"], int(row["rate_bps"]), row["fate"] == "delivered") for row in own)
        found = frames.rates(place)
        assert sum(one["frames"] for one in found) == len(own)
        for one in found:
            arrived, lost = (counted[one["peer"], one["rate_bps"], fate] for fate in (True, False))
            assert (one["frames"], one["delivered"], one["mode"]) == (arrived + lost, arrived, None)
        if own:
            middle = own[len(own) // 2]
            last = frames.as_text(frames.last_data(place, int(middle["t_ns"])))
            assert (last["t_ns"], last["packet"], last["rate_bps"]) == (
                middle["t_ns"],
                int(middle["packet"]),
                int(middle["rate_bps"]),
            )
            assert frames.last_data(place, int(own[0]["t_ns"]) - 1) is None
    assert any(frames.rates(place) for place in range(len(STATIONS)))


def test_another_file_is_refused_in_one_line(tmp_path):
    (tmp_path / "air.csv").write_text("a,b\n1,2\n")
    with pytest.raises(RunFileError, match="not an air log"):
        read_frames(tmp_path / "air.csv", STATIONS)
    with pytest.raises(RunFileError, match="did the medium start"):
        read_frames(tmp_path / "none.csv", STATIONS)


def test_a_log_of_edca_has_categories(tmp_path):
    config = json.loads((ROOT / "formats/examples/sim.json").read_text())
    config["radio"], config["radio_overrides"] = str(ROOT / "medium/radios/dot11n-ht20.toml"), {"access": "edca"}
    config["traffic"] = [
        {"from": "sta1", "to": "sta2", "kind": "cbr", "rate_bps": 1e6, "bytes": 200, "dscp": dscp} for dscp in (46, 34, 0, 8)
    ]
    config["duration_s"] = 0.1
    (tmp_path / "medium.json").write_text(json.dumps(config))
    subprocess.run([BUILT.medium, "sim", tmp_path / "medium.json"], check=True, capture_output=True)
    frames = read_frames(tmp_path / "air.csv", STATIONS)
    with (tmp_path / "air.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [frames.as_text(place)["category"] or "" for place in range(len(rows))] == [row["category"] for row in rows]
    assert {row["category"] for row in rows if row["event"] == "enqueue"} == {"voice", "video", "best-effort", "background"}
    assert {row["category"] for row in rows if row["event"] == "deliver"} == {""}


def test_a_log_with_aggregates_has_rates_places_and_sinr(tmp_path):
    config = json.loads((ROOT / "formats/examples/sim.json").read_text())
    config["radio"] = str(ROOT / "medium/radios/dot11n-ht20.toml")
    config["traffic"] = [{"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 1500}]
    config["duration_s"] = 0.1
    (tmp_path / "medium.json").write_text(json.dumps(config))
    subprocess.run([BUILT.medium, "sim", tmp_path / "medium.json"], check=True, capture_output=True)
    frames = read_frames(tmp_path / "air.csv", STATIONS)
    with (tmp_path / "air.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {"data", "ba"} <= {row["frame"] for row in rows}
    for place, row in enumerate(rows):
        text = frames.as_text(place)
        assert (text["frame"], text["mode"] or "", text["aggregate"] or "") == (row["frame"], row["mode"], row["aggregate"])
        assert str(text["rate_bps"] or "") == row["rate_bps"]
        assert ("" if text["sinr_db"] is None else f"{text['sinr_db']:.1f}") == row["sinr_db"]
    lines = (tmp_path / "air.csv").read_bytes().splitlines(keepends=True)
    live = parse_rows(b"".join(lines[1:]), STATIONS, lines[0].decode().strip().split(","))
    assert [live.as_text(place) for place in range(live.count)] == [frames.as_text(place) for place in range(frames.count)]
    assert {(one["peer"], one["mode"]) for one in live.rates(0)} == {("sta2", "ht-mcs7-20")}
    answer = next(place for place, row in enumerate(rows) if row["frame"] == "ba")
    assert frames.packed(frames.sent[:1]) and "sinr_db" in frames.as_text(answer)
