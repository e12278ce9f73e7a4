"""The descriptions of keys (scenarios/descriptions.toml) are those of keys that exist, and no program describes them already."""

import tomllib

import pytest

from scenarios import owned
from scenarios.json_schema import DESCRIPTIONS, of_scenario
from scenarios.routing import OWN_DAEMONS

TEXTS = tomllib.loads(DESCRIPTIONS.read_text())


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "routing"])
def test_a_described_key_exists(name):
    assert set(TEXTS[name]) <= set(of_scenario()["$defs"][name]["properties"])


def test_a_described_key_of_routing_is_one_of_a_protocol():
    tables = [table["properties"] for table in of_scenario()["$defs"].values()]
    assert set(TEXTS["routing"]) <= {key for table in tables if "protocol" in table for key in table}


def test_an_option_of_our_daemons_has_the_text_of_its_declaration():
    tables = of_scenario()["$defs"]
    for name in OWN_DAEMONS:
        for key, value in owned.schema(name)["properties"].items():
            if key in (found := tables[name]["properties"]):
                assert found[key]["description"].startswith(value["description"])


def test_a_quantity_keeps_its_unit_and_range_after_the_description():
    start = of_scenario()["$defs"]["Flow"]["properties"]["start"]["description"]
    assert start.startswith("Start, from the start of the traffic. Time in s, at least 0")
