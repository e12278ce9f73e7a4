"""NetJSON NetworkGraph (netjson.org/rfc.html): the links of one moment.

Of each link the first of these counts, the same for all links:

| in `properties`, else in the link | is |
|---|---|
| `rssi_dbm`, or `signal` (dBm) | power at the target |
| `loss_db` | path loss |
| `delivery` | delivery rate, 0 to 1 |
| `lq` and `nlq` (OLSR) | delivery rates: `nlq` from source to target, `lq` from target to source |
| `cost`, if `metric` is ETX | delivery rate sqrt(1 / cost) both ways, as ETX = 1 / (there x back) (De Couto, MobiCom 2003) |

A link stands for both directions unless the other one is there too. The nodes become `sta1`, `sta2`, ... in their order in
`nodes`, or the scenario's stations in their order. All else (`cost_text`, labels, addresses) is left out.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mobility.measured.table import Links, LinksError, Row, made
from mobility.plane import Plane
from mobility.trace import MAX_COORDINATE_M

# keys of a position in a node's `properties`, for x, y, z (or longitude, latitude, height), and whether they are degrees
POSITIONS = (
    (("x", "y", "z"), False), (("lng", "lat", "altitude"), True), (("lon", "lat", "altitude"), True),
    (("longitude", "latitude", "altitude"), True),
)  # fmt: skip
Values = tuple[float | None, float | None]  # from source to target, and back; None: not said
Reader = Callable[[dict[str, Any]], Values | None]


@dataclass(frozen=True)
class Node:
    """A node: `position` in metres, x east, y north; None: it has none."""

    identifier: str
    label: str
    position: tuple[float, float, float] | None


@dataclass(frozen=True)
class _Position:
    x: float
    y: float
    z: float
    in_degrees: bool

    def on(self, plane: Plane | None) -> tuple[float, float, float]:
        x, y = (self.x, self.y) if plane is None else plane.metres(self.y, self.x)
        return round(x, 3), round(y, 3), self.z


def parse(text: str, name: str, stations: Sequence[str] | None = None) -> Links:
    """The links of a NetworkGraph at time 0. LinksError names the link."""
    graph = _graph(text, name)
    nodes, links = (_objects(graph, key, name) for key in ("nodes", "links"))
    names = _names(nodes, stations, name)
    metric = str(graph.get("metric", "")).lower()
    column, read = _column_of(links, metric, name)
    given: dict[tuple[str, str], float] = {}
    implied: dict[tuple[str, str], float] = {}
    for number, link in enumerate(links, start=1):
        ends = tuple(str(link.get(key)) for key in ("source", "target"))
        if stray := next((end for end in ends if end not in names), None):
            raise LinksError(f'{name}: link {number} has the end "{stray[:40]}", which is not in "nodes"; add it there')
        source, target = (names[end] for end in ends)
        there, back = read(link) or (None, None)
        if there is None:
            raise LinksError(f"{name}: link {number} has no {column} as the first one; give all links the same properties")
        given[source, target] = there
        implied[target, source] = there if back is None else back
    rows = [Row(0.0, *ends, value) for ends, value in (implied | given).items()]
    notes = [f"{station} is {node}" for node, station in names.items()]
    return made(name, column, rows, stations, [_plain(note) for note in notes])


def nodes(text: str, name: str) -> list[Node]:
    """The nodes of a NetworkGraph. LinksError if some have a position and others none, or for a wrong position."""
    found = {str(node.get("id")): node for node in _objects(_graph(text, name), "nodes", name)}
    if not found:
        raise LinksError(f"{name}: has no nodes; give a graph with at least one")
    own = {identifier: _position(node, f'{name}: node "{_plain(identifier)}"') for identifier, node in found.items()}
    placed = {identifier: position for identifier, position in own.items() if position is not None}
    if not placed:
        return [Node(identifier, str(node.get("label") or ""), None) for identifier, node in found.items()]
    if missing := next((identifier for identifier, position in own.items() if position is None), None):
        text = 'has no position, and other nodes have one; give all of them "x" and "y" (m), or "lat" and "lng", in "properties"'
        raise LinksError(f'{name}: node "{_plain(missing)}" {text}')
    if len({position.in_degrees for position in placed.values()}) > 1:
        raise LinksError(f"{name}: some nodes have metres and others degrees; give all of them the same")
    degrees = [(position.y, position.x) for position in placed.values() if position.in_degrees]
    plane = Plane.around(degrees) if degrees else None
    return [Node(identifier, str(node.get("label") or ""), placed[identifier].on(plane)) for identifier, node in found.items()]


def _graph(text: str, name: str) -> dict[str, Any]:
    try:
        graph = json.loads(text)
    except (ValueError, RecursionError):
        raise LinksError(f"{name}: is no valid JSON; write it again") from None
    if not isinstance(graph, dict) or graph.get("type") != "NetworkGraph":
        raise LinksError(f'{name}: is no NetworkGraph; give an object with "type": "NetworkGraph"')
    return graph


def _position(node: dict[str, Any], name: str) -> "_Position | None":
    """What a node's `properties` say: x, y, z in metres, or degrees, there or in `location`."""
    properties = node.get("properties")
    if not isinstance(properties, dict):
        return None
    location = properties.get("location")
    for table in (properties, location if isinstance(location, dict) else {}):
        for keys, in_degrees in POSITIONS:
            if keys[0] in table and keys[1] in table:
                x, y, z = (_coordinate(table.get(key, 0.0), key, name) for key in keys)
                if in_degrees and not (abs(y) <= 90 and abs(x) <= 180):
                    raise LinksError(f"{name}: latitude {y:g} and longitude {x:g} are no place on the earth; correct them")
                return _Position(x, y, z, in_degrees)
    return None


def _coordinate(value: Any, key: str, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_COORDINATE_M:
        raise LinksError(f"{name}: {key} is no number from {-MAX_COORDINATE_M:g} to {MAX_COORDINATE_M:g}; correct it")
    return float(value)


def _objects(graph: dict[str, Any], key: str, name: str) -> list[dict[str, Any]]:
    found = graph.get(key)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise LinksError(f'{name}: "{key}" is no list of objects; give a NetworkGraph')
    return found


def _names(nodes: list[dict[str, Any]], stations: Sequence[str] | None, name: str) -> dict[str, str]:
    """The station of each node by its id."""
    ids = list(dict.fromkeys(str(node.get("id")) for node in nodes))
    if stations is not None and len(ids) > len(stations):
        raise LinksError(f"{name}: has {len(ids)} nodes and the scenario {len(stations)} stations; give it as many")
    return dict(zip(ids, stations or [f"sta{number}" for number in range(1, len(ids) + 1)], strict=False))


def _column_of(links: list[dict[str, Any]], metric: str, name: str) -> tuple[str, Reader]:
    """What the first link has, and how it is read."""
    if not links:
        raise LinksError(f"{name}: has no links; give a graph with at least one")
    readers: list[tuple[str, Reader]] = [
        ("rssi_dbm", lambda link: _one(link, "rssi_dbm", "signal")),
        ("loss_db", lambda link: _one(link, "loss_db")),
        ("delivery", lambda link: _one(link, "delivery")),
        ("delivery", _link_quality),
    ]
    if metric == "etx":
        readers.append(("delivery", _of_etx))
    found = next(((column, read) for column, read in readers if read(links[0])), None)
    if found is None:
        text = "has neither rssi_dbm, signal, loss_db, delivery nor lq and nlq, nor a cost of metric ETX"
        raise LinksError(f"{name}: link 1 {text}; add one of them to its properties")
    return found


def _number(link: dict[str, Any], key: str) -> float | None:
    properties = link.get("properties")
    value: Any = properties.get(key) if isinstance(properties, dict) and key in properties else link.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e12 else None


def _one(link: dict[str, Any], *keys: str) -> Values | None:
    values = [value for key in keys if (value := _number(link, key)) is not None]
    return (values[0], None) if values else None


def _link_quality(link: dict[str, Any]) -> Values | None:
    lq, nlq = _number(link, "lq"), _number(link, "nlq")
    return None if lq is None or nlq is None else (nlq, lq)


def _of_etx(link: dict[str, Any]) -> Values | None:
    etx = _number(link, "cost")
    if etx is None or etx < 1:
        return None
    return math.sqrt(1 / etx), math.sqrt(1 / etx)


def _plain(note: str) -> str:
    """One line, for a comment."""
    return "".join(letter if letter.isprintable() else "?" for letter in note)[:80]
