"""From `topology = { file = "x.json" }`, a NetJSON NetworkGraph, to the keys that place its nodes (formats/scenario.md).

Nodes with positions become the explicit positions of a scenario; nodes without any become stations without positions, whose
links are the graph's, as measured links. The keys of the run have the positions themselves, so that it needs the file no more.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from mobility import measured
from mobility.measured import LinksError
from mobility.measured.netjson import Node
from scenarios.confined import REFUSED
from scenarios.keys import Keys
from topologies.layouts import STATION_NAME

LAYOUT = ("hops", "nodes", "rows", "columns", "spacing", "positions")


def with_graph(keys: Keys) -> Keys:
    """The keys with the stations of the file that `topology` names, or as they are without one. UsageError for a wrong file."""
    topology = keys.values.get("topology") if isinstance(keys.values, dict) else None
    if not isinstance(topology, dict):
        return keys
    written = topology.get("file")
    if stray := next((key for key in topology if key != "file"), None):
        raise keys.refusal(("topology", stray), "unknown key; a table has `file` alone, a NetJSON NetworkGraph")
    if not isinstance(written, str):
        raise keys.refusal(("topology",), 'names no file; write topology = { file = "graph.json" }, a NetJSON NetworkGraph')
    if "topology" in keys.document.foreign:
        raise keys.refusal(("topology",), f"names a file, {REFUSED}; give positions")
    if stray := next((key for key in LAYOUT if key in keys.values), None):
        raise keys.refusal((stray,), "the file of `topology` has the stations; remove it")
    path = keys.file_of(("topology",), written, "a NetJSON NetworkGraph", "file")
    try:
        nodes = measured.read_nodes(path)
    except LinksError as problem:
        raise keys.refusal(("topology",), str(problem)) from None
    return replace(keys, values={**keys.values, **_placed(nodes, path, keys)})


def _placed(nodes: list[Node], path: Path, keys: Keys) -> dict[str, Any]:
    if nodes[0].position is None:
        links = {} if "propagation" in keys.values else {"propagation": {"model": "trace", "file": str(path)}}
        return {"topology": "unplaced", "nodes": len(nodes), **links}
    points = [list(node.position or ()) for node in nodes]
    places = [{"name": name, "at": point} for name, point in zip(_names(nodes), points, strict=False)]
    return {"topology": "positions", "positions": places or points}


def _names(nodes: list[Node]) -> list[str]:
    """The names of the stations: labels or identifiers, if all of them are names; none: by their numbers."""
    for names in ([node.label for node in nodes], [node.identifier for node in nodes]):
        if len(set(names)) == len(names) and all(STATION_NAME.fullmatch(name) for name in names):
            return names
    return []
