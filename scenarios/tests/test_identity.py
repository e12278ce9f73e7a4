"""The identity of a scenario: the same wherever and whenever its outcome is, and different for another scenario."""

import json
import os
import shutil
from pathlib import Path

import pytest

from keys.errors import UsageError
from scenarios import json_schema
from scenarios.identity import identity
from scenarios.scenario import Scenario

PATTERNS = Path(__file__).parents[2] / "mobility" / "patterns"
DEFAULTS = Path(__file__).with_name("defaults.json")


def replaying(folder: Path, name: str = "p0*.tcl") -> Scenario:
    return Scenario(
        topology="random", nodes=30, area=[1500, 300], mobility={"model": "file", "file": str(folder / name), "speed": 20}
    )


def test_it_is_the_same_when_its_files_are_elsewhere(tmp_path):
    shutil.copytree(PATTERNS, tmp_path / "elsewhere")
    assert identity(replaying(tmp_path / "elsewhere")) == identity(replaying(PATTERNS))


def test_it_is_another_one_with_other_files(tmp_path):
    shutil.copytree(PATTERNS, tmp_path, dirs_exist_ok=True)
    with (tmp_path / "p03.tcl").open("a") as file:
        file.write("# another movement\n")
    assert identity(replaying(tmp_path)) != identity(replaying(PATTERNS))
    assert identity(replaying(PATTERNS, "p01.tcl")) != identity(replaying(PATTERNS, "p02.tcl"))


def test_the_files_of_flows_count_by_their_content(tmp_path):
    def streaming(name: str, sizes: str) -> Scenario:
        (tmp_path / name).write_text(sizes)
        flow = {"from": "sta1", "to": "sta2", "traffic": "vbr", "sizes": str(tmp_path / name), "interval": 0.2}
        return Scenario(hops=1, flows=[flow])

    one = identity(streaming("a", "1000\n900\n"))
    assert one == identity(streaming("b", "1000\n900\n"))
    assert one != identity(streaming("c", "1000\n901\n"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"walk\.tcl: No such file"):
        identity(replaying(tmp_path, "walk.tcl"))


def test_each_key_that_changes_a_run_changes_it_and_the_number_of_seeds_does_not():
    base = identity(Scenario(hops=3))
    assert base == identity(Scenario(hops=3, queue=50, traffic="bulk")) == identity(Scenario(hops=3, seeds=7))
    others = [Scenario(hops=4), Scenario(hops=3, tcp="vegas"), Scenario(hops=3, routing="aodv"), Scenario(hops=3, rto_min=1.0)]
    assert len({base, *map(identity, others)}) == 5


def test_no_default_changes_unnoticed():
    """UPDATE=1 rewrites the list. A default that is new needs no more, if what it stands for was so before."""
    keys, definitions = json_schema.scenario_keys()
    tables = {"scenario": keys, **definitions}
    found = {
        f"{name}.{key}": value["default"]
        for name, table in sorted(tables.items())
        for key, value in sorted(table.get("properties", {}).items())
        if "default" in value
    }
    if "UPDATE" in os.environ:
        DEFAULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    known = json.loads(DEFAULTS.read_text())
    changed = sorted(key for key in known if found.get(key) != known[key])
    new = sorted(found.keys() - known.keys())
    assert not changed, f"defaults changed: {changed}; raise GENERATION (scenarios/identity.py), then UPDATE=1"
    assert not new, f"new defaults: {new}; if they change no outcome: UPDATE=1, else raise GENERATION first"
