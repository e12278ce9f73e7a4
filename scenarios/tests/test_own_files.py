"""Parts of the user's own outside the checkout: radio profiles and traffic kinds, by the path of a file."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from keys.errors import UsageError
from scenarios import profiles
from scenarios.definition import load_scenario
from scenarios.document import Document
from scenarios.identity import identity, input_files
from scenarios.keys import Keys
from scenarios.scenario import Scenario
from scenarios.traffic_file import with_commands

BURST = """about = "Bursts of datagrams"
command = ["./burst.py", "{target}", "{port}", "{count}", "{pause:ms}", "{quiet}", "{{x}}", "{here}/data"]
server = ["nc", "-l", "{port}"]
ready_port = 0

[keys.count]
default = 10
min = 1
max = 100

[keys.pause]
default = 0.5
unit = "s"

[keys.quiet]
default = false
written = { true = "-q", false = "-v" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a profile, a kind, and a scenario that names both."""
    shutil.copy(profiles.RADIOS / "dot11b-11m.toml", tmp_path / "card.toml")
    (tmp_path / "burst.toml").write_text(BURST)
    return tmp_path


def load(folder: Path, text: str, *settings: str) -> Scenario:
    path = folder / "x.toml"
    path.write_text(f"hops = 1\n{text}\n")
    return load_scenario(path, settings)


def flow(keys: str) -> str:
    return f'flows = [{{ from = "sta1", to = "sta2", traffic = "./burst.toml", {keys} }}]'


def test_a_profile_is_found_beside_the_file_and_after_set_from_the_current_folder(folder, monkeypatch):
    card = str(folder / "card.toml")
    assert load(folder, 'radio = "./card.toml"').radio == load(folder, 'radio = "card.toml"').radio == card
    assert load(folder, "", "radio=card.toml").radio == card
    other = folder / "other"
    other.mkdir()
    shutil.copy(folder / "card.toml", other)
    monkeypatch.chdir(other)
    assert load(folder, "", "radio=card.toml").radio == str(other / "card.toml")
    assert load(folder, 'radio = "card.toml"').radio == card


def test_an_own_profile_counts_by_its_content_wherever_it_lies(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.copy(folder / "card.toml", elsewhere / "same.toml")
    here, there = load(folder, 'radio = "card.toml"'), load(elsewhere, 'radio = "same.toml"')
    assert identity(here) == identity(there)
    assert input_files(here) == [folder / "card.toml"]
    card = (folder / "card.toml").read_text()
    (folder / "card.toml").write_text(card.replace("short_retry_limit = 7", "short_retry_limit = 6"))
    assert identity(here) != identity(there)
    assert Scenario.from_json(here.to_json()) == here


def test_a_flow_of_an_own_kind_becomes_the_command_that_it_means(folder):
    (found,) = load(folder, flow('count = 5, pause = "250 ms", quiet = true, start = 2')).flows
    path = str(folder)
    assert found.command == (f"{path}/burst.py", "{target}", "{port}", "5", "250", "-q", "{{x}}", f"{path}/data")
    assert found.server == ("nc", "-l", "{port}")
    assert (found.traffic, found.ready_port, found.start) == ("command", 0, 2)
    (default,) = load(folder, flow("stop = 9")).flows
    assert default.command is not None and default.command[3:6] == ("10", "500", "-v")


def test_set_reaches_the_keys_of_an_own_kind(folder):
    (found,) = load(folder, flow("count = 5"), "flows.0.count=7").flows
    assert found.command is not None and found.command[3] == "7"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            'radio = "./no.toml"',
            'key "radio": there is no file "{}/no.toml"; give the path of a radio profile (TOML), relative to',
        ),
        (flow("cuont = 5"), 'key "flows.0.cuont": "./burst.toml" describes no such key; did you mean "count"?'),
        (flow("count = 0"), 'key "flows.0.count": 0 is out of range; give at least 1'),
        (flow('pause = "2 m"'), 'key "flows.0.pause": '),
        (flow("quiet = 1"), 'key "flows.0.quiet": 1 is of the wrong type; give true or false'),
        ('traffic = "./burst.toml"', 'key "traffic": a kind of your own is given for each flow; write flows = '),
        (
            'flows = [{ from = "sta1", to = "sta2", traffic = "gone.toml" }]',
            'key "flows.0.traffic": there is no file "{}/gone.toml"; give the path of a traffic kind\'s description (TOML)',
        ),
    ],
)
def test_a_wrong_use_is_one_line_that_names_the_key_and_the_remedy(folder, text, wanted):
    with pytest.raises(UsageError) as problem:
        load(folder, text)
    assert str(problem.value).startswith(f"{folder}/x.toml: line 2: ")
    assert wanted.format(folder) in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (
            ('"{port}", "{count}"', '"{port}", "{coutn}"'),
            'line 2: key "command.3": has the unknown field {coutn}; did you mean "count"?',
        ),
        (("{pause:ms}", "{pause:x}"), 'line 2: key "command.4": "x" of {pause} is no format; use .2f'),
        (("{target}", "{target"), 'line 2: key "command.1": '),
        (("[keys.quiet]", "[keys.port]"), 'line 15: key "keys.port": is the name of a key or field that every such flow has'),
        (
            ("ready_port = 0", "ready_port = 0\nready_after = 1"),
            'key "ready_after": contradicts "ready_port"; remove one of them',
        ),
        (("ready_port", "ready_prot"), 'line 4: key "ready_prot": unknown key; did you mean "ready_port"?'),
        (("default = 10", "default = 0"), 'key "keys.count.default": 0 is out of range; give at least 1'),
    ],
)
def test_a_wrong_description_names_its_own_file_and_line(folder, change, wanted):
    (folder / "burst.toml").write_text(BURST.replace(*change))
    with pytest.raises(UsageError) as problem:
        load(folder, flow("start = 0"))
    assert "burst.toml: line " in str(problem.value)
    assert wanted in str(problem.value)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("slot_us", "slot_ms"), 'card.toml: key "slot_ms": unknown key; did you mean "slot_us"?'),
        (("sifs_us", "# sifs_us"), 'card.toml: key "sifs_us": is missing; add it, or copy a profile of medium/radios'),
        (("slot_us =", "slot_us"), "card.toml: line "),
    ],
)
def test_a_wrong_profile_is_refused_before_anything_starts(folder, change, wanted):
    (folder / "card.toml").write_text((folder / "card.toml").read_text().replace(*change))
    with pytest.raises(UsageError) as problem:
        load(folder, 'radio = "card.toml"')
    assert wanted in str(problem.value)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"hops": 1, "radio": "/etc/passwd"}, 'key "radio": names a file, which a request may not do'),
        ({"hops": 1, "radio": "x.toml"}, 'key "radio": names a file, which a request may not do'),
        (
            {"hops": 1, "flows": [{"from": "sta1", "to": "sta2", "traffic": "/root/burst.toml"}]},
            'key "flows.0.traffic": names a file, which a request may not do',
        ),
    ],
)
def test_a_request_names_no_file(values: dict[str, Any], wanted: str):
    from scenarios.definition import scenario_of

    keys = Keys(values, Document(Path(), "request", values, foreign=frozenset(values)))
    with pytest.raises(UsageError) as problem:
        scenario_of(keys)
    assert wanted in str(problem.value)


def test_keys_without_own_kinds_are_returned_as_they_are():
    keys = Keys.of_script({"hops": 1, "flows": [{"from": "sta1", "to": "sta2"}]}, "script")
    assert with_commands(keys) is keys
