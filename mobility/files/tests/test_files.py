"""Third-party movement files: their content, round trips, every error with its line, and arbitrary bytes."""

import gzip
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mobility import files, trace
from mobility.files import bonnmotion, gpx, ns2
from mobility.models import MODELS
from mobility.trace import Leg, Trace, TraceError

SETDEST = b"""#
# nodes: 2, pause: 2.00, max speed: 10.00, max x: 670.00, max y: 670.00
#
$node_(0) set X_ 83.364418416244
$node_(0) set Y_ 239.438009831261
$node_(0) set Z_ 0.000000000000
$node_(1) set X_ 257.046298323157
$node_(1) set Y_ 239.438009831261
$node_(1) set Z_ 0.000000000000
$god_ set-dist 0 1 1
$ns_ at 2.000000000000 "$node_(0) setdest 83.364418416244 44.438009831261 1.500000000000"
$ns_ at 60.5 "$god_ set-dist 0 1 16777215"
$ns_ at 12.0 "$node_(1) set X_ 300.0"  ;# a jump, out of order
$ns_ initial_node_pos $node_(0) 20
"""
TRACK = b"""<?xml version="1.0"?>
<gpx version="1.1" creator="by hand" xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="1" lon="1"><time>x</time></wpt>
<trk><trkseg><trkpt lat="52.0" lon="13.0"><ele>40</ele><time>2026-05-01T12:00:10Z</time></trkpt>
<trkpt lat="52.001" lon="13.0"><ele>45</ele><time>2026-05-01T12:01:50.5+00:00</time></trkpt></trkseg></trk>
<trk><trkseg><trkpt lat="52.0" lon="13.001"><ele>42</ele><time>2026-05-01T14:00:00+02:00</time></trkpt></trkseg></trk></gpx>
"""


def same_movement(one: Trace, other: Trace, until_s: float, abs_m: float = 1e-5) -> None:
    """The same positions at many instants that are no corner of the way (at a jump's very instant either end would do)."""
    assert one.stations() == other.stations()
    for name in one.stations():
        for k in range(83):
            time_s = until_s * (k + 0.4567) / 83
            here, there = other.position(name, time_s), one.position(name, time_s)
            assert all(abs(a - b) <= abs_m for a, b in zip(here, there, strict=True)), (name, time_s, here, there)


def test_setdest_s_own_form_is_read():
    made = ns2.parse(SETDEST, "p.tcl")
    assert made.stations() == ["sta1", "sta2"]
    assert made.position("sta1", 2) == (83.364418416244, 239.438009831261, 0)
    assert made.position("sta1", 102) == pytest.approx((83.364418416244, 239.438009831261 - 150, 0))
    assert made.position("sta1", 500) == (83.364418416244, 44.438009831261, 0)  # 195 m at 1.5 m/s: 130 s
    assert made.position("sta2", 11.9)[0] == 257.046298323157 and made.position("sta2", 12.0)[0] == 300
    assert ns2.god_lines(made) == [ns2.God(0.0, ("sta1", "sta2"), 1), ns2.God(60.5, ("sta1", "sta2"), None)]


def test_comments_and_god_lines_are_passed_on():
    again = ns2.parse(ns2.write(ns2.parse(SETDEST, "p.tcl")).encode(), "again.tcl")
    first = ns2.parse(SETDEST, "p.tcl")
    assert sorted(again.remarks) == sorted(first.remarks) and len(first.remarks) == 5
    assert ns2.god_lines(again) == ns2.god_lines(first)
    same_movement(first, again, 200)


def test_remarks_of_a_script_are_kept():
    made = ns2.parse(b"# end_s: 3600\n# mean_speed_mps: 1\n$node_(0) set X_ 1\n$node_(0) set Y_ 2\n", "p.tcl")
    assert (made.end_s, made.end_line, made.mean_mps) == (3600, 1, 1)
    again = ns2.parse(ns2.write(made).encode(), "p.tcl")
    assert (again.end_s, again.mean_mps) == (3600, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$node_(0) set X_ ten\n", 'line 1: X_ "ten" must be a number from -1e+07 to 1e+07; correct it'),
        ("$node_(0) set X_ 1\n", "node 0 has no Y_; add $node_(0) set Y_ ..."),
        ("$node_(1) set X_ 1\n$node_(1) set Y_ 1\n", "node 0 is missing; number the nodes from 0 on without a gap"),
        ("exec rm\n", 'line 1: "exec rm" is not understood; a movement script has lines like'),
        ('$node_(0) set X_ 1\n$ns_ at 1 "$node_(3) setdest 1 1 1"\n', "line 2: node 3 moves but is placed nowhere"),
        ('\n\n$ns_ at -1 "$node_(0) setdest 1 1 1"\n', 'line 3: time "-1" must be a number from 0 to 4e+06'),
        ('$ns_ at 1 "$node_(0) setdest 1 1O0.0 1"\n', 'line 1: y "1O0.0" must be a number from -1e+07 to 1e+07; correct it'),
        ('$ns_ at 1 "$node_(0) setdest 1 1 -1"\n', 'line 1: speed "-1" must be a number from 0 to 1e+09'),
        ("$node_(5000) set X_ 1\n", "line 1: node 5000 is out of range"),
        ("", "no node is placed"),
    ],
)
def test_an_error_in_a_script_names_its_line(text, message):
    with pytest.raises(TraceError) as caught:
        ns2.parse(text.encode(), "p.tcl")
    assert str(caught.value).startswith("p.tcl: ") and message in str(caught.value)


def test_a_height_that_changes_during_a_move_is_not_written_for_ns2():
    climbing = Trace("t", [Leg(0, "sta1", (0, 0, 0), 0), Leg(1, "sta1", (10, 0, 5), 1)])
    with pytest.raises(TraceError, match="sta1 changes its height on the way at 1 s"):
        ns2.write(climbing)


def test_bonnmotion_s_lines_are_nodes_and_their_waypoints():
    made = bonnmotion.parse(b"0.0 10.0 20.0 10.0 110.0 20.0\n5.0 7.0 8.0\n", "m.movements", {"duration": "60", "nn": "2"})
    assert made.stations() == ["sta1", "sta2"] and made.end_s == 60
    assert made.position("sta1", 2.5) == (35, 20, 0)
    assert made.position("sta2", 0) == made.position("sta2", 50) == (7, 8, 0)  # a first waypoint later than 0


def test_bonnmotion_s_third_dimension_is_known_by_its_times():
    made = bonnmotion.parse(b"0 10 20 3 10 110 20 5\n0 1 1 1\n", "m.movements")
    assert made.position("sta1", 5) == pytest.approx((60, 20, 4))


def test_bonnmotion_s_ambiguous_lines_are_refused_until_params_decide():
    # t x y: (0 0 5) (1 6 9) (9 7 8) (9 9 9); t x y z: (0 0 5 1) (6 9 9 7) (8 9 9 9)
    line = b"0 0 5 1 6 9 9 7 8 9 9 9\n"
    with pytest.raises(TraceError, match="can be read as waypoints t x y and as t x y z"):
        bonnmotion.parse(line, "m.movements")
    assert bonnmotion.parse(line, "m.movements", {"outputDim": "2D"}).position("sta1", 1) == pytest.approx((6, 9, 0))
    assert bonnmotion.parse(line, "m.movements", {"outputDim": "3D"}).position("sta1", 6) == pytest.approx((9, 9, 7))


def test_bonnmotion_s_border_is_10_m_in_ns2_s_files_only():
    """The same scenario as NSFile writes it: 10 m further up and right, as the manual's default border has it."""
    native = bonnmotion.parse(b"0 0 0 10 100 0\n", "m.movements")
    script = b'$node_(0) set X_ 10.0\n$node_(0) set Y_ 10.0\n$ns_ at 0.0 "$node_(0) setdest 110.0 10.0 10.0"\n'
    shifted = ns2.parse(script, "m.ns_movements")
    for second in range(12):
        x, y, _ = native.position("sta1", second)
        assert shifted.position("sta1", second) == pytest.approx((x + 10, y + 10, 0))


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        (b"0 1 1\n0 1\n", {}, "line 2: the line is no list of waypoints"),
        (b"5 1 1 4 1 1\n", {}, "line 1: the line is no list of waypoints"),
        (b"0 1 east\n", {}, 'line 1: "east" is not a number'),
        (b"0 1 1\n", {"nn": "2"}, "1 lines, but nn=2 in .params"),
        (b"0 1 1\n", {"outputDim": "3D"}, "line 1: is no list of waypoints of 4 numbers"),
        (b"0 1e9 1\n", {}, "line 1: a waypoint at 0 s is outside"),
        (b"0 1 1\n", {"duration": "long"}, '"long" is not a number'),
        (b"\n", {}, "0 nodes"),
    ],
)
def test_an_error_in_a_bonnmotion_file_names_its_line(text, params, message):
    with pytest.raises(TraceError) as caught:
        bonnmotion.parse(text, "m.movements", params)
    assert str(caught.value).startswith("m.movements: ") and message in str(caught.value)


def test_gps_tracks_become_metres_and_seconds():
    made = gpx.parse(TRACK, "walk.gpx")
    assert made.stations() == ["sta1", "sta2"]
    per_degree = math.pi / 180 * 6_371_000
    assert made.position("sta1", 0) == pytest.approx((0, 0, 0))
    assert made.position("sta1", 10 + 50.25) == pytest.approx((0, per_degree * 0.0005, 2.5))
    assert made.position("sta2", 5) == pytest.approx((per_degree * 0.001 * math.cos(math.radians(52.0005)), 0, 2))
    assert made.end_s == 110.5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"2026-05-01T12:01:50.5+00:00", b"noon", 'line 4: the time "noon" of a point must be written like'),
        (b"2026-05-01T12:01:50.5+00:00", b"2026-13-01T12:01:50Z", "line 4: the time"),
        (b"2026-05-01T12:01:50.5+00:00", b"2026-05-01T12:00:00Z", "line 4: time goes back in the track"),
        (b'lat="52.001"', b'lat="152.001"', 'line 4: lat "152.001" must be a number from -90 to 90; correct it'),
        (b'lat="52.001"', b"", 'line 4: lat "" must be a number'),
        (b"</gpx>", b"", "is not XML"),
        (b"<gpx ", b'<!DOCTYPE gpx [<!ENTITY a "b">]><gpx ', "line 2: has a document type"),
        (b"trk", b"rte", "has no track with points"),
    ],
)
def test_an_error_in_a_gps_file_names_its_line(old, new, message):
    with pytest.raises(TraceError) as caught:
        gpx.parse(TRACK.replace(old, new), "walk.gpx")
    assert str(caught.value).startswith("walk.gpx: ") and message in str(caught.value)


# --- round trips and fuzz -----------------------------------------------------------------------------------------------

coordinate = st.floats(-5000, 5000)
NAMES = ["sta1", "sta2", "sta3"]


def legs(third):
    leg = st.builds(
        Leg,
        st.floats(0, 1000),
        st.sampled_from(NAMES),
        st.tuples(coordinate, coordinate, third),
        st.one_of(st.floats(0.01, 50), st.just(0.0), st.just(math.inf)),
    )
    return st.lists(leg, max_size=12).map(lambda more: sorted(more, key=lambda leg: leg.start_s))


def whole(more, end_s=1100.0) -> Trace:
    return Trace("t", [*trace.place({name: (10.0 * i, 0.0, 0.0) for i, name in enumerate(NAMES)}), *more], end_s)


@settings(deadline=None)
@given(legs(st.just(0.0)))
def test_a_movement_goes_through_ns2_s_form_unchanged(more):
    made = whole(more)
    same_movement(made, ns2.parse(ns2.write(made).encode(), "t.tcl"), 1100, abs_m=1e-4)


@settings(deadline=None)
@given(legs(coordinate))
def test_a_movement_goes_through_bonnmotion_s_form_unchanged(more):
    made = whole(more)
    params = dict(line.split("=") for line in bonnmotion.params(made).splitlines())
    same_movement(made, bonnmotion.parse(bonnmotion.write(made).encode(), "t.movements", params), 1100, abs_m=1e-4)


@pytest.mark.parametrize("ending", [".csv", ".tcl", ".ns_movements", ".movements"])
@pytest.mark.parametrize("model", ["random-waypoint", "gauss-markov", "manhattan", "group"])
def test_every_model_goes_through_every_form(tmp_path, model, ending):
    places = [(f"sta{i}", 50.0 * i, 100.0, 0.0) for i in range(1, 6)]
    extra = {"radius": 50.0} if model == "group" else {}
    made = Trace(model, MODELS[model](places, (800.0, 400.0), begin_s=5.0, end_s=200.0, seed=4, speed=7.0, **extra), 200.0)
    for path, text in files.texts(made, tmp_path / f"m{ending}").items():
        path.write_text(text)
    read = files.read(tmp_path / f"m{ending}")
    assert read.end_s == 200
    same_movement(made, read, 200)


def test_a_packed_file_is_read_as_the_plain_one(tmp_path):
    (tmp_path / "m.movements.gz").write_bytes(gzip.compress(b"0 1 2 10 11 2\n"))
    (tmp_path / "m.params").write_text("model=RandomWaypoint\nduration=33.0\nnn=1\n")
    made = files.read(tmp_path / "m.movements.gz")
    assert made.end_s == 33 and made.position("sta1", 5) == (6, 2, 0)
    with pytest.raises(TraceError, match="is not packed with gzip"):
        bonnmotion.parse_packed(b"0 1 2\n", "m.movements.gz")
    with pytest.raises(TraceError, match="cut off"):
        bonnmotion.parse_packed(gzip.compress(b"0 1 2\n" * 99)[:20], "m.movements.gz")


def test_a_file_without_a_known_suffix_is_refused(tmp_path):
    (tmp_path / "m.txt").write_text("")
    with pytest.raises(TraceError, match=r"m\.txt: unknown format; give a name that ends in one of \.csv, \.tcl"):
        files.read(tmp_path / "m.txt")
    with pytest.raises(TraceError, match=r"nowhere\.gpx: cannot be read \(No such file or directory\)"):
        files.read(tmp_path / "nowhere.gpx")


# Bytes near to good files get further than random ones.
_WORDS = [
    *SETDEST.split(b" "), *TRACK.replace(b">", b"> ").split(b" "),
    b"\n", b"0", b"1e308", b"-1", b"nan", b"inf", b"$node_(1)", b"set", b"X_",
    b"\xff", b"# manet-trace/1\ntime_s,station,x_m,y_m,z_m,speed_mps\n", b"0,sta1,0,0,0,0\n", b"5,sta1,1,1,1,inf\n",
    b"\x00", b"\x85", b"\xc2\x85",
]  # fmt: skip
near = st.lists(st.sampled_from(_WORDS), max_size=60).map(lambda words: b" ".join(words))
cut = st.tuples(st.sampled_from([SETDEST, TRACK]), st.integers(0, 900), st.binary(max_size=6)).map(
    lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + len(parts[2]) :]
)


@settings(max_examples=3 * settings().max_examples)
@example(".gpx", TRACK.replace(b"<time>2026", b"<time>2\n026"))
@given(st.sampled_from(sorted(files.PARSERS)), st.one_of(st.binary(max_size=200), near, cut))
def test_no_byte_string_raises_anything_but_the_trace_error(ending, data):
    if ending == ".movements.gz":
        data = gzip.compress(data)[: len(data) + 20] if len(data) % 2 else data
    try:
        made = files.PARSERS[ending](data, "fuzz")
    except TraceError as problem:
        assert "\n" not in str(problem) and str(problem).startswith("fuzz: ")
        return
    for name in made.stations():
        assert all(math.isfinite(value) for value in made.position(name, 17.3))
    ns2.god_lines(made)
