"""The JSON Schema (draft 2020-12) of a scenario file, with which editors complete keys: `manet schema`.

It is generated from the classes that check a scenario, with their limits, units and defaults. It has no checks across keys (such
as the name of a missing station, or keys that do not fit the topology), and no limits of quantities that are written as text.
"""

import copy
import tomllib
from pathlib import Path
from typing import Any

from keys.quantities import NAMES, UNITS, text_pattern
from scenarios import energy, owned, profiles, propagation
from scenarios.movement import MOVEMENTS
from scenarios.routing import OWN_DAEMONS, PRESETS, PROTOCOLS
from scenarios.scenario import Scenario
from scenarios.sending import WHOLE_MOVEMENT

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DESCRIPTIONS = Path(__file__).with_name("descriptions.toml")
OF_PYDANTIC = {word: key for key, word in owned.LIMITS.items()}  # its names of limits behind a validator function
Json = dict[str, Any]
# the stations of a file (scenarios/topology_file.py)
GRAPH: Json = {
    "type": "object", "additionalProperties": False, "required": ["file"],
    "properties": {"file": {"type": "string", "description": "The path of a NetJSON NetworkGraph."}},
}  # fmt: skip
OF_MEDIUM = ("propagation-", "fading-")  # names of tables that the medium describes
PATH: Json = {"type": "string", "pattern": r"/|\.toml$"}  # of a file of the user's own; a bare name would hide misspelt ones
OWN_ROUTING: Json = {**PATH, "description": "The path of a daemon's description (TOML)."}
OWN_TRAFFIC: Json = {**PATH, "description": "The path of a traffic kind's description (TOML)."}
OWN_ROUTING_TABLE: Json = {"type": "object", "required": ["protocol"], "properties": {"protocol": OWN_ROUTING}}


def of_scenario() -> Json:
    """The schema of a scenario file: keys at top level, or in a table [scenario] alone."""
    keys, definitions = scenario_keys()
    schema = {"$schema": DIALECT, "$id": "manet/scenario", "title": "A scenario (formats/scenario.md)", **keys}
    table = {"$ref": "#/$defs/scenario"}
    alone = {"if": {"required": ["scenario"]}, "then": {"propertyNames": {"enum": ["scenario", "base"]}}}
    schema["properties"] = {**keys["properties"], "scenario": table, "base": {"type": "string"}}
    return {**schema, **alone, "$defs": {**definitions, "scenario": keys}}


def scenario_keys() -> tuple[Json, Json]:
    """The object of a scenario's keys, and the definitions that it refers to."""
    keys = plain(Scenario.model_json_schema())
    definitions: Json = keys.pop("$defs")
    properties = keys["properties"]
    for name in [*MOVEMENTS, *PROTOCOLS]:
        _require_tag(definitions, name)
    models: dict[str, type[propagation.Selected]] = {"propagation": propagation.Propagation, "fading": propagation.Fading}
    for key, model in models.items():
        del definitions[model.__name__]
        definitions |= {f"{key}-{name}": plain(table) for name, table in model.OF.items()}
        tables = [{"$ref": f"#/$defs/{key}-{name}"} for name in model.OF]
        definitions[f"{key}-{model.FIRST}"]["required"] = []
        properties[key] = _short(properties[key], {"enum": list(model.OF)}, tables)
        properties[key]["default"] = model.FIRST
    definitions["propagation-matrix"]["properties"]["matrix"]["items"] = {"$ref": "#/$defs/MatrixEntry"}
    routing, mobility = properties["routing"], properties["mobility"]
    properties["routing"] = _short(routing, {"enum": [*PROTOCOLS, *PRESETS]}, [OWN_ROUTING, *routing["oneOf"], OWN_ROUTING_TABLE])
    properties["mobility"] = _short(mobility, {"type": "string", "examples": list(MOVEMENTS)}, mobility["oneOf"])
    properties["topology"] = _short(properties["topology"], {"enum": properties["topology"]["enum"]}, [GRAPH])
    place = properties["positions"]
    place["items"] = {"anyOf": [place["items"], definitions["Place"]["properties"]["at"]]}
    properties["duration"]["anyOf"].append({"const": WHOLE_MOVEMENT})
    own_radio = {**PATH, "description": "A profile of your own: the path of its file."}
    properties["radio"] = {"default": properties["radio"]["default"], "anyOf": [{"enum": profiles.names()}, own_radio]}
    properties["radio_overrides"] = _overrides()
    properties["energy"] = _short(properties["energy"], {"enum": list(energy.CARDS)}, [properties["energy"]])
    _add_own_traffic(definitions["Flow"])
    disciplines = {"enum": owned.node("medium", "queue.discipline")["enum"]}
    properties["queue"] = _short(properties["queue"], disciplines, [properties["queue"]])
    properties["sysctls"]["additionalProperties"]["anyOf"].append({"type": "object"})  # nested tables of the parts of a name
    _describe({**definitions, "scenario": {"properties": properties}})
    return {"type": "object", "additionalProperties": False, "properties": properties}, definitions


def _add_own_traffic(flow: Json) -> None:
    """Let a flow's `traffic` be a path, too; the keys of such a flow are those of the description, which no schema knows."""
    kind = flow["properties"]["traffic"]
    flow["properties"]["traffic"] = {"default": kind["default"], "anyOf": [{"enum": kind["enum"]}, OWN_TRAFFIC]}
    del flow["additionalProperties"]
    flow["if"] = {"required": ["traffic"], "properties": {"traffic": OWN_TRAFFIC}}
    flow["else"] = {"propertyNames": {"enum": list(flow["properties"])}}


def _describe(definitions: Json) -> None:
    """Put the description of each key before what its schema says already: that of its daemon, else of DESCRIPTIONS."""
    texts = tomllib.loads(DESCRIPTIONS.read_text(encoding="utf-8"))
    for name, table in definitions.items():
        of_daemon = owned.schema(name)["properties"] if name in OWN_DAEMONS else {}
        for key, value in table["properties"].items():
            shared = texts["routing"].get(key, "") if "protocol" in table["properties"] else ""
            text = of_daemon.get(key, {}).get("description") or texts.get(name, {}).get(key) or shared
            if text and not name.startswith(OF_MEDIUM):
                value["description"] = " ".join(filter(None, [text, value.get("description")]))


def _require_tag(definitions: Json, name: str) -> None:
    """Require the key that selects a table's class; a movement file may have `file` alone, and a path instead of a model's
    name."""
    model = MOVEMENTS.get(name) or PROTOCOLS[name]
    definition, tag = definitions[model.__name__], "model" if name in MOVEMENTS else "protocol"
    if name == "file":
        names = [other for other in MOVEMENTS if other != "file"]
        definition["properties"]["model"] = {"type": "string", "not": {"enum": names}}
        definition["required"] = []
        definition["anyOf"] = [{"required": ["file"]}, {"required": ["model"]}]
    else:
        definition["required"] = sorted({tag, *definition.get("required", [])})


def _short(whole: Json, name: Json, tables: list[Json]) -> Json:
    """The schema of a key with a name or file as short form of a table."""
    return {**{key: whole[key] for key in ("description", "default") if key in whole}, "anyOf": [name, *tables]}


def _overrides() -> Json:
    """The keys of a radio profile, none of which is required; numbers are in the units of their names."""
    radio = copy.deepcopy(owned.schema("radio"))
    simple = {key: value for key, value in radio["properties"].items() if value.get("type") != "array"}
    del simple["rules"]["required"]
    for value in (*simple.values(), *simple["rules"]["properties"].values()):
        value.pop("default", None)
    text = "Keys that replace the profile's (formats/radio.md)."
    return {"type": "object", "description": text, "additionalProperties": False, "properties": simple, "default": {}}


def plain(node: Any) -> Any:
    """A schema of pydantic adapted to TOML: without null; limits by JSON Schema's names; a quantity as number or text."""
    if isinstance(node, list):
        return [plain(part) for part in node]
    if not isinstance(node, dict):
        return node
    node = {OF_PYDANTIC.get(key, key): value for key, value in node.items() if key not in ("title", "discriminator")}
    # names in `properties` are user-defined: a key called `title` is not JSON Schema's
    for key, value in node.items():
        named = key in ("properties", "$defs")
        node[key] = {name: plain(part) for name, part in value.items()} if named else plain(value)
    node = _without_null(node)
    return _quantity(node) if node.get("unit") in UNITS and "type" in node else node


def _without_null(node: Json) -> Json:
    if node.get("default", ...) is None:
        del node["default"]
    if isinstance(node.get("type"), list):
        node["type"] = next(kind for kind in node["type"] if kind != "null")
    options = [option for option in node.get("anyOf", []) if option != {"type": "null"}]
    if "anyOf" not in node or len(options) > 1:
        return {**node, "anyOf": options} if options else node
    return {**options[0], **{key: value for key, value in node.items() if key != "anyOf"}}


def _quantity(node: Json) -> Json:
    unit = node["unit"]
    around = {key: value for key, value in node.items() if key in ("description", "default", "unit")}
    number = {key: value for key, value in node.items() if key not in around}
    text = {"type": "string", "pattern": text_pattern(unit)}
    limits = ", ".join([f"{NAMES[unit].capitalize()} in {unit}", *owned.in_words(number)])
    limits += f"; as text with a unit: {', '.join(UNITS[unit])}."
    described = " ".join(filter(None, [node.get("description"), limits]))
    return {**around, "description": described, "anyOf": [number, text]}
