"""Scenarios and experiments in Python: the checks, and the texts of the refusals, are those of the command line."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keys.errors import UsageError
from manet_testbed import Experiment, MeshError, Scenario, WrongRequest, WrongScenario
from manet_testbed.lab.refusals import worded
from testbed.campaigns import experiment as definitions
from testbed.campaigns.request import Request
from testbed.programs import ROOT

CHAIN = {"topology": "chain", "hops": 2, "duration": 3}


def refused(define: Callable[[], object]) -> str:
    with pytest.raises(WrongScenario) as refusal:
        define()
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def by_file(tmp_path: Path, text: str, *settings: str) -> str:
    """The refusal of `manet run` for a file, without the name of the file and the line."""
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as refusal:
        definitions.load(path, Request(overrides=settings))
    return str(refusal.value).partition(": line ")[2].partition(": ")[2] or str(refusal.value)


@pytest.mark.parametrize(
    ("keys", "toml"),
    [
        ({"hop": 2}, "hop = 2"),
        ({"hops": "two"}, 'hops = "two"'),
        ({"hops": 2, "spacing": -1}, "hops = 2\nspacing = -1"),
        ({"hops": 2, "radio": "wifi9"}, 'hops = 2\nradio = "wifi9"'),
        ({"hops": 2, "flows": []}, "hops = 2\nflows = []"),
        ({"hops": 2, "flows": [{"from": "sta1", "to": "sta9"}]}, 'hops = 2\nflows = [{ from = "sta1", to = "sta9" }]'),
        ({"hops": 2, "routing": {"protocol": "aodv", "hello": 1}}, 'hops = 2\nrouting = { protocol = "aodv", hello = 1 }'),
        ({"hops": 2, "tcp": "elfn("}, 'hops = 2\ntcp = "elfn("'),
    ],
    ids=lambda given: "" if isinstance(given, dict) else given.split("\n")[-1],
)
def test_a_wrong_key_is_refused_with_the_text_for_a_file(keys: dict[str, Any], toml: str, tmp_path: Path) -> None:
    text = refused(lambda: Scenario(keys, name="mine"))
    assert text.startswith("mine: ")
    assert text.removeprefix("mine: ") == by_file(tmp_path, toml)


def test_a_name_in_place_of_keys_is_refused_with_the_remedy() -> None:
    with pytest.raises(WrongScenario, match=r"Scenario\.load takes a name or a file"):
        Scenario("chain5")  # type: ignore[arg-type]


def test_a_wrong_key_of_load_is_refused_with_the_text_of_set() -> None:
    with pytest.raises(UsageError) as refusal:
        definitions.load(ROOT / "experiments" / "scenarios" / "chain5.toml", Request(overrides=("durations=3",)))
    assert refused(lambda: Scenario.load("chain5", set={"durations": 3})) == worded(str(refusal.value))
    assert refused(lambda: Scenario.load("chain5", set={"durations": 3})).startswith('set: key "durations": unknown key; did you')


def test_a_shipped_scenario_and_a_file_are_loaded_as_the_command_line_does(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("hops = 3\n")
    assert Scenario.load("chain5", set={"hops": 3, "routing": "aodv", "routing.link": "hello"}).keys["routing"]["link"] == "hello"
    assert Scenario.load(tmp_path / "own.toml").name == "own"
    assert "did you mean" in refused(lambda: Scenario.load("chain55"))
    assert refused(lambda: Scenario.load("hv-fig1")).endswith("load it with Experiment.load")
    assert refused(lambda: Experiment.load("chain5")).endswith("load it with Scenario.load")


def test_keys_of_numpy_and_paths_are_those_of_toml(tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.txt"
    sizes.write_text("100\n200\n")
    flow = {"from": "sta1", "to": "sta2", "traffic": "vbr", "interval": 0.1, "sizes": sizes}
    keys = {"hops": np.int64(1), "spacing": np.float64(150), "flows": ({**flow},)}
    assert Scenario(keys).keys["flows"][0]["sizes"] == str(sizes)


def test_a_changed_scenario_leaves_the_first_as_it_was() -> None:
    first = Scenario(CHAIN)
    second = first.changed({"hops": 4})
    assert (first.keys["hops"], second.keys["hops"]) == (2, 4)
    assert refused(lambda: first.changed({"hops.x": 1})).startswith("set: hops.x: there is no table")


def test_an_experiment_is_each_combination_of_its_axes_and_variants() -> None:
    made = Experiment.of(
        Scenario(CHAIN), name="own", axes={"hops": range(1, 3), "window": [4, 8]},
        variants={"reno": {"tcp": "reno"}, "vegas": {"tcp": "vegas"}}, seeds=3,
    )  # fmt: skip
    assert (len(made), made.seeds, len(made.cells)) == (24, 3, 8)
    assert made.cells[0] == "reno-hops1-window4" and made.cells[-1] == "vegas-hops2-window8"
    assert repr(made) == "<Experiment own: 2 hops x 2 window x 2 variants x 3 seeds, profile period>"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"axes": {"hop": [1]}}, 'own: key "axes.hop": unknown key; did you mean "hops"?'),
        ({"axes": {"hops": []}}, 'own: key "axes.hops": has no values; give at least one'),
        ({"axes": {"hops": [1, 1]}}, 'own: key "axes.hops": 1 is listed twice; remove one'),
        ({"variants": {"a": {"tcp": "elfn("}}}, 'own: key "variants.0.set.tcp": '),
        ({"variants": {"void": {}}}, 'own: key "variants.0.name": "void" is a file or folder of the results'),
        ({"figure": "hv_fig99"}, 'own: key "figure": no such figure "hv_fig99"'),
        ({"axis": {"hops": [1]}}, 'own: key "axis": unknown key'),
        ({"questions": [{"key": "variant", "compared": "a", "with": "b"}]}, 'own: key "questions.0'),
    ],
    ids=str,
)
def test_a_wrong_experiment_names_the_key(arguments: dict[str, Any], text: str) -> None:
    assert refused(lambda: Experiment.of(Scenario(CHAIN), name="own", **arguments)).startswith(text)


def test_an_experiment_of_the_project_has_the_cells_of_the_command_line() -> None:
    settings = {"hops": [1, 3], "routing": {"protocol": "aodv", "link": "hello"}}
    made = Experiment.load("hv-fig1", quick=True, set=settings, variants=["hv"])
    request = Request(True, ("hops=[1, 3]", 'routing={protocol="aodv", link="hello"}'), ("hv",))
    by_command = definitions.load(ROOT / "experiments" / "hv-fig1.toml", request)
    assert made.cells == tuple(cell.name for cell in by_command.cells)
    assert made._experiment.cells == by_command.cells


ODD = {
    "topology": "positions",
    "positions": [[0, 0], {"name": "a", "at": [100, 0]}],
    "routing": {"protocol": "aodv"},
    "spacing": None,
}


def test_the_toml_of_a_definition_is_a_file_of_the_same_cells(tmp_path: Path) -> None:
    scenario = Scenario(
        ODD | {"flows": [{"from": "sta1", "to": "a", "traffic": "command", "command": ["echo", 'a "b" \\ \u00e4']}]}
    )
    made = Experiment.of(
        scenario, axes={"queue": [5, 50], "routing.link": ["hello"]}, variants={"a": {"window": 4}, "b": {}}, question="Is 1 < 2?"
    )
    for one in (scenario, made):
        path = tmp_path / f"{one.name}.toml"
        path.write_text(one.toml)
        loaded = definitions.load(path)
        assert [(cell.name, cell.scenario) for cell in loaded.cells] == [
            (cell.name, cell.scenario) for cell in one._experiment.cells
        ]
        assert (loaded.question, loaded.seeds) == (one._experiment.question, one._experiment.seeds)
    ((name, text),) = made._experiment.definition
    assert (name, text) == ("experiment.toml", made.toml)


def test_a_name_that_is_no_folder_is_refused() -> None:
    assert refused(lambda: Scenario(CHAIN, name="../x")).startswith("name='../x': is no name; use letters")
    assert refused(lambda: Experiment.of(Scenario(CHAIN), name="")).startswith("name='': is no name")


def test_a_relative_path_refers_to_the_folder_of_the_scenarios_file(tmp_path: Path) -> None:
    (tmp_path / "walk.csv").write_text((ROOT / "experiments" / "scenarios" / "walk.csv").read_text())
    (tmp_path / "walk.toml").write_text((ROOT / "experiments" / "scenarios" / "walk.toml").read_text())
    scenario = Scenario.load(tmp_path / "walk.toml")
    made = Experiment.of(scenario, variants={"reno": {"tcp": "reno"}, "vegas": {"tcp": "vegas"}})
    assert made._experiment.cells[0].scenario.mobility.file == str(tmp_path / "walk.csv")


@pytest.mark.parametrize(
    "arguments", [{"seeds": 0}, {"seeds": True}, {"jobs": 0}, {"jobs": 1.5}, {"out": ""}], ids=str,
)  # fmt: skip
def test_a_wrong_argument_of_run_is_refused_before_anything_starts(arguments: dict[str, Any]) -> None:
    with pytest.raises(WrongRequest, match=f"^{next(iter(arguments))}="):
        Scenario(CHAIN).run(**arguments)


def test_errors_of_the_interface_have_one_base() -> None:
    assert issubclass(WrongScenario, WrongRequest) and issubclass(WrongScenario, MeshError)


WITHOUT_LIBRARIES = """
import sys
sys.path.append({root!r})
import manet_testbed
from manet_testbed import *
LATER = ("testbed", "scenarios", "keys", "traffic", "record", "analysis", "polars", "pydantic")
loaded = [name for name in sys.modules if name.partition(".")[0] in LATER]
assert loaded == [], loaded
try:
    from manet_testbed import Scenario
except ImportError as problem:
    print(type(problem).__name__, problem)
"""


def test_without_the_libraries_the_package_works_and_the_rest_names_the_remedy() -> None:
    code = WITHOUT_LIBRARIES.format(root=str(ROOT))
    done = subprocess.run(
        ["/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable, "-S", "-I", "-c", code],
        capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("MissingLibraries Scenario needs the testbed and its libraries, and this Python has no ")
    assert done.stdout.count("\n") == 1 and f"use {ROOT}/.venv/bin/python" in done.stdout


def test_the_names_are_listed_before_they_are_used() -> None:
    import manet_testbed

    assert {"Scenario", "Experiment", "Results", "Run", "Progress", "Mesh"} <= set(dir(manet_testbed))
    with pytest.raises(AttributeError, match="has no attribute 'Scenarios'"):
        _ = manet_testbed.Scenarios
