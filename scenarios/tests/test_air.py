"""Antennas, channels, jammers and energy of a scenario: what reaches the medium, and refusals."""

import pytest

from keys.errors import UsageError
from scenarios.definition import scenario_of
from scenarios.energy import CARDS
from scenarios.keys import Keys
from scenarios.scenario import Scenario


def scenario(**keys) -> Scenario:
    return scenario_of(Keys.of_script({"hops": 2, **keys}, "a script"))


def refusal(**keys) -> str:
    with pytest.raises(UsageError) as refused:
        scenario(**keys)
    return str(refused.value)


def test_an_antenna_is_that_of_the_medium_with_its_defaults():
    (radio,) = scenario(
        radios=[{"station": "sta1", "antenna": {"pattern": "sector", "gain_dbi": 14, "beamwidth_deg": 65}}]
    ).radios
    assert radio.for_medium() == {
        "antenna": {
            "pattern": "sector", "gain_dbi": 14.0, "beamwidth_deg": 65.0, "azimuth_deg": 0.0, "front_to_back_db": 20.0,
        },
    }  # fmt: skip
    table = {"pattern": "table", "angles_deg": [0, 90], "gains_dbi": [3, -3], "azimuth_deg": 45}
    (radio,) = scenario(radios=[{"station": "sta1", "antenna": table}]).radios
    assert radio.for_medium() == {"antenna": {**table, "angles_deg": [0, 90], "gains_dbi": [3, -3]}}


@pytest.mark.parametrize(
    ("antenna", "text"),
    [
        ({"pattern": "sector", "gain_dbi": 14}, 'key "radios.0.antenna": the pattern "sector" needs "beamwidth_deg"; add it'),
        ({"pattern": "omni", "gain_dbi": 3, "azimuth_deg": 1}, 'antenna.azimuth_deg": the pattern "omni" has no "azimuth_deg"'),
        ({"pattern": "cone", "gain_dbi": 3}, '"cone" is not known; use one of "omni", "sector", "table"'),
        ({"pattern": "table", "angles_deg": [0, 90], "gains_dbi": [1]}, 'gains_dbi": 1 gains for 2 angles'),
        ({"pattern": "omni", "gain_dbi": 300}, 'antenna.gain_dbi": 300 is out of range; give at most 100'),
    ],
)
def test_an_antenna_that_is_none_is_refused(antenna, text):
    assert text in refusal(radios=[{"station": "sta1", "antenna": antenna}])


def test_an_antenna_has_one_gain_and_no_disc():
    omni = {"pattern": "omni", "gain_dbi": 3}
    assert "the antenna has a gain" in refusal(radios=[{"station": "sta1", "antenna": omni, "antenna_gain_db": 3}])
    disc = {"model": "disc", "range_m": 250, "sense_m": 550}
    assert '"disc" has ranges of its own' in refusal(radios=[{"station": "sta1", "antenna": omni}], propagation=disc)


def test_a_tap_station_may_be_on_another_channel():
    made = scenario(radios=[{"station": "sta2", "freq_mhz": 2437}], adjacent_channels=True)
    assert made.radios[0].for_medium() == {"freq_mhz": 2437}
    assert made.of_medium() == {"adjacent_channels": True}


def test_a_jammer_reaches_the_medium_in_its_units():
    jammer = {"name": "jam1", "position": [10, 20], "tx_power_w": 0.1, "kind": "periodic", "on": "2 ms", "off": 0.01}
    (made,) = scenario(jammers=[jammer]).jammers
    assert made.for_medium() == {
        "name": "jam1", "position": [10.0, 20.0, 0.0], "tx_power_w": 0.1, "kind": "periodic", "freq_mhz": 2412, "active": True,
        "start_s": 0.0, "on_s": 0.002, "off_s": 0.01, "delay_us": 15.0,
    }  # fmt: skip
    follower = {"name": "jam1", "follows": "sta2", "tx_power_w": 0.1, "kind": "reactive", "on": 0.001, "delay": "40 us"}
    (made,) = scenario(jammers=[follower]).jammers
    assert (made.for_medium()["follows"], made.for_medium()["delay_us"]) == ("sta2", 40.0)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"position": None}, "needs either a position or follows"),
        ({"follows": "sta2"}, "needs either a position or follows"),
        ({"position": None, "follows": "sta9"}, 'jammers.0.follows": there is no station "sta9"'),
        ({"kind": "periodic", "on": 1}, 'jammers.0.off": a periodic jammer needs it; add it'),
        ({"off": 1}, 'jammers.0.off": a constant jammer has none; leave it out'),
        ({"kind": "reactive", "on": 1e-9}, 'jammers.0.on": 1e-09 is out of range; give at least 1e-05 s'),
        ({"start": 2, "stop": 1}, "is not after start"),
        ({"name": "sta1"}, '"sta1" is the name of another station or jammer'),
        ({"name": "Jam 1"}, '"Jam 1" is no name'),
    ],
)
def test_a_jammer_that_is_none_is_refused(change, text):
    jammer = {"name": "jam1", "position": [10, 20], "tx_power_w": 0.1} | change
    assert text in refusal(jammers=[{key: value for key, value in jammer.items() if value is not None}])


def test_a_power_event_switches_a_jammer():
    jammer = {"name": "jam1", "position": [10, 20], "tx_power_w": 0.1, "active": False}
    assert scenario(jammers=[jammer], events=[{"at": 1, "power": "jam1", "on": True}]).events[0].power == "jam1"
    assert 'there is no station "jam2"' in refusal(jammers=[jammer], events=[{"at": 1, "power": "jam2", "on": True}])
    assert 'there is no station "jam1"' in refusal(jammers=[jammer], events=[{"at": 1, "move": "jam1", "to": [0, 0]}])


def test_energy_is_a_card_or_a_table_of_powers():
    # 4.74 V times 280, 204 and 178 mA
    assert scenario(energy="wavelan-2m").energy.model_dump() == {
        "transmit_w": 1.327, "receive_w": 0.967, "idle_w": 0.844, "sense_w": None,
    }  # fmt: skip
    table = {"transmit_w": 2, "receive_w": 1, "sense_w": 0.9, "idle_w": 0.8}
    made = scenario(energy=table)
    assert made.energy.model_dump() == table
    assert Scenario.from_json(made.to_json()) == made
    assert scenario().energy is None


def test_an_energy_that_is_none_is_refused():
    assert 'no card with known powers; did you mean "wavelan-11m"?' in refusal(energy="wavelan-1m")
    assert all(card in refusal(energy="x") for card in CARDS)
    assert 'energy.idle_w": is missing' in refusal(energy={"transmit_w": 1, "receive_w": 1})
    assert "is out of range; give at most 1000" in refusal(energy={"transmit_w": 1e4, "receive_w": 1, "idle_w": 1})
