"""`duration = "movement"`: a seed's movement is the same at every mean speed (Holland and Vaidya, MobiCom 1999, section 2)."""

import tomllib

import jsonschema
import pytest

from analysis.metrics.expected import Curve, expected
from analysis.references import load_reference
from mobility import connectivity
from mobility.connectivity import Links
from scenarios.json_schema import of_scenario
from scenarios.movement import MOVEMENTS as MODELS
from scenarios.scenario import Scenario
from testbed.programs import ROOT
from testbed.stages.movement import trace_of
from testbed.tests.refusals import message

FIELD = 'topology = "random"\nnodes = 12\narea = [1000, 300]\nwarmup = 0\nduration = "movement"\n'
WAYPOINT = f'{FIELD}mobility = "random-waypoint"\n'
PATTERN = f'{{ file = "{ROOT}/mobility/patterns/p03.tcl", at = "traffic" }}'
UNTIMED = PATTERN.replace(', at = "traffic"', "")
MOVEMENTS = [
    '"random-waypoint"',
    '{ model = "random-waypoint", spread = 0.5, start = "steady" }',
    '{ model = "random-waypoint", spread = 1, edges = "wrap", legs = "timed" }',
    '{ model = "random-walk", step = 300 }',
    '"manhattan"',
    PATTERN,
]
PUBLISHED = load_reference("published", "holland-vaidya_fig1")
CURVE = Curve({int(hops): kbps for hops, kbps in zip(*PUBLISHED.series("hops", "acked_kbps"), strict=True)}, PUBLISHED.name)


def links(scenario: Scenario, seed: int) -> Links:
    begin_s = scenario.traffic_at or 0.0
    return connectivity.links(trace_of(scenario, seed), begin_s=begin_s, end_s=begin_s + scenario.traffic_seconds())


@pytest.mark.parametrize("movement", MOVEMENTS, ids=lambda text: text.replace(str(ROOT), ""))
def test_a_seed_has_the_same_links_at_the_same_places_at_every_speed(load, movement):
    """At v m/s everything happens at 1/v of its time at 1 m/s. Times of a trace are whole nanoseconds."""
    nodes = "nodes = 30\narea = [1500, 300]" if "file" in movement else "nodes = 12\narea = [1000, 300]"
    text = f'topology = "random"\n{nodes}\nwarmup = 0\nduration = "movement"\ntravel = 3000\nmobility = {movement}'
    for seed in (1, 2):
        found = {}
        for speed in (2, 10, 30):
            scenario = load(text, f"speed={speed}")
            assert scenario.traffic_seconds() == 3000 / speed
            at = links(scenario, seed)
            contacts = sorted((c.ends, (c.begin_s - at.begin_s) * speed, (c.end_s - at.begin_s) * speed) for c in at.contacts)
            profile = at.hops("sta1", "sta2")
            found[speed] = (contacts, [hops for *_, hops in profile.steps()], expected(profile.seconds(), CURVE, beyond=True))
        contacts, hops, kbps = found[2]
        assert len(contacts) > 10
        for other, other_hops, other_kbps in (found[10], found[30]):
            assert [ends for ends, *_ in other] == [ends for ends, *_ in contacts]
            times, other_times = ([time for _, *both in found for time in both] for found in (contacts, other))
            assert other_times == pytest.approx(times, abs=1e-3)
            assert other_hops == hops
            assert other_kbps == pytest.approx(kbps, rel=1e-6)


def test_every_movement_that_scales_is_compared_above():
    scaling = {name for name, model in MODELS.items() if model.SCALES and model.MADE}
    assert scaling == {name for name in MODELS if any(f'"{name}"' in form for form in MOVEMENTS)}


def test_scenario_json_has_the_time(load):
    """Readers of results need neither key, and runs of equal length are equal scenarios."""
    scenario = load(WAYPOINT + 'travel = "3.6 km"', "speed=30")
    assert scenario.duration == 120
    assert scenario == load(WAYPOINT, "speed=30", "duration=120")
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert "travel" not in scenario.to_json()


def test_a_time_in_place_of_the_movement_needs_no_other_change(load):
    assert load(WAYPOINT + "travel = 3600\nspeed = 2", "duration=10").duration == 10


def test_the_schema_knows_the_word():
    check = jsonschema.Draft202012Validator(of_scenario())
    assert check.is_valid(tomllib.loads(WAYPOINT + "travel = 3600\nspeed = 2"))
    assert not check.is_valid(tomllib.loads('duration = "moves"'))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (WAYPOINT + "speed = 2", 'line 5: key "duration": "movement" needs "travel", the way of a station at the mean speed'),
        ("hops = 1\ntravel = 9", 'x.toml: line 2: key "travel": is for duration = "movement"; add that'),
        (WAYPOINT + "speed = 2\ntravel = 0", 'line 8: key "travel": 0 is out of range; give more than 0 m'),
        (
            WAYPOINT + "speed = 30\ntravel = 1",
            'line 8: key "travel": 1 m take 0.0333333 s at 30 m/s; give a length that takes 0.1 to 86400 s',
        ),
        (
            WAYPOINT.replace("warmup = 0\n", "") + "speed = 2\ntravel = 9",
            'key "warmup": 5 s are another part of the movement at every speed; duration = "movement" needs warmup = 0',
        ),
        (
            WAYPOINT + 'speed = 2\ntravel = 9\nflows = [{ from = "sta1", to = "sta2", warmup = 3 }]',
            'line 9: key "flows.0.warmup": 3 s are another part of the movement at every speed; duration = "movement" ',
        ),
        (
            WAYPOINT + "speed = 2\npause = 1\ntravel = 9",
            'line 8: key "pause": lasts as long at every speed, so duration = "movement" needs pause = 0; or give a time in s',
        ),
        (
            FIELD + 'mobility = "gauss-markov"\nspeed = 2\ntravel = 9',
            'line 5: key "duration": mobility "gauss-markov" is not the same at every speed; take "random-waypoint", '
            '"random-walk", "manhattan" or a file, or give a time in s',
        ),
        (
            'hops = 1\nwarmup = 0\nduration = "movement"\ntravel = 9',
            'line 3: key "duration": mobility "static" is not the same at every speed; take',
        ),
        (
            FIELD + f"travel = 9\nmobility = {PATTERN}",
            'line 5: key "duration": "movement" needs the mean speed; add speed = 10 (in place of "factor")',
        ),
        (
            FIELD + f"travel = 9\nspeed = 2\nmobility = {UNTIMED}",
            'line 8: key "mobility.at": begins before the traffic, by the same time at every speed; duration = ',
        ),
    ],
)  # fmt: skip
def test_a_movement_that_is_not_the_same_at_every_speed_is_refused(load, text, wanted):
    assert wanted in message(load, text)
