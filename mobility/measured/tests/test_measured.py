"""Measured links: tables and files of other programs, every error with its line, round trips, and arbitrary bytes."""

import json
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility import measured
from mobility.measured import COLUMNS, Links, LinksError, Row, eel, netjson, rssi, table

EXAMPLE = Path(__file__).resolve().parents[3] / "formats" / "examples" / "links.csv"
HEADER = b"time_s,from,to,loss_db\n"


def parse(data: bytes | str, stations: list[str] | None = None) -> Links:
    return measured.parse(data.encode() if isinstance(data, str) else data, "x", stations)


def error(data: bytes | str, stations: list[str] | None = None) -> str:
    with pytest.raises(LinksError) as refused:
        parse(data, stations)
    text = str(refused.value)
    assert text.startswith("x") and "\n" not in text
    return text


def test_the_golden_example_is_read_and_written_as_the_medium_reads_it():
    links = measured.read(EXAMPLE)
    assert (links.column, links.stations, len(links.rows)) == ("loss_db", ("sta1", "sta2", "sta3"), 8)
    assert links.rows[2] == Row(0.0, "sta2", "sta3", 75.5) and links.rows[-1] == Row(20.0, "sta2", "sta1", None)
    golden = [line for line in EXAMPLE.read_text().splitlines() if not line.startswith("# sta")]
    assert measured.write(links).splitlines() == golden


def test_a_table_needs_no_format_line_and_its_rows_no_order():
    links = parse("to, from,time_s,delivery,rate_bps\nsta2,sta1,7,0.5,\nsta2,sta1,2.5,1,11000000\n")
    assert measured.write(links) == (
        "# manet-links/1\ntime_s,from,to,rate_bps,delivery\n2.5,sta1,sta2,11000000,1\n7,sta1,sta2,,0.5\n"
    )


def test_two_rows_of_one_time_keep_their_order():
    assert [row.value for row in parse(HEADER + b"1,a,b,50\n1,a,b,90\n0,a,b,50\n").rows] == [50, 50, 90]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", "x: is of no known format"),
        (b"\xff\xfe\x00", "x: is no text"),
        (b"PAR1 but no more", "x: is no whole Parquet file"),
        (b"# manet-links/1\n", "x: has no header; begin with time_s,from,to, and one of rssi_dbm, loss_db, delivery"),
        (b"time_s,from,to\n", "x:1: has 0 of the columns rssi_dbm, loss_db, delivery; give one"),
        (b"time_s,from,to,loss_db,delivery\n", "x:1: has 2 of the columns"),
        (b"time_s,from,to,loss_db,colour\n", 'x:1: the column "colour" is not known; remove it'),
        (b"time_s,from,to,snr\n", 'x:1: the column "snr" is not known; one of rssi_dbm, loss_db, delivery has the value'),
        (b"time_s,from,to,rate_bps,loss_db\n", "x:1: rate_bps is for delivery; remove it"),
        (b"# manet-links/1\ntime_s,from,loss_db\n", 'x:2: has no column "to"'),
        (HEADER, "x: has no rows; give a file with at least one link"),
        (HEADER + b"0,a,b\n", "x:2: 3 fields; the header has 4"),
        (HEADER + b"0,a,b,60\n\nx,a,b,60\n", "x:4: time_s `x` is no number; correct it"),
        (HEADER + b"-1,a,b,60\n", "x:2: time_s -1 is outside 0 to 4e+06 s; let the times begin at 0"),
        (HEADER + b"0,a,b,301\n", "x:2: loss_db 301 is outside 0 to 300; correct it, or leave it empty for no link"),
        (HEADER + b"0,a,b,inf\n", "x:2: loss_db `inf` is no number; correct it"),
        (HEADER + b"0,a,a,60\n", 'x:2: a link from "a" to itself; remove it'),
        (HEADER + b"0,a,B,60\n", 'x:2: "B" is no station name'),
        (b"time_s,from,to,rate_bps,delivery\n0,a,b,1.5,1\n", "x:2: rate_bps `1.5` is no whole number; give bit/s"),
        (b"time_s,from,to,rate_bps,delivery\n0,a,b,0,1\n", "x:2: rate_bps 0 is for delivery, from 1 to"),
        (b"time_s,receiver,sender,rssi_dbm\n", "x: has no samples; give a log with at least one"),
        (b"time_s,receiver,sender,rssi_dbm\n0,a,b\n", "x:2: 3 fields; the header has 4"),
        (b"time_s,receiver,sender,rssi_dbm\n0,a,b,strong\n", "x:2: rssi_dbm `strong` is no number; correct it"),
        (b"{", "x: is no valid JSON; write it again"),
        (b'{"type": "NetworkRoutes"}', "x: is no NetworkGraph"),
        (b'{"type": "NetworkGraph", "nodes": 1, "links": []}', 'x: "nodes" is no list of objects'),
        (b'{"type": "NetworkGraph", "nodes": [], "links": []}', "x: has no links"),
        (b"0.0 nem:1 pathloss nem:2\n", "x:1: `nem:2` is not nem:ID,DB or nem:ID,DB,DB; correct it"),
        (b"0.0 nem:1 pathloss sta2,90\n", "x:1: `sta2` is no NEM; write nem:1"),
        (b"0.0 nem:1 pathloss nem:2,-3\n", "x:1: `nem:2,-3` has a loss below 0 dB; correct it"),
        (b"x nem:1 pathloss nem:2,90\n", "x:1: `x` is no number; correct it"),
        (b"0.0 nem:1 location gps 40.03,-74.52,3\n", "x: has no rows"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_the_remedy(data, wanted):
    assert error(data).startswith(wanted)


def test_names_are_those_of_the_scenario():
    assert error(HEADER + b"0,sta1,sta4,60\n", ["sta1", "sta2", "sta3"]) == (
        'x: names "sta4", and the stations are sta1, sta2, sta3; rename it, or the station'
    )
    assert parse(HEADER + b"0,sta1,sta2,60\n", ["sta1", "sta2", "sta3"]).stations == ("sta1", "sta2", "sta3")


def test_no_folder_pipe_or_missing_file_is_read(tmp_path):
    for path, wanted in (
        (tmp_path, "is no regular file"),
        (Path("/dev/zero"), "is no regular file"),
        (tmp_path / "x", "No such"),
    ):
        with pytest.raises(LinksError, match=wanted):
            measured.read(path)


def test_parquet_has_the_same_columns_and_null_and_nan_are_no_link(tmp_path):
    path = tmp_path / "links.parquet"
    cells = {"time_s": [0, 5, 9], "from": ["a", "a", "a"], "to": ["b", "b", "b"], "rssi_dbm": [-70.5, None, float("nan")]}
    pl.DataFrame(cells, strict=False).write_parquet(path)
    assert [row.value for row in measured.read(path).rows] == [-70.5, None, None]
    pl.DataFrame({**cells, "rssi_dbm": [-70.0, -80.0, 1e6]}).write_parquet(path)
    with pytest.raises(LinksError, match=r"links\.parquet: row 3: rssi_dbm 1e\+06 is outside -300 to 100"):
        measured.read(path)
    pl.DataFrame({"time_s": [0.0]}).write_parquet(path)
    with pytest.raises(LinksError, match=r'links\.parquet: has no column "from"'):
        measured.read(path)


# --- RSSI logs


def rssi_log(*samples: tuple[float, str, str, float]) -> str:
    rows = [f"{time},{receiver},{sender},{value}" for time, receiver, sender, value in samples]
    return "\n".join(["time_s,receiver,sender,rssi_dbm", *rows]) + "\n"


def test_samples_become_means_over_windows_from_the_earliest_on():
    log = rssi_log((1000.0, "b", "a", -70), (1000.9, "b", "a", -80), (1001.2, "b", "a", -60), (1000.5, "a", "b", -65))
    links = parse(log)
    assert set(links.rows) == {Row(0.5, "a", "b", -75.0), Row(1.5, "a", "b", -60.0), Row(0.5, "b", "a", -65.0)}


def test_a_link_without_samples_ends_and_one_that_comes_later_begins_then():
    log = rssi_log((0, "b", "a", -70), (30, "b", "a", -80), (60, "b", "a", -90), (25, "c", "a", -50), (62, "b", "d", -60))
    links = rssi.parse(log, "x", None, 1.0, 10.0)
    assert [row for row in links.rows if row.target == "b" and row.source == "a"] == [
        Row(0.5, "a", "b", -70.0), Row(1.0, "a", "b", None), Row(30.5, "a", "b", -80.0), Row(31.0, "a", "b", None),
        Row(60.5, "a", "b", -90.0),
    ]  # fmt: skip
    assert [row for row in links.rows if row.target == "c"] == [
        Row(0.0, "a", "c", None), Row(25.5, "a", "c", -50.0), Row(26.0, "a", "c", None),
    ]  # fmt: skip


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.sampled_from("ab"), st.sampled_from("cd"), st.floats(-100, -20)), min_size=1, max_size=40
    ),
    st.floats(0.1, 20),
    st.floats(0.1, 50),
)
def test_means_are_between_the_least_and_the_largest_sample(samples, window_s, gap_s):
    links = rssi.parse(rssi_log(*samples), "x", None, window_s, gap_s)
    of_link = {}
    for _, receiver, sender, value in samples:
        of_link.setdefault((sender, receiver), []).append(value)
    for ends, values in of_link.items():
        rows = [row for row in links.rows if (row.source, row.target) == ends]
        found = [row.value for row in rows if row.value is not None]
        assert found and min(values) - 1e-9 <= min(found) and max(found) <= max(values) + 1e-9
        assert all(a.time_s <= b.time_s for a, b in pairwise(rows))


# --- NetJSON


def graph(*links: dict, metric: str = "ETX", nodes: int = 3) -> str:
    ids = [{"id": f"10.0.0.{number}"} for number in range(1, nodes + 1)]
    return json.dumps(
        {"type": "NetworkGraph", "protocol": "OLSR", "version": "0.8", "metric": metric, "nodes": ids, "links": list(links)}
    )


def link(a: int, b: int, cost: float = 1.0, **properties: float) -> dict:
    return {"source": f"10.0.0.{a}", "target": f"10.0.0.{b}", "cost": cost, "properties": properties}


def test_a_link_of_a_graph_stands_for_both_directions_unless_both_are_there():
    links = parse(graph(link(1, 2, rssi_dbm=-60), link(2, 1, rssi_dbm=-70), link(2, 3, rssi_dbm=-80)))
    assert links.column == "rssi_dbm"
    assert {(row.source, row.target): row.value for row in links.rows} == {
        ("sta1", "sta2"): -60, ("sta2", "sta1"): -70, ("sta2", "sta3"): -80, ("sta3", "sta2"): -80,
    }  # fmt: skip
    assert "sta3 is 10.0.0.3" in links.notes


def test_olsr_s_link_qualities_and_etx_are_delivery_rates():
    links = parse(graph(link(1, 2, 2.5, lq=0.8, nlq=0.5)))
    assert {(row.source, row.target): row.value for row in links.rows} == {("sta1", "sta2"): 0.5, ("sta2", "sta1"): 0.8}
    of_etx = parse(graph(link(1, 2, 4.0)), ["n1", "n2", "n3"])
    assert {row.value for row in of_etx.rows} == {0.5} and of_etx.pairs() == [("n1", "n2"), ("n2", "n1")]
    assert "has neither rssi_dbm" in error(graph(link(1, 2, 4.0), metric="hops"))


def test_links_of_a_graph_with_different_properties_are_refused():
    assert error(graph(link(1, 2, loss_db=60), link(2, 3))).startswith("x: link 2 has no loss_db as the first one")
    assert error(graph(link(1, 9, loss_db=60))).startswith('x: link 1 has the end "10.0.0.9", which is not in "nodes"')
    assert error(graph(link(1, 2, loss_db=60)), ["sta1", "sta2"]).startswith("x: has 3 nodes and the scenario 2 stations")


# --- EEL


def test_pathloss_events_are_steps_and_a_third_number_is_the_way_back():
    text = (
        "# a comment\n-Inf nem:1 pathloss nem:2,90 nem:3,95,97\n0.0  nem:1 location gps 40.03,-74.52,3.0\n"
        "10.0 nem:2 pathLoss nem:1,100\n20 nem:1 pathloss nem:2,999\n"
    )
    links = parse(text)
    assert links.column == "loss_db"
    assert [(row.time_s, row.value) for row in links.rows if (row.source, row.target) == ("sta1", "sta2")] == [
        (0, 90), (10, 90), (10, 100), (20, None),
    ]  # fmt: skip
    assert [row.value for row in links.rows if row.target == "sta3"] == [95]
    assert [row.value for row in links.rows if row.source == "sta3"] == [97]


def test_nems_are_stations_in_the_order_of_their_numbers():
    links = parse("5.0 nem:30 pathloss nem:7,80\n")
    assert links.rows[0] == Row(0.0, "sta2", "sta1", None) or links.rows[0] == Row(0.0, "sta1", "sta2", None)
    assert links.notes == ("sta1 is nem:7", "sta2 is nem:30")
    assert {row.value for row in links.rows if row.time_s == 5.0} == {80.0}
    assert error("0 nem:1 pathloss nem:2,80\n", ["sta1"]).startswith("x: has 2 NEMs and the scenario 1 stations")


# --- any of them


NAMES = st.sampled_from(["sta1", "sta2", "gw"])


@st.composite
def tables(draw) -> Links:
    column = draw(st.sampled_from(list(COLUMNS)))
    value = st.none() | st.floats(*COLUMNS[column])
    rate = st.none() | st.integers(1, 10**9) if column == "delivery" else st.none()
    rows = draw(st.lists(st.builds(Row, st.floats(0, 4e6), NAMES, NAMES, value, rate), min_size=1, max_size=20))
    kept = [row for row in rows if row.source != row.target]
    return table.made("x", column, kept or [Row(0.0, "sta1", "gw", None)])


@given(tables())
def test_what_is_written_is_read_as_it_was(links):
    assert parse(measured.write(links)).rows == links.rows
    assert parse(table.parquet(links)).rows == links.rows


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_read_or_refused_in_one_line(data):
    for start in (b"", HEADER, b"time_s,receiver,sender,rssi_dbm\n", b'{"type": "NetworkGraph", ', b"0 nem:1 pathloss ", b"PAR1"):
        try:
            links = parse(start + data)
        except LinksError as refused:
            assert str(refused).startswith("x") and "\n" not in str(refused)
        else:
            assert links.rows


GRAPH_KEYS = ["id", "source", "target", "cost", "properties", "lq", "nlq", "delivery", "x", "y", "lat", "lng", "location"]


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(GRAPH_KEYS), inner, max_size=4), max_leaves=12))  # fmt: skip
def test_any_graph_is_read_or_refused_in_one_line(part):
    for key in ("nodes", "links"):
        document = {"type": "NetworkGraph", "metric": "etx", "nodes": [{"id": "a"}, {"id": "b"}],
                    "links": [{"source": "a", "target": "b", "cost": 1.5}], key: part}  # fmt: skip
        for read in (netjson.parse, netjson.nodes):
            try:
                read(json.dumps(document), "x")
            except LinksError as refused:
                assert "\n" not in str(refused)


@given(st.text(alphabet="0123456789.-,: nempathlos#\n", max_size=120))
def test_any_log_of_events_is_read_or_refused_in_one_line(text):
    try:
        eel.parse(f"0 nem:1 pathloss nem:2,90\n{text}", "x")
    except LinksError as refused:
        assert "\n" not in str(refused)
