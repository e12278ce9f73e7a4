"""Propagation, fading, walls and measured links of a scenario: what reaches the medium, and what is refused."""

from pathlib import Path

import pytest

from keys.errors import UsageError
from scenarios.definition import load_scenario
from scenarios.identity import identity
from scenarios.scenario import Scenario

LINKS = "time_s,from,to,rssi_dbm\n0,sta1,sta2,-60\n0,sta2,sta1,-60\n"


def loaded(folder: Path, text: str, *settings: str) -> Scenario:
    (folder / "links.csv").write_text(LINKS)
    (folder / "x.toml").write_text(text)
    return load_scenario(folder / "x.toml", settings)


def refused(folder: Path, text: str, *settings: str) -> str:
    with pytest.raises(UsageError) as error:
        loaded(folder, text, *settings)
    return str(error.value).removeprefix(f"{folder}/")


def test_a_channel_without_fading_and_walls_adds_nothing_to_the_medium_s_configuration():
    assert Scenario(hops=1).channel_keys() == {}
    assert identity(Scenario(hops=1)) == identity(Scenario.model_validate({"hops": 1, "fading": "none", "walls": []}))


def test_fading_is_a_name_or_a_table_and_has_the_medium_s_keys():
    def keys(fading):
        return Scenario.model_validate({"hops": 1, "fading": fading}).channel_keys()["fading"]

    assert keys("rayleigh") == {"model": "rayleigh", "coherence": "doppler"}
    assert keys({"model": "rician", "k_db": 6, "speed_mps": 1.5}) == {
        "model": "rician", "k_db": 6.0, "speed_mps": 1.5, "coherence": "doppler",
    }  # fmt: skip
    named = Scenario.model_validate({"hops": 1, "fading": {"model": "nakagami", "m": 2, "speed_mps": 1, "coherence": "block"}})
    assert Scenario.from_json(named.to_json()) == named


def test_walls_are_given_by_their_ends():
    wall = {"from": [5, -2], "to": [5, "0.002 km"], "loss_db": 8}
    scenario = Scenario.model_validate({"hops": 1, "walls": [wall]})
    assert scenario.channel_keys() == {"walls": [{"from": [5.0, -2.0], "to": [5.0, 2.0], "loss_db": 8.0}]}
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert identity(scenario) != identity(Scenario(hops=1))


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ('fading = "rician"', 'key "fading": the model "rician" needs "k_db"; add it'),
        ('fading = { model = "rayleigh", k_db = 3 }', 'key "fading.k_db": the model "rayleigh" has no "k_db"; remove it'),
        ('fading = { model = "nakagami", m = 0.4 }', 'key "fading.m": 0.4 is out of range; give at least 0.5'),
        ('fading = "rice"', 'key "fading.model": "rice" is not known; use one of "none", "rayleigh", "rician", "nakagami"'),
        ("walls = [{ from = [0], to = [1, 1], loss_db = 3 }]", 'key "walls.0.from.1": is missing; add it'),
        (
            "walls = [{ from = [0, 0], to = [1, 1], loss_db = 301 }]",
            'key "walls.0.loss_db": 301 is out of range; give at most 300',
        ),
        ('propagation = "trace"', 'key "propagation": the model "trace" needs "file"; add it'),
        ('propagation = { model = "trace", file = "no.csv" }', 'key "propagation.file": there is no file '),
        ('propagation = { model = "itu-indoor", sigma_db = 3 }', 'key "propagation.sigma_db": the model "itu-indoor" has no'),
        ('topology = "unplaced"\nnodes = 2', 'key "propagation": "two-ray" needs positions, which topology "unplaced" has not'),
        ('topology = "unplaced"', 'topology "unplaced" needs "nodes"; add it'),
    ],
)
def test_what_does_not_fit_is_refused_with_its_key(tmp_path, keys, wanted):
    text = keys if "topology" in keys else f"hops = 1\n{keys}"
    message = refused(tmp_path, text)
    assert wanted in message and message.startswith("x.toml: "), message


def test_stations_without_positions_do_not_move_and_have_no_area(tmp_path):
    base = 'topology = "unplaced"\nnodes = 2\npropagation = { model = "trace", file = "links.csv" }\n'
    assert [placed.name for placed in loaded(tmp_path, base).positions()] == ["sta1", "sta2"]
    assert 'key "area": is for stations with positions' in refused(tmp_path, base + "area = [10, 10]")
    moves = 'mobility = { model = "schedule", moves = [{ at = 1, station = "sta1", to = [5, 5] }] }'
    assert 'key "mobility": moves stations, which topology "unplaced" does not place' in refused(tmp_path, base + moves)


def test_measured_links_are_found_beside_the_scenario_and_reach_the_medium_under_the_run_s_name(tmp_path):
    text = 'hops = 1\npropagation = { model = "trace", file = "links.csv" }\n'
    scenario = loaded(tmp_path, text)
    assert scenario.propagation.file == str(tmp_path / "links.csv")
    assert scenario.propagation.for_medium() == {"model": "trace", "file": "links.csv"}
    assert loaded(tmp_path, "hops = 1", f"propagation.file={tmp_path}/links.csv", "propagation.model=trace") == scenario


def test_the_links_of_a_scenario_count_by_their_content(tmp_path):
    text = 'hops = 1\npropagation = { model = "trace", file = "FILE" }\n'
    one = loaded(tmp_path, text.replace("FILE", "links.csv"))
    (tmp_path / "copy.csv").write_text(LINKS)
    assert identity(loaded(tmp_path, text.replace("FILE", "copy.csv"))) == identity(one)
    (tmp_path / "copy.csv").write_text(LINKS + "9,sta1,sta2,-80\n")
    assert identity(loaded(tmp_path, text.replace("FILE", "copy.csv"))) != identity(one)


def test_links_of_another_station_are_refused_with_the_key(tmp_path):
    (tmp_path / "other.csv").write_text("time_s,from,to,rssi_dbm\n0,sta1,sta3,-60\n")
    message = refused(tmp_path, 'hops = 1\npropagation = { model = "trace", file = "other.csv" }\n')
    assert message.startswith('x.toml: line 2: key "propagation.file": ') and 'names "sta3"' in message
