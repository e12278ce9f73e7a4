"""Operations on a drawing: what they do to the text, and that undo and redo lead through the same texts."""

import tomllib
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from keys.errors import UsageError
from testbed.view.editor.drawing import Drawing, background_of, changed
from testbed.view.editor.toml_edits import pretty

# Each comment stands on a line of its own, or behind a key that no operation of the property test touches.
COMMENTED = """# A drawing of somebody's own.
topology = "positions"
# places
positions = [
    [0, 0], [200, 0],
    # the gateway
    { name = "gw", at = [400, 0] },
]
seeds = 3   # one after the other
# flows
flows = [
    # upload
    { from = "sta1", to = "gw" },
]

# two wires
[[wires]]
station = "gw"
# the host
host = "host1"

# events
[[events]]
at = 3
power = "sta2"
on = false

# the last line
"""
OWN_LINES = [line for line in COMMENTED.splitlines() if "#" in line]

coordinates = st.integers(-500, 500) | st.floats(-500, 500, allow_nan=False).map(lambda value: round(value, 1))
places = st.lists(coordinates, min_size=2, max_size=2)
names = st.sampled_from(["sta1", "sta2", "sta3", "sta4", "gw", "relay"])
flows = st.fixed_dictionaries({"from": names, "to": names}, optional={"start": st.integers(0, 9), "tcp": st.just("vegas")})
events = st.fixed_dictionaries({"at": st.integers(0, 9), "power": names, "on": st.booleans()})
walls = st.fixed_dictionaries({"from": places, "to": places, "loss_db": st.integers(0, 40)})
keys: st.SearchStrategy[tuple[list[Any], Any]] = st.one_of(
    st.tuples(st.just(["radio"]), st.sampled_from(["dot11b-11m", "ns2-dsss-2m"])),
    st.tuples(st.just(["duration"]), st.integers(1, 100) | st.just("2 min")),
    st.tuples(st.just(["routing"]), st.sampled_from(["aodv", {"protocol": "dsr", "arp": "cmu"}])),
    st.tuples(st.just(["propagation", "sigma_db"]), st.integers(0, 20)),
    st.tuples(st.just(["sysctls", "net.ipv4.tcp_frto"]), st.integers(0, 2)),
    st.tuples(st.just(["flows", 0, "start"]), st.integers(0, 20)),
    st.tuples(st.just(["wires", 0, "rate"]), st.just("1 Mbit/s")),
    st.tuples(st.just(["events", 0, "at"]), st.floats(0, 20)),
    st.tuples(st.just(["tcp"]), st.text(max_size=8)),
)
operations = st.one_of(
    keys.map(lambda pair: {"op": "set", "path": pair[0], "value": pair[1]}),
    keys.map(lambda pair: {"op": "remove", "path": pair[0]}),
    flows.map(lambda flow: {"op": "append", "path": ["flows"], "value": flow}),
    events.map(lambda event: {"op": "append", "path": ["events"], "value": event}),
    walls.map(lambda wall: {"op": "append", "path": ["walls"], "value": wall}),
    st.integers(0, 3).map(lambda index: {"op": "remove", "path": ["flows", index]}),
    st.integers(0, 3).map(lambda index: {"op": "remove", "path": ["events", index]}),
    st.integers(0, 3).map(lambda index: {"op": "remove", "path": ["walls", index]}),
    st.lists(places, min_size=1, max_size=12).map(lambda listed: {"op": "add_stations", "at": listed}),
    st.tuples(names, places).map(lambda pair: {"op": "move_stations", "places": {pair[0]: pair[1]}}),
    st.tuples(st.lists(names, min_size=1, max_size=2, unique=True), places).map(
        lambda pair: {"op": "copy_stations", "stations": pair[0], "by": pair[1]}
    ),
    names.map(lambda name: {"op": "remove_stations", "stations": [name]}),
    st.tuples(names, names).map(lambda pair: {"op": "rename_station", "station": pair[0], "name": pair[1]}),
    st.tuples(names, places).map(lambda pair: {"op": "waypoint", "station": pair[0], "to": pair[1], "speed": 2}),
)
typed = st.sampled_from([COMMENTED, COMMENTED + "mtu = 1000 # late\n", "hops = 2\n"])


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.reuse, Phase.generate])
@given(st.lists(operations, min_size=200, max_size=200), st.randoms())
def test_200_operations_undone_and_redone_give_the_same_texts_and_keep_the_comments(done, random):
    drawing, texts = Drawing(COMMENTED), [COMMENTED]
    for operation in done:
        before = drawing.text
        try:
            drawing.apply(operation)
        except UsageError:
            assert drawing.text == before
            continue
        tomllib.loads(drawing.text)
        for line in OWN_LINES:
            assert line in drawing.text, (operation, before)
        if drawing.text != before:
            texts.append(drawing.text)
    assume(len(texts) > 20)
    last = drawing.text
    for _ in range(3):
        steps = random.randint(1, len(texts) - 1)
        for step in range(1, steps + 1):
            drawing.apply({"op": "undo"})
            assert drawing.text == texts[-1 - step]
        for step in range(steps - 1, -1, -1):
            drawing.apply({"op": "redo"})
            assert drawing.text == texts[-1 - step]
    assert drawing.text == last and not drawing.can_redo
    while drawing.can_undo:
        drawing.apply({"op": "undo"})
    assert drawing.text == COMMENTED


@settings(max_examples=60, deadline=None)
@given(st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=40,
))  # fmt: skip
def test_any_value_is_written_as_it_is_read(value):
    try:
        text = pretty(value, "x")
    except UsageError as problem:
        assert "nested too deep" in str(problem) or "Unicode" in str(problem)
        return
    assert tomllib.loads(f"x = {text}")["x"] == value


def steps(text: str, *done: dict[str, Any]) -> str:
    for operation in done:
        text = changed(text, operation)
    return text


def test_two_clicks_and_a_flow_make_a_scenario():
    text = steps(
        "", {"op": "add_stations", "at": [[0, 0]]}, {"op": "add_stations", "at": [[200.04, 0]]},
        {"op": "append", "path": ["flows"], "value": {"from": "sta1", "to": "sta2"}},
    )  # fmt: skip
    assert text == ('topology = "positions"\npositions = [[0, 0], [200, 0]]\nflows = [\n    { from = "sta1", to = "sta2" },\n]\n')


def test_a_moved_station_of_a_chain_makes_positions_of_it():
    text = steps("hops = 2\nspacing = 100 # m\n", {"op": "move_stations", "places": {"sta2": [100, 50]}})
    assert tomllib.loads(text) == {"topology": "positions", "positions": [[0, 0], [100, 50], [200, 0]]}


def test_a_station_beside_random_ones_is_moved_alone():
    text = 'topology = "random"\nnodes = 3\narea = [100, 100]\npositions = [[1, 2]]\n'
    moved = tomllib.loads(steps(text, {"op": "move_stations", "places": {"sta4": [5, 6]}}))
    assert (moved["topology"], moved["nodes"], moved["positions"]) == ("random", 3, [[5, 6]])
    assert len(tomllib.loads(steps(text, {"op": "move_stations", "places": {"sta1": [5, 6]}}))["positions"]) == 4
    assert tomllib.loads(steps(text, {"op": "add_stations", "at": [[7, 7]]}))["positions"] == [[1, 2], [7, 7]]


def test_a_removed_station_takes_what_names_it_and_the_others_keep_theirs():
    text = """topology = "positions"
positions = [[0, 0], [1, 0], [2, 0], { name = "gw", at = [3, 0] }, [4, 0]]
flows = [{ from = "sta1", to = "sta2" }, { from = "sta3", to = "gw" }, { from = "sta5", to = "sta3" }]
wires = [{ station = "gw", host = "h" }]
mobility = { model = "schedule", moves = [{ at = 1, station = "sta3", to = [9, 9] }, { at = 1, station = "sta2", to = [9, 9] }] }
events = [
    { at = 1, link = ["sta2", "sta3"], error_rate = 1.0 },
    { at = 1, link = ["sta1", "sta3"], error_rate = 1.0 },
    { at = 2, station = "sta1", command = ["ping", "{sta3}", "{{sta3}}"] },
]
"""
    left = tomllib.loads(steps(text, {"op": "remove_stations", "stations": ["sta2"]}))
    assert left["positions"] == [[0, 0], [2, 0], {"name": "gw", "at": [3, 0]}, [4, 0]]
    assert left["flows"] == [{"from": "sta2", "to": "gw"}, {"from": "sta4", "to": "sta2"}]
    assert left["mobility"]["moves"] == [{"at": 1, "station": "sta2", "to": [9, 9]}]
    assert left["events"] == [
        {"at": 1, "link": ["sta1", "sta2"], "error_rate": 1.0},
        {"at": 2, "station": "sta1", "command": ["ping", "{sta2}", "{{sta3}}"]},
    ]
    named = tomllib.loads(steps(text, {"op": "rename_station", "station": "sta3", "name": "mid"}))
    assert named["positions"][2] == {"name": "mid", "at": [2, 0]} and named["flows"][2]["to"] == "mid"
    assert named["events"][2]["command"] == ["ping", "{mid}", "{{sta3}}"]


def test_a_copy_has_the_flows_radios_and_moves_between_its_stations():
    text = """topology = "positions"
positions = [[0, 0], { name = "gw", at = [100, 0, 3] }, [200, 0]]
radios = [{ station = "gw", antenna_height_m = 9 }]   # on a mast
mobility = { model = "schedule", moves = [{ at = 1, station = "sta1", to = [0, 50], speed = 2 }] }
flows = [{ from = "sta1", to = "gw", tcp = "vegas" }, { from = "sta1", to = "sta3" }]
"""
    new = steps(text, {"op": "copy_stations", "stations": ["sta1", "gw"], "by": [0, 300]})
    values = tomllib.loads(new)
    assert values["positions"] == [[0, 0], {"name": "gw", "at": [100, 0, 3]}, [200, 0], [0, 300], [100, 300, 3]]
    assert values["flows"][2:] == [{"from": "sta4", "to": "sta5", "tcp": "vegas"}] and "# on a mast" in new
    assert values["radios"][1:] == [{"station": "sta5", "antenna_height_m": 9}]
    assert values["mobility"]["moves"][1:] == [{"at": 1, "station": "sta4", "to": [0, 350], "speed": 2}]
    again = tomllib.loads(steps("hops = 2\n", {"op": "copy_stations", "stations": ["sta2"], "by": [0, 50]}))
    assert again == {"topology": "positions", "positions": [[0, 0], [200, 0], [400, 0], [200, 50]]}


def test_waypoints_follow_each_other_in_time():
    text = steps(
        'topology = "positions"\npositions = [[0, 0], [9, 9]]\n',
        {"op": "waypoint", "station": "sta1", "to": [30, 40], "speed": 5},
        {"op": "waypoint", "station": "sta2", "to": [9, 10], "speed": 1},
        {"op": "waypoint", "station": "sta1", "to": [30, 0], "speed": 8},
    )
    assert tomllib.loads(text)["mobility"]["moves"] == [  # 50 m at 5 m/s take 10 s
        {"at": 0, "station": "sta1", "to": [30, 40], "speed": 5},
        {"at": 0, "station": "sta2", "to": [9, 10], "speed": 1},
        {"at": 10, "station": "sta1", "to": [30, 0], "speed": 8},
    ]


def test_typing_is_one_step_until_something_else_happens():
    drawing = Drawing("")
    for text, joins in (("h", False), ("ho", True), ("hops = 2", True)):
        drawing.apply({"op": "text", "text": text, "joins": joins})
    drawing.apply({"op": "set", "path": ["seeds"], "value": 2})
    drawing.apply({"op": "text", "text": "hops = 3", "joins": True})
    for wanted in ("hops = 2\nseeds = 2\n", "hops = 2", ""):
        drawing.apply({"op": "undo"})
        assert drawing.text == wanted
    with pytest.raises(UsageError, match="nothing to undo"):
        drawing.apply({"op": "undo"})


def test_an_option_of_a_short_form_and_the_last_key_of_a_table():
    assert steps("hops = 2\n", {"op": "set", "path": ["energy"], "value": {"idle_w": 1}},
                 {"op": "remove", "path": ["energy", "idle_w"]}) == "hops = 2\n"  # fmt: skip
    text = "[scenario]\nhops = 2\n\n[axes]\nhops = [1, 2] # both\n"
    assert steps(text, {"op": "set", "path": ["hops"], "value": 3}) == text.replace("hops = 2", "hops = 3")


def test_the_background_is_a_comment_with_a_scale():
    text = steps("# mine\nhops = 2\n", {"op": "background", "file": "plan.png", "width": 80, "x": -3.5, "y": 0})
    assert text == "#:background plan.png width=80 at=-3.5,0\n# mine\nhops = 2\n"
    assert background_of(text) == {"file": "plan.png", "width": 80, "x": -3.5, "y": 0}
    assert steps(text, {"op": "background", "file": None, "width": 1, "x": 0, "y": 0}) == "# mine\nhops = 2\n"


@pytest.mark.parametrize(
    "wrong",
    [
        None, [], {}, {"op": 3}, {"op": "fly"}, {"op": "set"}, {"op": "set", "path": [], "value": 1},
        {"op": "set", "path": [True], "value": 1}, {"op": "set", "path": ["hops"], "value": None},
        {"op": "set", "path": ["hops"], "value": 1, "more": 2}, {"op": "set", "path": ["a"] * 13, "value": 1},
        {"op": "set", "path": ["tcp"], "value": "\ud800"}, {"op": "set", "path": ["window"], "value": 2**64},
        {"op": "set", "path": ["window"], "value": float("inf")}, {"op": "add_stations", "at": [[1]]},
        {"op": "add_stations", "at": [[1, "x"]]}, {"op": "add_stations", "at": []},
        {"op": "move_stations", "places": {"no": [1, 1]}},
        {"op": "copy_stations", "stations": ["no"], "by": [1, 1]}, {"op": "copy_stations", "stations": ["sta1"], "by": [1]},
        {"op": "remove_stations", "stations": ["no"]}, {"op": "rename_station", "station": "sta1", "name": "sta2"},
        {"op": "waypoint", "station": "sta1", "to": [1, 1], "speed": 0}, {"op": "text", "text": 3, "joins": False},
        {"op": "text", "text": "x" * (1 << 20) + "y", "joins": False}, {"op": "undo", "to": 3},
        {"op": "background", "file": "a b", "width": 1, "x": 0, "y": 0}, {"op": "append", "path": ["hops"], "value": 1},
        {"op": "background", "file": "a\nhops = 3", "width": 1, "x": 0, "y": 0}, {"op": "remove", "path": ["tcp"]},
    ],
)  # fmt: skip
def test_a_wrong_operation_is_refused_in_one_line_and_changes_nothing(wrong):
    drawing = Drawing("hops = 2\n")
    with pytest.raises(UsageError) as refused:
        drawing.apply(wrong)
    assert "\n" not in str(refused.value) and drawing.text == "hops = 2\n" and not drawing.can_undo


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add_stations", "at": [[10**400, 0]]}, {"op": "move_stations", "places": {"sta1": [10**400, 0]}},
        {"op": "waypoint", "station": "sta1", "to": [10**400, 0], "speed": 1},
        {"op": "waypoint", "station": "sta1", "to": [1, 0], "speed": 10**400},
        {"op": "background", "file": "a.png", "width": 10**400, "x": 0, "y": 0}, {"op": "set", "path": ["hops"], "value": 2**63},
        {"op": "set", "path": ["tcp"], "value": nested(900)}, {"op": "append", "path": ["flows"], "value": nested(900)},
        {"op": "add_stations", "at": [nested(900)]},
    ],
)  # fmt: skip
def test_numbers_and_tables_that_no_toml_has_are_refused(operation):
    drawing = Drawing(COMMENTED)
    with pytest.raises(UsageError, match=r"64 bits|nested"):
        drawing.apply(operation)
    assert drawing.text == COMMENTED and not drawing.can_undo
