"""The remark that moving stations leave the range of their static routes."""

import pytest

from scenarios.scenario import Scenario
from testbed.runs.left_range import static_route_notes


def walk(to_m, **more):
    """A chain of two hops of 200 m, whose last station goes away at 10 m/s, to that distance from the first one."""
    moves = [{"at": 0, "station": "sta3", "to": [to_m, 0], "speed": 10}]
    keys = {"hops": 2, "spacing": 200, "duration": 60, "warmup": 0, "mobility": {"model": "schedule", "moves": moves}}
    return Scenario.model_validate(keys | more)


def test_the_time_at_which_a_hop_leaves_range_is_said_with_the_remedy():
    """250 m from the station at 200 m are left at 450 m, 5 s after 400 m."""
    assert static_route_notes([walk(600)], 1) == [
        'routing "static" keeps the routes of the start positions, and from 5.0 s of the traffic on sta3 is out of range of '
        "sta2 (250 m): flow1 then carries nothing; for routes that follow the stations take a protocol, as in --set routing=aodv"
    ]


def test_the_time_counts_from_the_start_of_the_traffic():
    assert "from 5.0 s of the traffic on" in static_route_notes([walk(600, traffic_at=20)], 1)[0]


def test_a_move_of_an_event_counts_as_one_of_the_movement():
    away = walk(0, mobility="static", events=[{"at": 7, "move": "sta3", "to": [900, 0]}])
    assert "from 7.0 s of the traffic on sta3 is out of range of sta2" in static_route_notes([away], 1)[0]


@pytest.mark.parametrize(
    "scenario",
    [
        walk(449), walk(600, routing="aodv"), walk(600, duration=4), walk(600, mobility="static"),
        walk(600, flows=[{"from": "sta1", "to": "sta2"}]),
    ],
    ids=["within range", "a protocol", "a short run", "no movement", "another route"],
)  # fmt: skip
def test_nothing_is_said_where_no_route_breaks(scenario):
    assert static_route_notes([scenario], 1) == []


def test_without_a_single_range_the_remark_is_general():
    shadowed = walk(600, propagation={"model": "shadowing", "sigma_db": 4})
    (note,) = static_route_notes([shadowed], 1)
    assert "while stations move: a flow carries nothing while two stations of its route are out of range" in note


def test_several_cells_and_flows_have_one_line():
    flows = [{"from": "sta1", "to": "sta3"}, {"from": "sta3", "to": "sta1"}, {"from": "sta1", "to": "sta2"}]
    cells = [walk(600, flows=flows), walk(600, flows=flows, tcp="vegas"), walk(700, flows=flows)]
    (note,) = static_route_notes(cells, 1)
    assert ": flow1 and 1 more then carries nothing" in note and note.endswith(" (1 more scenarios have the like)")
