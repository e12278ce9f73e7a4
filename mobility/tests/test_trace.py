"""Traces: the golden example, positions as a function of time, and every error with its line."""

import csv
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility import files, trace
from mobility.trace import Leg, TraceError

EXAMPLES = Path(__file__).parents[2] / "formats" / "examples"
STATIONS = ["sta1", "sta2", "sta3"]
HEAD = "# manet-trace/1\ntime_s,station,x_m,y_m,z_m,speed_mps\n"


def test_the_golden_trace_gives_the_golden_positions():
    golden = files.read(EXAMPLES / "trace.csv", STATIONS)
    assert golden.end_s == 120
    with (EXAMPLES / "trace-positions.csv").open() as rows:
        for row in csv.DictReader(rows):
            wanted = (float(row["x_m"]), float(row["y_m"]), float(row["z_m"]))
            assert golden.position(row["station"], float(row["time_s"])) == pytest.approx(wanted, abs=1e-7), row


def test_a_placement_is_written_as_rows_at_time_zero():
    text = trace.write(trace.place([("sta1", 0.0, 0.0, 0.0), ("sta2", 200.0, 0.5, 0.0)]), end_s=35.0)
    assert text == ("# manet-trace/1\n# end_s: 35\ntime_s,station,x_m,y_m,z_m,speed_mps\n0,sta1,0,0,0,0\n0,sta2,200,0.5,0,0\n")


def test_legs_are_written_in_order_of_time_and_keep_theirs_at_one_instant():
    legs = [Leg(3, "sta1", (1, 0, 0), 1), Leg(0, "sta1", (0, 0, 0), 0), Leg(3, "sta1", (2, 0, 0), 1)]
    assert [line.split(",")[2] for line in trace.write(legs).splitlines()[2:]] == ["0", "1", "2"]


def test_a_station_stands_still_after_it_has_arrived():
    moved = trace.parse((HEAD + "0,sta1,0,0,0,0\n1,sta1,10,0,0,5\n").encode(), "t.csv", STATIONS)
    assert moved.position("sta1", 3.0) == (10, 0, 0)
    assert moved.position("sta1", 1e6) == (10, 0, 0)


def test_speed_zero_stops_a_moving_station():
    stopped = trace.parse((HEAD + "0,sta1,0,0,0,0\n1,sta1,10,0,0,1\n3,sta1,9,9,9,0\n").encode(), "t.csv", STATIONS)
    assert stopped.position("sta1", 100.0) == (2, 0, 0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,sta9,0,0,0,0\n", 't.csv: line 3: unknown station "sta9"; the scenario does not have it'),
        (
            "0,sta1,0,0,0,0\n5,sta1,1,0,0,1\n4,sta1,1,0,0,1\n",
            "t.csv: line 5: time goes back; sort the rows by time_s",
        ),
        ("-1,sta1,0,0,0,0\n", 't.csv: line 3: time_s "-1" must be a number of seconds from 0 to 4e+06; correct it'),
        ("0,sta1,-2e7,0,0,0\n", 't.csv: line 3: x_m "-2e7" must be a number of metres from -1e+07 to 1e+07; correct it'),
        ("0,sta1,0,inf,0,0\n", 't.csv: line 3: y_m "inf" must be a number of metres from -1e+07 to 1e+07; correct it'),
        ("0,sta1,0,0,0,nan\n", 't.csv: line 3: speed_mps "nan" must be a number of m/s, 0 or more, or "inf"; correct it'),
        ("0,sta1,0,0,0,-2\n", 't.csv: line 3: speed_mps "-2" must be a number of m/s, 0 or more, or "inf"; correct it'),
        ("0,sta1,0,0,0,1e400\n", 't.csv: line 3: speed_mps "1e400" must be a number of m/s, 0 or more, or "inf"; correct it'),
        ("1,sta1,0,0,0,0\n", 't.csv: line 3: station "sta1" has no row at time 0; add one that places it'),
        (
            "0,sta1,0,0,0,3\n",
            't.csv: line 3: the first row of "sta1" places it and has no speed; give 0, and the movement in a second row',
        ),
        ("0,sta1,0,0\n", 't.csv: line 3: 4 fields; a row is "time_s,station,x_m,y_m,z_m,speed_mps"'),
        ("# end_s: soon\n", 't.csv: line 3: end_s "soon" must be a number of seconds from 0 to 4e+06; correct it'),
    ],
)
def test_an_error_names_the_line_and_the_remedy(rows, message):
    with pytest.raises(TraceError) as caught:
        trace.parse((HEAD + rows).encode(), "t.csv", STATIONS)
    assert str(caught.value) == message


def test_a_file_of_another_format_is_refused():
    with pytest.raises(TraceError, match=r't\.csv: line 1: the first line must be "# manet-trace/1"'):
        trace.parse(b"time_s,station\n", "t.csv", STATIONS)
    with pytest.raises(TraceError, match=r"t\.csv: line 1: the first line"):
        trace.parse(b"", "t.csv", STATIONS)
    with pytest.raises(TraceError, match=r"t\.csv: line 1: there is no header"):
        trace.parse(b"# manet-trace/1\n", "t.csv", STATIONS)


def test_a_run_longer_than_the_trace_is_refused():
    text = "# manet-trace/1\n# end_s: 900\n" + HEAD.splitlines()[1] + "\n0,sta1,0,0,0,0\n"
    made_for_900 = trace.parse(text.encode(), "t", STATIONS)
    made_for_900.check(None, 900)
    with pytest.raises(TraceError) as caught:
        made_for_900.check(None, 901)
    assert str(caught.value) == (
        "t: line 2: the trace ends at 900 s and the run lasts 901 s; shorten the run or make a longer trace"
    )


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(TraceError, match=r"nowhere\.csv: cannot be read \(No such file or directory\)"):
        files.read(tmp_path / "nowhere.csv", STATIONS)


coordinate = st.floats(-5000, 5000)
legs = st.lists(
    st.builds(
        Leg,
        st.floats(0, 1000),
        st.sampled_from(STATIONS),
        st.tuples(coordinate, coordinate, coordinate),
        st.one_of(st.floats(0, 50), st.just(math.inf)),
    ),
    max_size=15,
)
placed = trace.place({name: (10.0 * i, 0.0, 0.0) for i, name in enumerate(STATIONS)})


@given(legs)
def test_a_written_trace_reads_back_unchanged(more):
    text = trace.write([*placed, *more])
    assert trace.write(trace.parse(text.encode(), "t", STATIONS).legs) == text


@given(legs, st.floats(0, 1100))
def test_no_station_is_faster_than_its_legs_say(more, time_s):
    slow = [leg for leg in more if math.isfinite(leg.speed_mps)]
    moving = trace.parse(trace.write([*placed, *slow]).encode(), "t", STATIONS)
    for name in STATIONS:
        step_m = math.dist(moving.position(name, time_s), moving.position(name, time_s + 0.01))
        assert step_m <= 50 * 0.01 + 1e-6


@given(legs, st.lists(st.floats(0, 1100), min_size=2, max_size=6))
def test_a_position_does_not_depend_on_earlier_calls(more, times):
    text = trace.write([*placed, *more])
    asked_often = trace.parse(text.encode(), "t", STATIONS)
    for time_s in times:
        fresh = trace.parse(text.encode(), "t", STATIONS)
        assert asked_often.position("sta2", time_s) == fresh.position("sta2", time_s)
