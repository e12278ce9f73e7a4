"""Experiments based on others (`base`) and named sets of flows: the joined result, and the file and line of an error."""

from pathlib import Path

import pytest

from scenarios.definition import load_scenario
from scenarios.toml_file import MAX_BASES
from testbed.campaigns.experiment import load
from testbed.campaigns.request import Request
from testbed.tests.refusals import message

BASE = """
question = "base?"
source = "a paper"
[scenario]
hops = 3
window = 8
routing = { protocol = "aodv", link = "hello" }
[axes]
spacing = [100, 200]
[[variants]]
name = "a"
[[variants]]
name = "b"
set = { tcp = "cubic" }
[full]
seeds = 5
[quick]
seeds = 2
duration = 10
"""


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def from_files(own, *overrides, base=BASE, quick=False):
        Path("base.toml").write_text(base)
        Path("own.toml").write_text(own)
        return load(Path("own.toml"), Request(quick=quick, overrides=overrides))

    return from_files


def test_a_file_contains_the_differences_from_its_base(experiment):
    own = experiment('base = "base.toml"\nquestion = "own?"\n[scenario]\nwindow = 4\n[quick]\nseeds = 3\n', quick=True)
    assert (own.name, own.question, own.source, own.seeds) == ("own", "own?", "a paper", 3)
    assert [cell.name for cell in own.cells] == ["a-spacing100", "a-spacing200", "b-spacing100", "b-spacing200"]
    scenario = own.cells[0].scenario
    assert (scenario.hops, scenario.window, scenario.duration) == (3, 4, 10)


def test_lists_and_inner_tables_are_replaced_as_a_whole(experiment):
    own = experiment(
        'base = "base.toml"\n[scenario]\nrouting = { protocol = "aodv" }\n[[variants]]\nname = "c"\n[axes]\nspacing = [50]\n'
    )
    assert [cell.name for cell in own.cells] == ["c-spacing50"]
    assert own.cells[0].scenario.routing.link == "feedback"


def test_a_base_may_have_a_base_and_a_scenario_file_may_have_one(experiment, tmp_path):
    Path("first.toml").write_text("[scenario]\nhops = 7\nwindow = 2\n")
    base = 'base = "first.toml"\n[scenario]\nwindow = 5\n'
    scenario = experiment('base = "base.toml"\n[scenario]\nduration = 9\n', base=base).cells[0].scenario
    assert (scenario.hops, scenario.window, scenario.duration) == (7, 5, 9)
    assert load_scenario(Path("own.toml")) == scenario


def test_an_error_names_the_file_and_line_of_the_key(experiment):
    own = 'base = "base.toml"\n[scenario]\nmss = 5000\n'
    assert message(experiment, own).startswith('own.toml: line 3: key "mss": 5000 is out of range')
    wrong = BASE.replace("window = 8", "window = 0")
    assert message(experiment, 'base = "base.toml"\n', base=wrong).startswith(
        'base.toml: line 6: key "window": 0 is out of range'
    )
    wrong = BASE.replace('tcp = "cubic"', "tcp = 5")
    assert message(experiment, 'base = "base.toml"\n[scenario]\nwindow = 4', base=wrong).startswith(
        'base.toml: line 14: key "variants.1.set.tcp": 5 is of the wrong type'
    )


def test_a_movement_file_is_relative_to_the_file_that_names_it(experiment):
    Path("sub").mkdir()
    Path("sub/walk.csv").write_text("t_s,station,x_m,y_m,z_m,speed_mps\n")
    Path("sub/far.toml").write_text('[scenario]\nhops = 1\nmobility = "walk.csv"\n')
    wrong = message(experiment, 'base = "sub/far.toml"\n[scenario]\nwindow = 4\n')
    assert "there is no trace file" not in wrong and wrong.startswith(str(Path("sub/walk.csv").resolve()))


@pytest.mark.parametrize(
    ("own", "base", "wanted"),
    [
        ("base = 5", BASE, 'own.toml: line 1: key "base": is of the wrong type; give the path of a file, in quotes'),
        (
            'question = "?"\nbase = "bse.toml"',
            BASE,
            'own.toml: line 2: key "base": there is no file "bse.toml"; did you mean "base.toml"?',
        ),
        ('base = "base"', BASE, 'own.toml: line 1: key "base": there is no file "base"; did you mean "base.toml"?'),
        ('base = "bas"', BASE, 'own.toml: line 1: key "base": there is no file "bas"; did you mean "base.toml"?'),
        ('base = "/own"', BASE, 'own.toml: line 1: key "base": there is no file "/own"; give its path, relative to this file'),
        ('base = ""', BASE, 'own.toml: line 1: key "base": there is no file ""; give its path, relative to this file'),
        (
            '[scenario]\nwindow = 4\nbase = "base.toml"',
            BASE,
            'own.toml: line 3: key "base": unknown key here; it stands at the top of a file, before all tables',
        ),
        (
            'base = "base.toml"',
            'base = "own.toml"',
            'base.toml: line 1: key "base": "own.toml" is itself based on this file; remove one of the two keys',
        ),
        (
            'base = "own.toml"',
            BASE,
            'own.toml: line 1: key "base": "own.toml" is itself based on this file; remove one of the two keys',
        ),
        ('base = "base.toml"', "question = ", "base.toml: line 1: not TOML: Invalid value; see https://toml.io for the syntax"),
        (f'base = "{"x" * 300}"', BASE, 'own.toml: line 1: key "base": there is no file "' + "x" * 80 + "... (300 characters)\"; "
         "give its path, relative to this file"),
    ],
)  # fmt: skip
def test_a_base_that_cannot_be_one_is_refused(experiment, own, base, wanted):
    assert message(experiment, own, base=base) == wanted


def test_a_row_of_bases_has_an_end(experiment):
    for number in range(MAX_BASES + 1):
        Path(f"b{number}.toml").write_text(f'base = "b{number + 1}.toml"\n')
    Path(f"b{MAX_BASES}.toml").write_text("[scenario]\nhops = 2\n")
    assert load(Path("b0.toml")).cells[0].scenario.hops == 2
    text = f'key "base": is one base more than the {MAX_BASES} that a file may have in a row; join some of them'
    assert message(experiment, 'base = "b0.toml"\n') == f"b{MAX_BASES - 1}.toml: line 1: {text}"


SETS = """
question = "?"
[flow_sets]
pair = [
    { from = "sta1", to = "sta2" },
    { from = "sta2", to = "sta3", start = 1 },
]
streams = [{ from = "sta3", to = "sta1", traffic = "cbr", bytes = 100, rate = 1000 }]
[scenario]
hops = 2
flows = "pair"
[[variants]]
name = "pair"
[[variants]]
name = "fast"
set = { flows = [{ from = "sta1", to = "sta3" }, { set = "streams", rate = 5000 }, { set = "pair", start = 3 }] }
"""


def _flows(cell):
    return [(flow.source, flow.target, flow.start, flow.rate) for flow in cell.scenario.flows]


def test_a_flow_set_means_its_flows_with_the_keys_next_to_it(experiment):
    pair, fast = experiment(SETS).cells
    assert _flows(pair) == [("sta1", "sta2", 0, None), ("sta2", "sta3", 1, None)]
    assert _flows(fast) == [
        ("sta1", "sta3", 0, None), ("sta3", "sta1", 0, 5000), ("sta1", "sta2", 3, None), ("sta2", "sta3", 3, None),
    ]  # fmt: skip


def test_flow_sets_are_named_by_axes_sizes_and_set_too(experiment):
    cells = experiment(SETS.replace("[scenario]", '[axes]\nflows = ["pair", "streams"]\n[scenario]')).cells
    assert [(cell.name, len(cell.scenario.flows)) for cell in cells[:2]] == [("pair-flowspair", 2), ("pair-flowsstreams", 1)]
    sized = experiment(SETS + '[quick]\nflows = "streams"\n', quick=True).cells
    assert len(sized[0].scenario.flows) == 1
    assert len(experiment(SETS, "flows=streams").cells[0].scenario.flows) == 1
    assert experiment(SETS, "flows.1.to=sta1").cells[0].scenario.flows[1].target == "sta1"


NESTED = SETS.replace("streams = [", 'both = [{ set = "pair", start = 2 }, { set = "streams" }]\nstreams = [')


def test_a_flow_set_may_contain_sets_with_keys_next_to_them(experiment):
    assert _flows(experiment(NESTED, "flows=both").cells[0]) == [
        ("sta1", "sta2", 2, None), ("sta2", "sta3", 2, None), ("sta3", "sta1", 0, 1000),
    ]  # fmt: skip
    again = experiment(NESTED.replace('{ set = "streams", rate = 5000 }', '{ set = "both", start = 4 }')).cells[1]
    assert [start for _, _, start, _ in _flows(again)] == [0, 4, 4, 4, 3, 3]


@pytest.mark.parametrize(
    ("inner", "wanted"),
    [
        ('{ set = "both" }', 'the flow set "both" contains itself: both > both'),
        ('{ set = "twice" }]\ntwice = [{ set = "both" }', 'the flow set "both" contains itself: both > twice > both'),
        ('{ set = "stream" }', 'there is no flow set "stream"; did you mean "streams"?'),
    ],
)
def test_an_invalid_set_inside_of_a_set_is_reported_with_its_place(experiment, inner, wanted):
    text = NESTED.replace('{ set = "streams" }]', inner + "]").replace('flows = "pair"', 'flows = "both"')
    assert message(experiment, text).endswith(wanted)
    assert 'key "flow_sets.' in message(experiment, text)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ('flows = "pair"', 'flows = "par"', 'own.toml: line 11: key "flows": there is no flow set "par"; did you mean "pair"?'),
        ('set = "streams"', 'set = "x"', 'own.toml: line 16: key "variants.1.set.flows.1.set": there is no flow set "x"; '
         "there are pair, streams"),
        ("start = 1", "start = -1", 'own.toml: line 6: key "flow_sets.pair.1.start": -1 is out of range; give at least 0 s'),
        ("start = 3", "start = -3", 'own.toml: line 16: key "variants.1.set.flows.2.start": -3 is out of range; '
         "give at least 0 s"),
        ('to = "sta3" }, {', 'to = "sta9" }, {', 'own.toml: line 16: key "variants.1.set.flows.0.to": '
         'there is no station "sta9"; the stations are sta1 to sta3'),
    ],
)  # fmt: skip
def test_an_invalid_flow_is_reported_with_the_place_of_its_set(experiment, old, new, wanted):
    assert SETS.count(old) == 1
    assert message(experiment, SETS.replace(old, new)) == wanted


def test_an_unknown_flow_set_after_set_is_refused(experiment):
    wanted = '--set: key "flows": there is no flow set "none"; there are pair, streams'
    assert message(experiment, SETS, "flows=none") == wanted
