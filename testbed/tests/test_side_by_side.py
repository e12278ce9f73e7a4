"""The default number of parallel runs."""

import pytest

from scenarios.scenario import Scenario
from testbed.campaigns import side_by_side


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 2)


def thirty(**routing):
    return Scenario(topology="random", nodes=30, area=(1500, 300), routing={"protocol": "dsr", **routing})


def test_twenty_three_runs_of_thirty_stations_fit_on_two_cores_and_nine_with_overhearing():
    assert side_by_side.default_jobs([thirty(learn_from_data=False)]) == 23
    assert side_by_side.default_jobs([thirty()]) == 9


def test_four_runs_of_fifty_stations_with_twenty_flows_fit_on_two_cores():
    field = {"topology": "random", "nodes": 50, "area": (1000, 1000), "routing": "aodv-ns2"}
    flows = [{"from": f"sta{n}", "to": f"sta{n + 20}", "traffic": "cbr", "bytes": 540, "rate": 10547} for n in range(1, 21)]
    assert side_by_side.default_jobs([Scenario(**field, flows=flows)]) == 4
    assert side_by_side.default_jobs([Scenario(**field)]) > 6


def test_a_guest_runs_no_more_at_once_than_it_has_processors(monkeypatch):
    monkeypatch.setenv("MANET_GUEST", "6.12")
    assert side_by_side.default_jobs([Scenario(hops=5)]) == 2


def test_the_dearest_cell_decides():
    chain, crowd = Scenario(hops=5), Scenario(topology="random", nodes=100, area=(1500, 300))
    assert side_by_side.default_jobs([chain]) > side_by_side.default_jobs([chain, crowd]) == 12


def test_a_fast_radio_costs_more_and_there_is_always_room_for_one():
    assert side_by_side.default_jobs([Scenario(hops=5, radio="dot11g-54m")]) < side_by_side.default_jobs([Scenario(hops=5)])
    assert side_by_side.default_jobs([Scenario(topology="random", nodes=1000, area=(1500, 300))]) == 1
