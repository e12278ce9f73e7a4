"""The key `stations` as a list: stations with a root file system of their own."""

import json
from pathlib import Path

import jsonschema
import pytest

from keys.errors import UsageError
from scenarios.definition import load_scenario
from scenarios.json_schema import of_scenario
from scenarios.scenario import Scenario

WHOLE = """hops = 1
[[stations]]
name = "sta2"
rootfs = "root"
command = ["nginx", "-g", "daemon off;"]
memory = "64 MiB"
cpu = 1
pids = 20
sandbox = true
"""


def load(folder: Path, text: str, *settings: str) -> Scenario:
    (folder / "root").mkdir(exist_ok=True)
    (folder / "x.toml").write_text(text)
    return load_scenario(folder / "x.toml", settings)


def test_a_container_is_read_with_the_full_path_of_its_files(tmp_path):
    scenario = load(tmp_path, WHOLE)
    (container,) = scenario.containers
    assert container.rootfs == str(tmp_path / "root")
    assert container.limits == {"memory": 64 * 1024 * 1024, "cpu": 1.0, "pids": 20}
    assert (scenario.radio_devices, container.sandbox) == ("tap", True)
    assert Scenario.from_json(scenario.to_json()) == scenario


def test_an_image_is_a_file_or_a_name(tmp_path):
    (tmp_path / "web.tar").touch()
    text = 'hops = 1\n[[stations]]\nname = "sta1"\nimage = "IMAGE"\n'
    assert load(tmp_path, text.replace("IMAGE", "web.tar")).containers[0].image == str(tmp_path / "web.tar")
    assert load(tmp_path, text.replace("IMAGE", "localhost/web:1")).containers[0].image == "localhost/web:1"


def test_a_scenario_without_containers_keeps_its_json(tmp_path):
    assert json.loads(load(tmp_path, "hops = 1").to_json())["stations"] == "tap"


def test_set_reaches_into_the_list(tmp_path):
    assert load(tmp_path, WHOLE, "stations.0.memory=32 MiB").containers[0].memory == 32 << 20


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"sta2"', '"sta9"', 'line 3: key "stations.0.name": there is no station "sta9"'),
        ('"root"', '"nowhere"', 'line 4: key "stations.0.rootfs": there is no folder'),
        ('"root"', '"/"', 'line 4: key "stations.0.rootfs": is this machine\'s own root file system'),
        ('rootfs = "root"', "", 'line 2: key "stations.0": "sta2" needs a root file system'),
        ('rootfs = "root"', 'rootfs = "root"\nimage = "x"', 'line 5: key "stations.0.image": contradicts "rootfs"'),
        ("pids = 20", "pids = 0", 'line 8: key "stations.0.pids": 0 is out of range; give at least 1'),
        ("cpu = 1", 'cpu = "1 s"', 'line 7: key "stations.0.cpu": "1 s" is of the wrong type; give a number'),
        ('"64 MiB"', '"64 s"', 'line 6: key "stations.0.memory": "64 s" has the unit "s", but a size is expected'),
        ('["nginx", "-g", "daemon off;"]', "[]", 'line 5: key "stations.0.command": its first word must be'),
        ("sandbox = true", "sandbx = true", 'line 9: key "stations.0.sandbx": unknown key; did you mean "sandbox"?'),
        ("hops = 1", 'hops = 1\nclock = "virtual"', 'key "stations": the guests of clock = "virtual" have no containers'),
    ],
)
def test_a_wrong_container_is_refused_in_one_line(tmp_path, old, new, problem):
    with pytest.raises(UsageError) as refused:
        load(tmp_path, WHOLE.replace(old, new, 1))
    assert problem in str(refused.value) and "\n" not in str(refused.value)


def test_a_station_is_named_once(tmp_path):
    with pytest.raises(UsageError, match=r'line 11: key "stations.1.name": "sta2" is in the list twice'):
        load(tmp_path, WHOLE + '[[stations]]\nname = "sta2"\nrootfs = "root"\n')


@pytest.mark.parametrize(
    ("value", "problem"),
    [('"tpa"', '"tpa" is not known; use one of "tap", "hwsim"'), ("5", "5 is of the wrong type; give text in quotes or a list")],
)
def test_a_wrong_kind_of_radio_is_refused_as_before(tmp_path, value, problem):
    with pytest.raises(UsageError, match=problem):
        load(tmp_path, f"hops = 1\nstations = {value}")


def test_the_json_schema_has_names_of_radios_and_the_list(tmp_path):
    schema = of_scenario()
    valid = [{"hops": 1, "stations": "hwsim"}, {"hops": 1, "stations": [{"name": "sta1", "image": "web", "memory": "1 GiB"}]}]
    for document in valid:
        jsonschema.validate(document, schema)
    for document in ({"stations": "none"}, {"stations": [{"rootfs": "x"}]}, {"stations": [{"name": "sta1", "user": "x"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, schema)
