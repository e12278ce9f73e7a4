"""docs/systems.md: each system of the papers has an experiment that exists and runs it."""

import re

import pytest

from testbed.campaigns.experiment import load
from testbed.campaigns.library import find, names
from testbed.programs import ROOT

PAGE = ROOT / "docs" / "systems.md"
ROWS = re.findall(r"^\| (?!system)(.+?) \| (.+?) \| (.*?) \| .+? \|$", PAGE.read_text(), re.MULTILINE)
SYSTEMS = [
    "AODV", "AODV-UU", "DSR", "DSDV", "OLSR", "TORA", "ADV", "batman-adv", "Babel", "olsrd", "Tahoe", "Reno", "NewReno", "SACK",
    "Vegas", "TCP-AP", "ELFN", "Reno-F", "TCP-F", "ATCP", "TCP-BuS", "CUBIC", "BBR", "Westwood", "Veno",
]  # fmt: skip


@pytest.mark.parametrize(("system", "key", "experiments"), ROWS, ids=[row[0] for row in ROWS])
def test_the_experiments_of_a_system_run_it(system, key, experiments):
    named = re.findall(r"`([a-z0-9-]+)`", experiments)
    assert named or system == "olsrd"
    assert set(named) <= set(names())
    runs = "".join(cell.scenario.to_json() for name in named for cell in load(find(name)).cells)
    base = (ROOT / "experiments" / "bases" / "hv.toml").read_text()
    for value in re.findall(r'"([a-z0-9-]+)', key):
        name = value.removesuffix("-ns2").partition("-30-")[0]  # settings of a protocol
        assert f'"{name}' in runs or f'"{name}"' in base, f"{system}: none of {named} has {value}"


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_routing_protocol_and_tcp_of_the_papers_has_a_row(system):
    assert re.search(rf"^\| .*\b{system}\b", PAGE.read_text(), re.MULTILINE)
