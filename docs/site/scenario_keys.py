"""The reference of the keys of scenarios and experiments, from the JSON Schemas (`manet schema`); the keys at the top level, and
those of an experiment, are described by formats/scenario.md."""

import json
import re
from functools import cache
from typing import Any

from docs.site.repository import ROOT
from docs.site.table import cell, prose, row
from scenarios.json_schema import OF_MEDIUM, of_scenario
from scenarios.movement import MOVEMENTS
from testbed.campaigns.experiment_schema import of_experiment

Json = dict[str, Any]
PAGE = ROOT / "formats" / "scenario.md"
BOUNDS = {
    "minimum": "≥ ",
    "exclusiveMinimum": "> ",
    "maximum": "≤ ",
    "exclusiveMaximum": "< ",
    "minItems": "at least ",
    "maxItems": "at most ",
}
GENERATED = re.compile(r"(Distance|Time|Rate|Size|Speed) in [^;]*; as text with a unit: .*$")  # repeats the column of values
# Tables of the example in formats/scenario.md, with their names in the schema
TABLES_OF_EXPERIMENT = {
    "questions": "Question",
    "expect": "Expected",
    "expect.checks": "Expectation",
    "plot": "Plot",
    "variants": "Variant",
    "": "experiment",
}
HEAD = """# Keys of {what}

Generated from the schema that `./manet schema{verb}` prints. An unknown key, a wrong unit or a value out of range is an error
before anything starts. Rules across keys, and examples: [formats/scenario.md](../formats/scenario.md). A quantity is a number in
the key's unit, or text with a unit of the same dimension (`"0.2 km"`). A dash in the column of defaults: none, or another key
decides.
"""
KEYS, EXPERIMENT, ROOTFS = "keys-of-a-scenario", "scenarios-and-experiments-toml", "stations-with-a-root-file-system"
# Heading of a table's section, and the heading of formats/scenario.md with its rules
SECTIONS = {
    "Flow": ("An element of `flows`", KEYS),
    "Event": ("An element of `events`", KEYS),
    "Wire": ("An element of `wires`", KEYS),
    "LinkErrors": ("An element of `links`", KEYS),
    "Container": ("An element of `stations`", ROOTFS),
    "Hwsim": ("The table `hwsim`", KEYS),
    "StationRadio": ("An element of `radios`", KEYS),
    "Antenna": ("The table `antenna` of an element of `radios` or `jammers`", KEYS),
    "Jammer": ("An element of `jammers`", KEYS),
    "Energy": ("The table `energy`", KEYS),
    "Gps": ("The table `gps`", KEYS),
    "Place": ("An element of `positions`", KEYS),
    "MatrixEntry": ("An element of `propagation.matrix`", KEYS),
    "Wall": ("An element of `walls`", KEYS),
    "Move": ("An element of `mobility.moves`", KEYS),
    "Question": ("An element of `questions`", EXPERIMENT),
    "Plot": ("The table `plot`", EXPERIMENT),
    "Expected": ("The table `expect`", EXPERIMENT),
    "Expectation": ("An element of `expect.checks`", EXPERIMENT),
    "Variant": ("An element of `variants`", EXPERIMENT),
    "size": ("The tables `full` and `quick`", EXPERIMENT),
}


def scenario_page() -> str:
    """The page of a scenario's keys, in Markdown."""
    schema = of_scenario()
    own = {key: value for key, value in schema["properties"].items() if key not in ("scenario", "base")}
    lines = [HEAD.format(what="a scenario", verb=""), "## Top level", "", *_table("scenario", {"properties": own})]
    return "\n".join([*lines, *_sections({name: table for name, table in schema["$defs"].items() if name != "scenario"})])


def experiment_page() -> str:
    """The page of the keys that an experiment has beside the scenario's, in Markdown."""
    schema, scenario = of_experiment(), of_scenario()
    tables = {name: table for name, table in schema["$defs"].items() if name not in scenario["$defs"]}
    shared = set(scenario["$defs"]["scenario"]["properties"])
    own = {key: value for key, value in tables["size"]["properties"].items() if key not in shared or key == "seeds"}
    tables["size"] = {**tables["size"], "properties": own}
    text = (
        "The tables `scenario`, `full`, `quick`, and `set` of a variant also have the [keys of a scenario](scenario-keys.md).\n"
    )
    lines = [HEAD.format(what="an experiment", verb=" experiment"), text, "## Top level", "", *_table("experiment", schema)]
    return "\n".join([*lines, *_sections(tables)])


def _sections(tables: dict[str, Json]) -> list[str]:
    return [line for name, table in tables.items() for line in _section(name, table)]


def _section(name: str, table: Json) -> list[str]:
    about = re.split(r"(?<=[a-z0-9)`]{2}\.) (?=[A-Z`])", " ".join(table.get("description", "").split()))[
        0
    ]  # the rest is about the class
    head = ["", f"## {title(name, table)}", "", *([prose(about), ""] if about else [])]
    if name in SECTIONS:
        head += [f"[Rules and examples](../formats/scenario.md#{SECTIONS[name][1]})", ""]
    return [*head, *_table(name, table)]


def title(name: str, table: Json) -> str:
    """The heading of a table's section."""
    keys = table["properties"]
    if name.startswith(OF_MEDIUM):
        key, model = name.split("-", 1)
        return f'`{key}`, model "{model}"'
    if "protocol" in keys:
        return f'`routing`, protocol "{keys["protocol"].get("const", name)}"'
    if "model" in keys:
        model = next((key for key, kind in MOVEMENTS.items() if kind.__name__ == name), name)
        return f'`mobility`, model "{model}"'
    return SECTIONS[name][0]


def _table(name: str, table: Json) -> list[str]:
    described, needed = _descriptions(name), table.get("required", [])
    lines = [row("key", "values", "default", "description", "owner"), row("---", "---", "---", "---", "---")]
    for key, value in table["properties"].items():
        default = "required" if key in needed else _default(value)
        about = described.get(key) or GENERATED.sub("", value.get("description", "")).strip() or _only(value)
        lines.append(row(f"`{key}`", values(value), default, _linked(cell(about)), _owner(name, key)))
    return lines


def _only(value: Json) -> str:
    """The description of a key with one value, which selects its table."""
    return "Selects this table." if "const" in value else ""


def values(node: Json) -> str:
    """Type, unit and range of a key's schema, as one cell."""
    if "$ref" in node:
        return _section_link(node["$ref"].rsplit("/", 1)[1])
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if "unit" in node:
        number = node["anyOf"][0] if "anyOf" in node else node
        return " ".join(filter(None, [node["unit"], _bounds(number)]))
    if "anyOf" in node or "oneOf" in node:
        return " or ".join(dict.fromkeys(values(option) for option in node.get("anyOf") or node["oneOf"]))
    if node.get("type") == "array":
        inner = node.get("items") or (node.get("prefixItems") or [{}])[0]
        return " ".join(filter(None, ["list of", values(inner) if inner else "values", _bounds(node)]))
    kind = {"boolean": "`true`, `false`", "object": "table", "integer": "whole number", "string": "text"}
    return " ".join(filter(None, [kind.get(node.get("type", ""), node.get("type", "any")), _bounds(node)]))


def _section_link(name: str) -> str:
    """`table`, a link to the section of that table."""
    if name == "scenario":
        return "[table](scenario-keys.md)"
    anchor = re.sub(r"[^\w -]", "", title(name, _all_tables()[name]).lower()).replace(" ", "-")
    return f"[table](#{anchor})"


@cache
def _all_tables() -> dict[str, Json]:
    return of_experiment()["$defs"]


def _bounds(node: Json) -> str:
    return ", ".join(f"{word}{node[key]:g}" for key, word in BOUNDS.items() if key in node)


def _default(value: Json) -> str:
    if "default" not in value:
        return "-"
    return f"`{json.dumps(value['default'])}`".replace("|", "\\|")


def _owner(name: str, key: str) -> str:
    """The program or folder that sets a key's limits and default."""
    if (ROOT / "formats" / "schema" / f"{name}.json").exists() and key not in ("protocol", "events", "settle"):
        return f"`manet-{name}`"
    if (ROOT / "routing" / "third-party" / f"{name}.toml").exists():
        return "`routing/third-party`"
    if name.startswith(OF_MEDIUM):
        return "`manet-medium`"
    return "`testbed/campaigns`" if name in ("experiment", "size", *TABLES_OF_EXPERIMENT.values()) else "`scenarios`"


def _descriptions(name: str) -> dict[str, str]:
    """The descriptions of keys that the schema does not have."""
    if name == "scenario":
        return _documented("## Keys of a scenario")
    return {key: text for (table, key), text in _comments().items() if table == name}


def _documented(heading: str) -> dict[str, str]:
    """The second cell of the rows of the first table below a heading of formats/scenario.md, by the keys in the first."""
    part = PAGE.read_text(encoding="utf-8").split(heading, 1)[1]
    lines = part[part.index("\n| key |") :].split("\n\n")[0].strip().splitlines()[2:]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    return {key: cells[1].strip().replace("\\|", "|") for cells in rows for key in re.findall(r"`([\w.]+)`", cells[0])}


def _comments() -> dict[tuple[str, str], str]:
    """The comments after the keys of the example of an experiment, by table and key."""
    example = PAGE.read_text(encoding="utf-8").split("```toml", 1)[1].split("```")[0]
    table, found = "", {}
    for line in example.splitlines():
        if header := re.match(r"\[+([\w.]+)\]+", line):
            table = header[1]
        elif match := re.match(r"(\w+)\s*=.*?\s#\s(.*)", line):
            found[TABLES_OF_EXPERIMENT.get(table, table), match[1]] = match[2]
    return found


def _linked(text: str) -> str:
    """Links of formats/scenario.md, from here."""
    text = re.sub(r"\]\((#[^)]+)\)", r"](../formats/scenario.md\1)", text)
    return re.sub(r"\]\((?!\.\./|https?:)([^)]+)\)", r"](../formats/\1)", text)
