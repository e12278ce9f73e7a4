"""Keys of a request from elsewhere name no file, program or network of this machine (scenarios/confined.py)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keys.errors import UsageError
from scenarios import toml_file
from scenarios.definition import scenario_of
from scenarios.document import Document
from scenarios.keys import Keys

CHAIN = {"topology": "chain", "hops": 2}
FLOW = {"from": "sta1", "to": "sta3"}
DESCRIPTION = {"daemon": {"command": ["sh", "-c", "id"]}}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "movement file": ({"mobility": "/etc/passwd"}, 'key "mobility": names a file'),
    "movement table": ({"mobility": {"file": "walk.csv", "factor": 2}}, 'key "mobility": names a file'),
    "pattern": ({"mobility": "/etc/*.csv"}, 'key "mobility": names a file'),
    "description": ({"routing": "/etc/daemon.toml"}, 'key "routing": is no protocol of the testbed'),
    "name in a search folder": ({"routing": {"protocol": "mine"}}, 'key "routing": is no protocol of the testbed'),
    "description in the keys": (
        {"routing": {"protocol": "mine", "description": DESCRIPTION}}, 'key "routing.description": names programs',
    ),
    "command": (
        {"flows": [{**FLOW, "traffic": "command", "command": ["sh", "-c", "id"]}]}, 'key "flows.0.command": names a program',
    ),
    "server": (
        {"flows": [FLOW, {**FLOW, "traffic": "command", "server": ["nc"], "command": ["nc"], "ready_after": 1}]},
        'key "flows.1.command": names a program',
    ),
    "sizes": ({"flows": [{**FLOW, "traffic": "vbr", "interval": 1, "sizes": "/etc/x"}]}, 'key "flows.0.sizes": names a file'),
    "distributions": (
        {"flows": [{**FLOW, "traffic": "web", "distributions": "/etc/x.toml"}]}, 'key "flows.0.distributions": names a file',
    ),
    "event": (
        {"events": [{"at": 1, "station": "sta1", "command": ["id"], "name": "x"}]}, 'key "events.0.command": names a program',
    ),
    "root file system": ({"stations": [{"name": "sta1", "rootfs": "/srv"}]}, 'key "stations": names a root file system'),
    "image": ({"stations": [{"name": "sta1", "image": "debian"}]}, 'key "stations": names a root file system'),
    "nat": (
        {"wires": [{"station": "sta3", "host": "gw", "nat": True}]}, 'key "wires.0.nat": reaches the networks of this machine',
    ),
}  # fmt: skip


def keys_of(given: dict[str, Any], foreign: frozenset[str]) -> Keys:
    tables = {**CHAIN, **given}
    return Keys(tables, Document(Path("x.toml"), "request", tables, foreign=foreign))


@pytest.mark.parametrize("name", REFUSED)
def test_files_programs_and_networks_are_refused(name: str) -> None:
    given, words = REFUSED[name]
    with pytest.raises(UsageError) as refused:
        scenario_of(keys_of(given, frozenset({*CHAIN, *given})))
    assert words in str(refused.value)
    assert "a request may" in str(refused.value)


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_s_own_keys_are_not_limited(name: str) -> None:
    """They are accepted, or refused for another reason, such as a missing file."""
    given, _ = REFUSED[name]
    try:
        scenario_of(keys_of(given, frozenset(CHAIN)))
    except UsageError as problem:
        assert "a request may" not in str(problem)


def test_the_file_of_a_topology_is_refused() -> None:
    tables = {"topology": {"file": "/etc/passwd"}}
    document = Document(Path("x.toml"), "request", tables, foreign=frozenset(tables))
    with pytest.raises(UsageError, match='key "topology": names a file, which a request may not do'):
        scenario_of(Keys(tables, document))
    with pytest.raises(UsageError, match=r"is no valid JSON"):
        scenario_of(Keys(tables, replace(document, foreign=frozenset({"duration"}))))


def test_an_ordinary_request_passes() -> None:
    given = {"mobility": "static", "routing": {"protocol": "aodv", "link": "hello"}, "flows": [{**FLOW, "traffic": "web"}]}
    assert scenario_of(keys_of(given, frozenset({*CHAIN, *given}))).routing.protocol == "aodv"


def test_a_setting_is_limited_and_the_file_below_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('hops = 2\nmobility = "walk.csv"\n')
    (tmp_path / "walk.csv").write_text("t,station,x,y,z,speed\n0,sta1,0,0,0,inf\n")
    document = toml_file.read(path)
    of_hops = Keys.of_file(replace(document, foreign=frozenset({"hops"}))).set(["hops=3"])
    try:
        scenario_of(of_hops)
    except UsageError as problem:
        assert "a request may" not in str(problem)
    of_mobility = Keys.of_file(replace(document, foreign=frozenset({"mobility"}))).set(["mobility.factor=2"])
    with pytest.raises(UsageError, match="a request may not do"):
        scenario_of(of_mobility)
