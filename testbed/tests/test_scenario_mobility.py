"""The key `mobility`: models and files with their options, the trace, and errors as the one line that the user sees."""

import hashlib
import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest

from mobility import files, trace
from mobility.models import MODELS
from scenarios.definition import load_scenario
from scenarios.movement import MOVEMENTS
from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.programs import ROOT
from testbed.stages.movement import trace_of, write_trace
from testbed.tests.refusals import message

QUOTED = ", ".join(f'"{name}"' for name in MOVEMENTS)
PATTERNS = ROOT / "mobility" / "patterns"
FIELD = 'topology = "random"\nnodes = 30\narea = [1500, 300]\nduration = 20\n'
OLD = {"topology": "random", "nodes": 30, "area": [1500, 300], "mobility": "random-waypoint", "speed": 10, "pause": 2}
OLD_TRACE = "ef7418345ef2e0dda5cf7bc5775961763002f69202a0c7cc243878ab75ea561a"  # of release 3, with this scenario, DSR and seed 3


def written(scenario: Scenario, seed: int, folder: Path) -> str:
    write_trace(SimpleNamespace(directory=folder, scenario=scenario, seed=seed))
    return (folder / "trace.csv").read_text()


def test_the_movement_of_a_seed_is_the_one_it_always_was(tmp_path):
    """Documented results hang on it."""
    scenario = Scenario.model_validate(OLD | {"routing": "dsr"})
    assert hashlib.sha256(written(scenario, 3, tmp_path).encode()).hexdigest() == OLD_TRACE


def test_every_model_has_a_class_with_the_options_of_its_function():
    assert {name for name, made in MOVEMENTS.items() if made.MADE} == set(MODELS)
    for name, function in MODELS.items():
        fields = MOVEMENTS[name].model_fields
        parameters = inspect.signature(function).parameters
        own = set(parameters) - {"places", "area", "begin_s", "end_s", "seed"}
        assert own == set(fields) - {"model"}, name


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"schedule"}))
def test_every_model_moves_the_stations_from_the_traffic_on(load, name, tmp_path):
    extra = ", radius = 50" if name == "group" else ""
    scenario = load(FIELD + f'mobility = {{ model = "{name}", speed = 10{extra} }}')
    made = trace.parse(written(scenario, 1, tmp_path).encode(), "trace.csv", scenario.station_names())
    assert made.end_s == 10 + 25 + 120
    assert made.position("sta1", 0) == made.position("sta1", 10) != made.position("sta1", 30)
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert trace_of(scenario, 1).legs != trace_of(scenario, 2).legs


def test_speed_and_pause_are_short_forms_of_the_model_s_options(load):
    short = load(FIELD + 'mobility = "random-waypoint"\nspeed = 5\npause = 1')
    table = load(FIELD + 'mobility = { model = "random-waypoint", speed = 5, pause = "1000 ms" }')
    assert short == table
    assert (short.speed, short.pause, short.mobility.speed, short.mobility.pause) == (5, 1, 5, 1)


def test_options_can_be_set_from_the_command_line(load):
    scenario = load(FIELD + 'mobility = "random-waypoint"\nspeed = 5', "mobility.spread=0", "mobility.start=steady")
    assert (scenario.mobility.spread, scenario.mobility.start, scenario.mobility.speed) == (0, "steady", 5)


def test_a_schedule_moves_the_stations_that_it_names(load):
    moves = '[{ at = 5, station = "sta1", to = [0, 90], speed = "36 km/h" }, { at = 9, station = "sta2", to = [1, 1] }]'
    scenario = load(f'hops = 2\nduration = 9\nmobility = {{ model = "schedule", moves = {moves} }}')
    made = trace_of(scenario, 1)
    assert made.position("sta1", 10 + 5 + 3) == (0, 30, 0)
    assert made.position("sta2", 18.9)[:2] == (200, 0) and made.position("sta2", 19)[:2] == (1, 1)


# --- files --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", ["factor = 10", "speed = 10"])
def test_a_pattern_of_files_is_replayed_seed_by_seed_at_its_speed(load, speed):
    scenario = load(FIELD + f'mobility = {{ file = "{PATTERNS}/p*.tcl", {speed}, at = "traffic" }}')
    assert scenario.traffic_at == 10
    for seed in (1, 10):
        once, made = files.read(PATTERNS / f"p{seed:02}.tcl"), trace_of(scenario, seed)
        assert made.end_s == 10 + 360 and made.mean_mps == 10
        for second in (0, 1.5, 77):
            assert made.position("sta7", 10 + second) == pytest.approx(once.position("sta7", 10 * second), abs=1e-4)
    with pytest.raises(UsageError, match="10 files match, and there is none for seed 11; use seeds 1 to 10"):
        trace_of(scenario, 11)


def test_a_file_in_our_format_is_copied_byte_for_byte(load, tmp_path):
    text = "# manet-trace/1\n# by hand\ntime_s,station,x_m,y_m,z_m,speed_mps\n0,sta1,1,0,0,0\n"
    (tmp_path / "walk.csv").write_text(text)
    scenario = load('hops = 2\nmobility = "walk.csv"')
    (tmp_path / "run").mkdir()
    assert written(scenario, 4, tmp_path / "run") == text


def test_a_file_s_nodes_are_the_stations_in_their_order(load, tmp_path):
    (tmp_path / "m.movements").write_text("0 1 2 10 11 2\n0 5 5\n")
    layout = 'topology = "positions"\npositions = [{ name = "gw", at = [0, 0] }, [9, 9], [8, 8]]\n'
    scenario = load(layout + 'mobility = "m.movements"')
    made = trace_of(scenario, 1)
    assert made.stations() == ["gw", "sta2"]  # the third stays where the layout has it
    assert made.position("gw", 5) == (6, 2, 0)


def test_a_file_in_set_is_relative_to_the_current_folder_first(tmp_path, monkeypatch):
    """A shell completes it so; what stands in the file goes by the file."""
    here = tmp_path / "here"
    here.mkdir()
    for folder, x_m in ((tmp_path, 1), (here, 2)):
        (folder / "walk.csv").write_text(f"# manet-trace/1\ntime_s,station,x_m,y_m,z_m,speed_mps\n0,sta1,{x_m},0,0,0\n")
    (tmp_path / "x.toml").write_text('hops = 2\nmobility = "walk.csv"')
    monkeypatch.chdir(here)

    def sta1_of(*settings):
        return trace_of(load_scenario(tmp_path / "x.toml", settings), 1).position("sta1", 0)[0]

    assert (sta1_of(), sta1_of("mobility.factor=2")) == (1, 1)
    assert (sta1_of("mobility=walk.csv"), sta1_of("mobility.file=walk.csv"), sta1_of("mobility=../walk.csv")) == (2, 2, 1)
    (here / "walk.csv").unlink()
    assert sta1_of("mobility=walk.csv") == 1
    with pytest.raises(UsageError, match=r"there is no trace file \S*/run\.csv; .*, relative to where you are, or to the scen"):
        sta1_of("mobility=run.csv")


def test_the_file_can_be_scaled_from_the_command_line(load, tmp_path):
    (tmp_path / "walk.csv").write_text("# manet-trace/1\ntime_s,station,x_m,y_m,z_m,speed_mps\n0,sta1,0,0,0,0\n8,sta1,80,0,0,1\n")
    scenario = load('hops = 2\nmobility = "walk.csv"', "mobility.factor=4")
    assert trace_of(scenario, 1).position("sta1", 4) == (8, 0, 0)


WALK = "# manet-trace/1\n# end_s: 40\ntime_s,station,x_m,y_m,z_m,speed_mps\n0,sta1,0,0,0,0\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (FIELD + 'mobility = "group"', 'x.toml: line 1: mobility "group" needs "speed"; add speed = 10'),
        (
            'hops = 2\nmobility = "manhattan"\nspeed = 3',
            'x.toml: line 1: mobility "manhattan" needs "area"; add area = [1500, 300]',
        ),
        (
            FIELD + 'speed = 3\nmobility = { model = "random-waypoint", spred = 0.2 }',
            'x.toml: line 6: key "mobility.spred": unknown key; did you mean "spread"?',
        ),
        (
            FIELD + 'speed = 3\nmobility = { model = "random-walk", step = "3 s" }',
            'x.toml: line 6: key "mobility.step": "3 s" has the unit "s", but a distance is expected; '
            "give a number in m, or text with one of m, km, cm",
        ),
        (
            FIELD + 'speed = 3\nmobility = { model = "gauss-markov", memory = 2 }',
            'x.toml: line 6: key "mobility.memory": 2 is out of range; give at most 1',
        ),
        (
            FIELD + 'mobility = { model = "levy", speed = 3 }',
            f'x.toml: line 5: key "mobility": "levy" is not known; use one of {QUOTED}',
        ),
        (FIELD + "mobility = { speed = 3 }", 'x.toml: line 5: key "mobility": names no model; add model = one of static, '),
        (
            FIELD + 'speed = 2\nmobility = { model = "manhattan", speed = 3 }',
            'x.toml: line 5: key "speed": 2 contradicts mobility.speed = 3; remove one of the two',
        ),
        (
            FIELD + 'mobility = "manhattan"\nspeed = 2\npause = 3',
            'x.toml: line 7: key "pause": mobility "manhattan" has no pause of its own; remove it',
        ),
        (
            FIELD + 'speed = 2\nmobility = { model = "group", radius = 300 }',
            'x.toml: line 6: key "mobility": group: members up to 320 m from the centre do not fit into 1500 x 300 m; '
            "lower radius or wander, or enlarge the area",
        ),
        (
            FIELD + 'speed = 2\nmobility = { model = "random-waypoint", legs = "timed" }',
            'x.toml: line 6: key "mobility": random-waypoint: a timed leg may lead beyond its point and out of the area; '
            'give edges = "wrap", or legs = "to-point"',
        ),
        (
            FIELD + 'speed = 2\nmobility = { model = "random-waypoint", spread = 1, start = "steady" }',
            'x.toml: line 6: key "mobility": random-waypoint: there is no steady state with a spread of 1',
        ),
        (
            'hops = 2\nmobility = { model = "schedule", moves = [{ at = 1, station = "sta9", to = [0, 0] }] }',
            'x.toml: line 2: key "mobility": schedule: move 1: there is no station "sta9"',
        ),
        (
            'hops = 2\nduration = 20\nmobility = { file = "walk.csv", factor = 2, speed = 3 }',
            'x.toml: line 3: key "mobility.factor": and speed both set the speed; remove one of the two',
        ),
        ('hops = 2\nmobility = { file = "walk.csv", speed = 3 }', "walk.csv: does not state its mean speed; add a line"),
        (
            'hops = 2\nmobility = { file = "walk.csv", factor = 4 }',
            "walk.csv: line 2: the trace ends at 10 s and the run lasts 35 s; shorten the run or make a longer trace",
        ),
        (
            'hops = 1\narea = [1500, 300]\nmobility = "out.movements"',
            "out.movements: line 2: sta2 goes to (1501, 0) m, outside the area of 1500 x 300 m; correct the line, or give the",
        ),
        ('hops = 2\nmobility = "w*.tcl"', "there is no trace file"),
        (
            'hops = 2\narea = [900, 9]\nmobility = { model = "schedule", moves = [{at=1, station="sta1", to=[9, 10]}] }',
            "schedule: move 1: sta1 goes to (9, 10) m, outside the area of 900 x 9 m; correct the move, or give a larger area",
        ),
        ('hops = 1\nmobility = "three.movements"', "three.movements: has 3 nodes and the scenario 2 stations"),
        ('hops = 1\nmobility = "bad.tcl"', "bad.tcl: line 2: X_ \"x\" must be a number"),
    ],
)  # fmt: skip
def test_an_error_names_the_key_or_the_file_and_the_remedy(load, tmp_path, text, wanted):
    (tmp_path / "walk.csv").write_text(WALK)
    (tmp_path / "three.movements").write_text("0 1 1\n" * 3)
    (tmp_path / "out.movements").write_text("0 1 1\n0 9 9 40 1501 0\n")
    (tmp_path / "bad.tcl").write_text("# a script\n$node_(0) set X_ x\n")
    assert wanted in message(load, text)


def test_a_station_with_its_own_position_in_a_random_field_stays_there(load, tmp_path):
    """As a gateway: it comes after the random stations, whose places and movement it does not change."""
    keys = 'mobility = { model = "random-waypoint", speed = 10 }\n'
    field, with_gateway = load(FIELD + keys), load(FIELD + 'positions = [{ name = "gw", at = [400, 200] }]\n' + keys)
    assert with_gateway.positions(3) == [*field.positions(3), ("gw", 400, 200, 0)]
    assert [leg for leg in trace_of(with_gateway, 3).legs if leg.station != "gw"] == trace_of(field, 3).legs
    assert trace_of(with_gateway, 3).position("gw", 25) == (400, 200, 0)


def test_a_wrong_name_among_random_stations_is_told_by_its_key(load):
    assert 'key "positions": "GW" is no station name' in message(load, FIELD + 'positions = [{ name = "GW", at = [4, 2] }]')
