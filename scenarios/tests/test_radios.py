"""Keys of radios that are the medium's own."""

import shutil
from pathlib import Path

import pytest

from keys.errors import UsageError
from scenarios import medium_program, profiles
from scenarios.definition import load_scenario
from scenarios.scenario import Scenario


def refusal(folder: Path, text: str, *settings: str) -> str:
    path = folder / "x.toml"
    path.write_text(f"hops = 1\n{text}\n")
    with pytest.raises(UsageError) as problem:
        load_scenario(path, settings)
    return str(problem.value).replace(f"{folder}/", "")


# The medium's own tests have every rule (medium/src/phy/radio/check.rs): of each group one is enough here.
@pytest.mark.parametrize(
    ("radio", "key", "wanted"),
    [
        ("dot11n-ht20", "radio_overrides.width_mhz = 30", "30 is none of ht; give one of 20, 40"),
        ("dot11ac-vht80", "radio_overrides.mcs = 11",
         "MCS 11 is above 9 of vht; vht has 0 to 9 in 80 MHz with one stream: give one of those, or change width_mhz or streams"),
        ("dot11g-54m", "radio_overrides.streams = 2", "is of ht, vht, he and s1g; leave it out, or take a profile of those"),
        ("dot11a-54m", "radio_overrides.data_rate_bps = 7e6", "7000000 is no OFDM rate; give 6, 9, 12, 18, 24, 36, "),
        ("dot11b-11m", "radio_overrides.control_rate_bps = 11e6", "11000000 is none of basic_rates_bps [1000000, 2000"),
        ("dot11a-54m", "aggregation = true", "dsss and ofdm have none; leave it out"),
        ("dot11n-ht20", 'rate_control = "minstrel"', '"minstrel" tries a slower rate only after no answer, but one'),
        ("ns2-dsss-2m", 'access = "edca"', "EDCA has the standard's rules, and rules.backoff_draw is ns-2's; take a profile of"),
    ],
)  # fmt: skip
def test_values_of_a_radio_that_do_not_fit_each_other_are_refused_with_line_key_and_remedy(tmp_path, radio, key, wanted):
    refused = refusal(tmp_path, f'radio = "{radio}"\n{key}')
    assert refused.startswith(f'x.toml: line 3: key "{key.split(" = ")[0]}": {wanted}')
    assert "\n" not in refused


def test_a_setting_of_the_command_line_is_refused_as_such(tmp_path):
    refused = refusal(tmp_path, 'radio = "dot11n-ht20"', "radio_overrides.width_mhz=30")
    assert refused == '--set: key "radio_overrides.width_mhz": 30 is none of ht; give one of 20, 40'


def test_a_profile_of_the_users_own_is_blamed_for_its_own_values(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    card = (profiles.RADIOS / "dot11n-ht20.toml").read_text()
    Path("card.toml").write_text(card.replace("width_mhz = 20", "width_mhz = 30"))
    assert refusal(tmp_path, 'radio = "card.toml"') == 'card.toml: key "width_mhz": 30 is none of ht; give one of 20, 40'
    shutil.copy(profiles.RADIOS / "dot11n-ht20.toml", "card.toml")
    refused = refusal(tmp_path, 'radio = "card.toml"\nradio_overrides.width_mhz = 30')
    assert refused == 'x.toml: line 3: key "radio_overrides.width_mhz": 30 is none of ht; give one of 20, 40'


def test_a_scenario_loads_where_the_medium_is_not_built(tmp_path, monkeypatch):
    monkeypatch.setattr(medium_program, "MEDIUM", tmp_path / "absent")
    medium_program.reach.cache_clear()
    path = tmp_path / "x.toml"
    path.write_text('hops = 1\nradio = "dot11n-ht20"\nradio_overrides.width_mhz = 30\n')
    assert load_scenario(path).radio_overrides == {"width_mhz": 30}


def test_a_key_of_the_medium_under_the_same_name_reaches_it_if_it_differs_from_the_default():
    assert Scenario(hops=1).of_medium() == {}
    assert Scenario(hops=1, fading_db=4.0, interference="sinr").of_medium() == {
        "interference": "sinr",
        "fading_db": 4.0,
    }


def test_the_discipline_of_the_queue_reaches_the_medium_if_it_is_not_the_default():
    assert Scenario(hops=1, queue=20).queue_keys() == {"packets": 20, "control_first": True}
    queue = Scenario(hops=1, queue_discipline="fq-codel", control_first=False).queue_keys()
    assert queue == {"discipline": "fq-codel", "packets": 50, "control_first": False}


def test_a_queue_may_have_the_name_of_its_discipline():
    named = Scenario.model_validate({"hops": 1, "queue": "fq-codel"})
    assert (named.queue_discipline, named.queue) == ("fq-codel", 50)
    assert Scenario.from_json(named.to_json()) == named
