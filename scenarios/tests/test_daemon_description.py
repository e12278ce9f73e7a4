"""Descriptions of daemons: how a scenario finds them, and the error of each wrong one, in one line."""

import warnings
from pathlib import Path

import pytest

from keys.errors import UsageError
from scenarios.daemon_description import RESERVED_OPTIONS, Description
from scenarios.daemon_file import SEARCH_PATH, own_descriptions
from scenarios.definition import load_scenario, scenario_of
from scenarios.keys import Keys
from scenarios.placeholders import filled, problem_of
from scenarios.routing import SHIPPED, Described
from scenarios.scenario import Scenario

GOOD = 'about = "x"\ncommand = ["x"]\n'
OPTION = GOOD + '[options.p]\ndefault = 1.5\nunit = "s"\nmax = 9\n[options.name]\ndefault = "x"\n'


def message(folder: Path, description: str, routing: str = '"./d.toml"') -> str:
    (folder / "d.toml").write_text(description)
    (folder / "s.toml").write_text(f"hops = 2\nrouting = {routing}\n")
    with pytest.raises(UsageError) as problem:
        load_scenario(folder / "s.toml")
    text = str(problem.value)
    assert "\n" not in text and text.isprintable()
    return text


def loaded(folder: Path, routing: str, *settings: str) -> Scenario:
    (folder / "s.toml").write_text(f"hops = 2\nrouting = {routing}\n")
    return load_scenario(folder / "s.toml", settings)


WRONG = {
    "nothing": ("", 1, "about", "is missing; add it"),
    "no command": ('about = "x"', 1, "command", "is missing; add it"),
    "a command in one text": ('about = "x"\ncommand = "x -y"', 2, "command", '"x -y" is of the wrong type; give a list'),
    "a number as word": ('about = "x"\ncommand = ["x", 3]', 2, "command.1", "3 is of the wrong type; give text in quotes"),
    "no program": ('about = "x"\ncommand = ["{station}"]', 2, "command.0", "is no program; begin with the program's name"),
    "a NUL": ('about = "x"\ncommand = ["x", "a\\u0000b"]', 2, "command.1", "has a NUL character, which no command"),
    "an escape for the terminal": ('about = "\\u001b[31m"\ncommand = ["x"]', 1, "about", "has a line break or control character"),
    "a misspelt key": (f'{GOOD}comand = ["y"]', 3, "comand", 'unknown key; did you mean "command"?'),
    "a misspelt placeholder": (
        'about = "x"\ncommand = ["x", "{adress}"]',
        2,
        "command.1",
        'there is no placeholder {adress}; did you mean "address"? (the text itself is written {{adress}})',
    ),
    "a wire outside of a group": ('about = "x"\ncommand = ["x", "{wire}"]', 2, "command.1", "wires and IPv6 stand in a list"),
    "a group without a wire": ('about = "x"\ncommand = ["x", ["-a"]]', 2, "command.1", "is a list of its own without {wire} or"),
    "a path without files": ('about = "x"\ncommand = ["x", "{config}"]', 2, "command.1", "the description has none; add a table"),
    "another file's path": (
        'about = "x"\ncommand = ["x", "{config:a}"]\n[[files]]\nname = "aa"\ncontent = ""',
        2,
        "command.1",
        'there is no file "a"; did you mean "aa"?',
    ),
    "a file outside of the folder": (
        f'{GOOD}[[files]]\nname = "../../etc/passwd"\ncontent = ""',
        4,
        "files.0.name",
        "'../../etc/passwd' is not allowed here; use a file's name of letters",
    ),
    "a file twice": (
        f'{GOOD}[[files]]\nname = "a"\ncontent = ""\n[[files]]\nname = "a"\ncontent = ""',
        7,
        "files.1.name",
        '"a" stands twice; give each file a name of its own',
    ),
    "an option of the testbed's": (f"{GOOD}[options.settle]\ndefault = 1", 3, "options.settle", "is a name of the testbed's own"),
    "an option named as a method": (f"{GOOD}[options.json]\ndefault = 1", 3, "options.json", "is a name of the testbed's own"),
    "an option named as a placeholder": (f"{GOOD}[options.wire]\ndefault = 1", 3, "options.wire", "is a name of the testbed's"),
    "an option with a blank": (f'{GOOD}[options."a b"]\ndefault = 1', 3, "options.a b", "'a b' is not allowed here; use a-z"),
    "an option without a default": (f"{GOOD}[options.a]", 3, "options.a.default", "is missing; add it"),
    "a default that is a list": (f"{GOOD}[options.a]\ndefault = [1]", 4, "options.a.default", "give a number, true, false or"),
    "a default outside its limits": (f"{GOOD}[options.a]\ndefault = 1\nmin = 2", 4, "options.a.default", "give at least 2"),
    "limits of a text": (f'{GOOD}[options.a]\ndefault = "x"\nmin = 2', 4, "options.a.default", "are for numbers; remove them"),
    "a format of a text": (
        f'{OPTION}[[files]]\nname = "f"\ncontent = "{{name:.2f}}"',
        11,
        "files.0.content",
        "name takes no format, only options that are numbers do; write {name}",
    ),
    "no format": (f'{OPTION}[[files]]\nname = "f"\ncontent = "{{p:%s}}"', 11, "files.0.content", '"%s" of {p:%s} is no format'),
    "a sysctl of the machine": (
        f'{GOOD}[radio.sysctls]\n"kernel.core_pattern" = "|/x"',
        4,
        "radio.sysctls.kernel.core_pattern",
        "'kernel.core_pattern' is not allowed here; use net. and dotted names",
    ),
    "a sysctl outside of net": (f'{GOOD}[radio.sysctls]\n"net../../x" = 1', 4, "radio.sysctls.net../../x", "use net. and dotted"),
    "two commands of ip": (f'{GOOD}[radio]\nroutes = ["default\\nlink delete lo"]', 4, "radio.routes.0", "has a line break"),
    "a network without one": (f'{GOOD}[radio]\naddress = "host"\nprefix_route = true', 4, "radio.address", '"host" has neither'),
    "the root as a private folder": (f'{GOOD}private_folders = ["/"]', 3, "private_folders.0", "'/' is no folder; write an"),
    "a folder by a detour": (f'{GOOD}private_folders = ["/run/../etc"]', 3, "private_folders.0", "is no folder"),
    "no module": (f'{GOOD}[module]\nname = "../x"', 4, "module.name", "'../x' is not allowed here; use the module's name"),
    "two signs": (f"{GOOD}ready = {{ udp = 1, tcp = 2 }}", 3, "ready", "names none or several signs; give one of udp, tcp, file"),
    "no port": (f"{GOOD}udp_port = 70000", 3, "udp_port", "70000 is out of range; give at most 65535"),
    "no signal": (f'{GOOD}stop = "TERM"', 3, "stop", 'did you mean "SIGTERM"?'),
    "helpers of one name": (
        f'{GOOD}[[helpers]]\nname = "a"\ncommand = ["x"]\n[[helpers]]\nname = "a"\ncommand = ["x"]',
        3,
        "helpers",
        "two have the same name; give each its own",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_description_is_one_line_with_file_line_key_and_remedy(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    description, line, key, words = WRONG[case]
    text = message(tmp_path, description)
    assert text.startswith(f'd.toml: line {line}: key "{key}": ') and words in text


REFUSED = {
    '"./no.toml"': 'key "routing": there is no file "{}/no.toml"; give the path of a daemon\'s description (TOML), relative to',
    '"no/such"': 'key "routing": there is no file "{}/no/such"',
    '"dd"': 'key "routing": "dd" is not known; use one of "static"',
    '"x.toml\\u0000"': 'key "routing": has a NUL character, which no command or file may have; remove it',
    '"/dev/zero"': 'key "routing": there is no file "/dev/zero"',
    '"./babeld.toml"': 'key "routing": "babeld" is no name for a daemon; rename the file: at most 32 letters',
    '{ protocol = "./d.toml", q = 1 }': 'key "routing.q": unknown key; the keys here are protocol, p, name',
    '{ protocol = "./d.toml", settle = 1 }': 'key "routing.settle": unknown key',
    '{ protocol = "./d.toml", p = 10 }': 'key "routing.p": 10 is out of range; give at most 9',
    '{ protocol = "./d.toml", name = "a\\nb" }': 'key "routing.name": has a line break or control character',
    '{ protocol = "q", description = 3 }': 'key "routing.description": 3 is of the wrong type; give a table',
    '{ protocol = "q", description = { about = "x" } }': 'key "routing.description.command": is missing; add it',
    '{ protocol = "babeld", description = { about = "x", command = ["x"] } }': "key \"routing.protocol\": 'babeld' is no name",
    '{ protocol = "../q", description = { about = "x", command = ["x"] } }': "key \"routing.protocol\": '../q' is no name",
}


@pytest.mark.parametrize("routing", REFUSED)
def test_a_wrong_use_is_one_line_that_names_the_scenarios_key(tmp_path, routing):
    (tmp_path / "babeld.toml").write_text(GOOD)
    text = message(tmp_path, OPTION, routing)
    assert text.startswith(f"{tmp_path}/s.toml: line 2: {REFUSED[routing].replace('{}', str(tmp_path))}")


def test_a_script_is_referred_to_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        scenario_of(Keys.of_script({"hops": 1, "routing": "./d.toml"}, "Mesh.chain"))
    assert str(refused.value).endswith(f"description (TOML), relative to the current folder, {tmp_path}")


def test_a_name_is_looked_up_beside_the_scenario_then_in_the_search_path(tmp_path, monkeypatch):
    folders = [tmp_path / name for name in ("a", "b", "beside")]
    for folder in folders:
        folder.mkdir()
        (folder / "mine.toml").write_text(f'about = "{folder.name}"\ncommand = ["x"]')
    monkeypatch.setenv(SEARCH_PATH, f"/absent:{folders[0]}:{folders[1]}")

    def found(folder: Path) -> str:
        description = loaded(folder, '"mine"').routing.DESCRIPTION
        assert description is not None
        return description.about

    assert (found(tmp_path), found(folders[2])) == ("a", "beside")


def test_a_path_after_set_is_relative_to_the_current_folder(tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    (here / "mine.toml").write_text(OPTION)
    monkeypatch.chdir(here)
    routing = loaded(tmp_path, '"static"', "routing=./mine.toml", "routing.p=3").routing
    assert (routing.protocol, routing.options()) == ("mine", {"p": 3.0, "name": "x"})


def test_equal_descriptions_make_equal_scenarios_and_a_change_another(tmp_path):
    (tmp_path / "mine.toml").write_text(OPTION)
    first, second = loaded(tmp_path, '"mine"'), loaded(tmp_path, '{ protocol = "./mine.toml", p = 1.5 }')
    assert first == second and first == Scenario.from_json(first.to_json())
    (tmp_path / "mine.toml").write_text(OPTION.replace("[options.name]", "[options.nick]"))
    assert loaded(tmp_path, '"mine"') != first


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("mtu=1000",), 'routing "mine" does not work with 1000 bytes: IPv6 needs an MTU of 1280'),
        (
            ('wires=[{station="sta3", host="h"}]', 'flows=[{from="sta1", to="h"}]'),
            '"mine" routes over the air to stations only, not to h',
        ),
        (("tcp=tcpap",), 'paces by the length of the path, which routing = "mine" does not tell'),
    ],
)
def test_rules_across_keys_are_those_of_the_description(tmp_path, settings, words):
    (tmp_path / "mine.toml").write_text(f"{GOOD}gateways = false\n[radio]\nlink_local = true")
    with pytest.raises(UsageError, match=words):
        loaded(tmp_path, '"mine"', *settings)


def test_the_search_path_lists_descriptions_alone_with_the_errors_of_wrong_ones(tmp_path, monkeypatch):
    monkeypatch.setenv(SEARCH_PATH, str(tmp_path))
    (tmp_path / "scenario.toml").write_text("hops = 2")
    (tmp_path / "babeld.toml").write_text(GOOD)  # not usable under this name
    (tmp_path / "mine.toml").write_text(GOOD)
    (tmp_path / "wrong.toml").write_text(f"{GOOD}port = 3")
    found = own_descriptions()
    assert sorted(found) == ["mine", "wrong"]
    assert isinstance(found["wrong"], UsageError) and 'wrong.toml: line 3: key "port": unknown key' in str(found["wrong"])


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("a {p} b", "a 1.5 b"),
        ("{p:.2f} {p:ms} {p:us}", "1.50 1500 1500000"),
        ("{{p}} { p } {} {\n}", "{p} { p } {} {\n}"),
        ("{{p}", "{1.5"),
        ("x{p}}}", "x1.5}}"),
        ("{whole} {yes}", "4 true"),
        ("{injected}", "{p}"),  # a value is not filled in again
    ],
)
def test_only_a_name_in_braces_is_a_placeholder(template, text):
    assert filled(template, {"p": 1.5, "whole": 4, "yes": True, "injected": "{p}"}) == text


def test_no_option_takes_the_name_of_a_part_of_its_class():
    public = {name for name in dir(Described) if name.islower() and not name.startswith("_")}
    assert public <= RESERVED_OPTIONS


def test_each_description_of_the_project_names_its_source_and_how_to_get_it():
    assert {"babeld", "batmand", "olsrd", "olsrd2", "aodv-uu", "bird-babel", "frr-babel"} == set(SHIPPED)
    for model in SHIPPED.values():
        assert model.DESCRIPTION is not None
        assert model.DESCRIPTION.homepage and (model.DESCRIPTION.package or model.DESCRIPTION.remedy)
    assert problem_of("{hello}", ["hello"]) is None


@pytest.mark.parametrize("name", sorted(name for name, routing in SHIPPED.items() if routing.DESCRIPTION))
def test_a_shipped_description_is_written_without_warnings_and_read_back(name):
    """As description.json of a run; a command's group of words is a list there."""
    description = SHIPPED[name].DESCRIPTION
    assert description is not None
    with warnings.catch_warnings(action="error"):
        text = description.model_dump_json(exclude_unset=True)
    assert Description.model_validate_json(text) == description
