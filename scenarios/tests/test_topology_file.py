"""`topology = { file = "graph.json" }`: the stations of a NetJSON NetworkGraph (scenarios/topology_file.py)."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from keys.errors import UsageError
from scenarios.definition import load_scenario
from scenarios.json_schema import of_scenario

LINK = {"source": "a", "target": "b", "cost": 4.0}
SCENARIO = 'topology = { file = "graph.json" }\nduration = 5\n'


def graph(*nodes: dict[str, Any], **keys: Any) -> str:
    return json.dumps({"type": "NetworkGraph", "protocol": "OLSR", "version": "0.8", "metric": "ETX", "links": [LINK],
                       "nodes": list(nodes), **keys})  # fmt: skip


def node(identifier: str, label: str | None = None, **properties: Any) -> dict[str, Any]:
    return {"id": identifier, **({"label": label} if label else {}), "properties": properties}


def loaded(folder: Path, text: str, keys: str = "", *settings: str) -> Any:
    (folder / "graph.json").write_text(text)
    (folder / "x.toml").write_text(SCENARIO + keys)
    return load_scenario(folder / "x.toml", settings)


def test_nodes_with_positions_are_stations_there_and_the_run_needs_the_file_no_more(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, graph(node("a", x=0, y=10), node("b", x=150.5, y=10, z=2)))
    assert scenario.topology == "positions" and scenario.propagation.model != "trace"
    assert [tuple(placed) for placed in scenario.positions()] == [("a", 0, 10, 0), ("b", 150.5, 10, 2)]
    assert type(scenario).from_json(scenario.to_json()) == scenario


def test_degrees_are_metres_east_and_north_of_the_lower_left_corner(tmp_path: Path) -> None:
    for keys in (("lat", "lng"), ("lat", "lon"), ("latitude", "longitude")):
        nodes = [node(name, **dict(zip(keys, at, strict=True))) for name, at in (("a", (60.0, 10.0)), ("b", (60.001, 10.002)))]
        (_, first, second) = (None, *loaded(tmp_path, graph(*nodes)).positions())
        assert tuple(first[1:]) == (0, 0, 0)
        # 0.001 degrees of 6371 km: 111.195 m; 0.002 degrees east at 60.0005 degrees north: 111.195 m x 2 x cos = 111.19 m
        assert second.y_m == pytest.approx(111.195, abs=0.001) and second.x_m == pytest.approx(111.19, abs=0.01)
    within = [{"id": "a", "properties": {"location": {"lat": 60.0, "lng": 10.0}}}, node("b", lat=60.001, lng=10.002)]
    assert loaded(tmp_path, graph(*within)).positions()[1].y_m == pytest.approx(111.195, abs=0.001)


def test_labels_are_the_names_else_identifiers_else_numbers(tmp_path: Path) -> None:
    def names(*nodes: dict[str, Any]) -> list[str]:
        return loaded(tmp_path, graph(*nodes)).station_names()

    assert names(node("10.0.0.1", "roof", x=0, y=0), node("10.0.0.2", "gate", x=1, y=0)) == ["roof", "gate"]
    assert names(node("a", "The roof", x=0, y=0), node("b", x=1, y=0)) == ["a", "b"]
    assert names(node("10.0.0.1", "x", x=0, y=0), node("10.0.0.2", "x", x=1, y=0)) == ["sta1", "sta2"]


def test_nodes_without_positions_have_the_links_of_the_graph(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, graph(node("a"), node("b"), node("c")))
    assert (scenario.topology, len(scenario.station_names())) == ("unplaced", 3)
    assert (scenario.propagation.model, scenario.propagation.file) == ("trace", str(tmp_path / "graph.json"))
    own = 'propagation = { model = "matrix", matrix = [{ from = "sta1", to = "sta2", loss_db = 60 }] }'
    assert loaded(tmp_path, graph(node("a"), node("b")), own).propagation.model == "matrix"


@pytest.mark.parametrize(
    ("text", "keys", "words"),
    [
        ("[]", "", "is no NetworkGraph"),
        ("{", "", "is no valid JSON"),
        (graph(), "", "has no nodes"),
        (graph(node("a", x=0, y=0), node("b")), "", 'node "b" has no position, and other nodes have one'),
        (graph(node("a", x=0, y=0), node("b", lat=1, lng=1)), "", "some nodes have metres and others degrees"),
        (graph(node("a", lat=91, lng=0)), "", "no place on the earth"),
        (graph(node("a", x="0", y=0)), "", "x is no number"),
        (graph(node("a", x=1e9, y=0)), "", "x is no number from"),
        (graph(node("a", x=True, y=0)), "", "x is no number"),
        (graph(node("a"), node("b"), links=[]), "", "has no links"),
        (graph(node("a", x=0, y=0), node("b", x=1, y=1)), "hops = 3", 'line 3: key "hops": the file of `topology` has the'),
        (graph(node("a", x=0, y=0), node("b", x=1, y=1)), "positions = [[0, 0]]", 'key "positions": the file of'),
    ],
)
def test_a_wrong_graph_is_one_line_that_names_the_file(tmp_path: Path, text: str, keys: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        loaded(tmp_path, text, keys)
    assert words in str(refused.value) and "\n" not in str(refused.value) and "x.toml" in str(refused.value)


@pytest.mark.parametrize(
    ("value", "words"),
    [("{}", "names no file"), ("{ file = 5 }", "names no file"), ('{ file = "a", x = 1 }', 'key "topology.x": unknown key'),
     ('{ file = "nothing.json" }', "there is no file"), ('{ file = "a\\u0000b.json" }', "there is no file"),
     (f'{{ file = "{"x" * 5000}.json" }}', "there is no file")],
)  # fmt: skip
def test_a_wrong_table_is_one_line(tmp_path: Path, value: str, words: str) -> None:
    (tmp_path / "x.toml").write_text(f"topology = {value}\n")
    with pytest.raises(UsageError, match=words):
        load_scenario(tmp_path / "x.toml")


def test_the_file_of_a_setting_is_first_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "graph.json").write_text(graph(node("here", x=0, y=0), node("b", x=1, y=1)))
    monkeypatch.chdir(tmp_path / "here")
    set_file = 'topology={file="graph.json"}'
    assert loaded(tmp_path, graph(node("a", x=0, y=0)), "", set_file).station_names() == ["here", "b"]


def test_the_schema_of_editors_takes_the_table(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(of_scenario())
    assert not list(validator.iter_errors({"topology": {"file": "graph.json"}}))
    assert not list(validator.iter_errors({"topology": "grid"}))
    for wrong in ({"topology": {}}, {"topology": {"file": 1}}, {"topology": "ring"}, {"topology": {"file": "x", "y": 1}}):
        assert list(validator.iter_errors(wrong))
