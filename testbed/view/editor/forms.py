"""The forms of a scenario's keys, from the JSON Schema alone (`manet schema`): a new key appears by itself.

A form is a tree of fields for the page (page/editor/forms.js). Each has `key`, `kind`, `label` of an alternative, and, where the
schema has them, `text` (its sentence), `unit`, `units` (that a text may name), `minimum`, `maximum`, `above`, `below`, `default`,
`required`.

| kind | control | value |
|---|---|---|
| `number`, `whole` | a number, or text with one of `units` | number or text |
| `text`, `switch`, `choice` | text; yes or no; one of `choices` | text; boolean; one of them |
| `value` | any TOML value | what the text means |
| `tuple` | `fields`, in order | list |
| `list` | `item`, repeated up to `most` | list |
| `table` | `fields` | table |
| `map` | names that the user gives, each with `item` | table |
| `named` | a name of `names`; for some a table of `tables` with `tag`; with `other` a path | name, table or path |
| `either` | one of `options` | that option's |
"""

import re
from functools import cache
from typing import Any

from keys.quantities import UNITS
from scenarios.json_schema import PATH, of_scenario
from scenarios.overrides import SHORT_FOR
from scenarios.scenario import Scenario

Json = dict[str, Any]
LIMITS = {"minimum": "minimum", "maximum": "maximum", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}
COPIED = ("description", "unit", "default")
# what json_schema.py says of a quantity after its description; the field has it as keys of its own
GENERATED = re.compile(r" ?[A-Z][a-z]+ in \S+?(, (at least|at most|more than|less than) \S+)*; as text with a unit: [^.]*\.$")
GROUPS = {
    "scenarios.layout": "Layout", "scenarios.radios": "Radio and propagation", "scenarios.wires": "Gateways",
    "scenarios.movement": "Movement", "scenarios.sending": "Routing, TCP and flows", "scenarios.scenario": "Run and events",
}  # fmt: skip
LAST_GROUP = "Further keys"


def form() -> list[Json]:
    """The groups of a scenario's keys: `title` and `fields`, in the order of formats/scenario.md."""
    schema = of_scenario()
    definitions = schema["$defs"]
    properties: Json = {key: node for key, node in schema["properties"].items() if key not in ("scenario", "base")}
    groups: dict[str, list[Json]] = {title: [] for title in (*GROUPS.values(), LAST_GROUP)}
    for key, node in properties.items():
        groups[_group_of(key)].append(_field(key, node, definitions))
    base = {
        "key": "base",
        "kind": "text",
        "text": "Path of the file that this one is based on, relative to this file.",
        "top": True,
    }
    groups[GROUPS["scenarios.scenario"]].append(base)
    return [{"title": title, "fields": fields} for title, fields in groups.items() if fields]


@cache
def _group_of(key: str) -> str:
    """The part of a scenario that declares a key: the class furthest up."""
    for part in reversed(Scenario.__mro__):
        own = getattr(part, "model_fields", {})
        if any((field.alias or name) == key for name, field in own.items()):
            return GROUPS.get(part.__module__, LAST_GROUP)
    return LAST_GROUP


def _field(key: str | None, node: Json, definitions: Json, required: bool = False) -> Json:
    """The field of one key or alternative."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        inner = definitions[name]
        described = {"description": node["description"]} if "description" in node else {}
        node = {**inner, **{k: v for k, v in node.items() if k != "$ref"}, **described}
    field: Json = {} if key is None else {"key": key}
    if required:
        field["required"] = True
    for name in COPIED:
        if node.get(name) is not None:
            field["text" if name == "description" else name] = node[name]
    if "text" in field:
        field["text"] = GENERATED.sub("", " ".join(field["text"].split())).strip()
    return {**field, **_kind(key, node, definitions)}


def _kind(key: str | None, node: Json, definitions: Json) -> Json:
    options: list[Json] = node.get("anyOf") or node.get("oneOf") or []
    if options and node.get("unit") in UNITS and "pattern" in options[-1 if len(options) == 2 else 1]:
        number = {**_limited(options[0]), "units": list(UNITS[node["unit"]])}
        return {**number, "words": [option["const"] for option in options[2:]]} if len(options) > 2 else number
    if options and key in SHORT_FOR:
        return _named(SHORT_FOR[key], options, definitions)
    if len(options) == 2 and "enum" in options[0] and options[1].get("pattern") == PATH["pattern"]:
        return {"kind": "named", "tag": "", "names": options[0]["enum"], "tables": {}, "other": True}
    if options and "properties" not in node:
        fields = [_field(None, option, definitions) for option in options]
        kept = [one for one in fields if one["kind"] != "table" or one["fields"]]
        return {"kind": "either", "options": [{**one, "label": _label(one)} for one in kept]}
    if "enum" in node:
        return {"kind": "choice", "choices": node["enum"]}
    if "const" in node:
        return {"kind": "choice", "choices": [node["const"]]}
    kind = node.get("type")
    if isinstance(kind, list):
        kind = next(one for one in kind if one != "null")
    if kind == "boolean":
        return {"kind": "switch"}
    if kind in ("integer", "number"):
        return _limited({**node, "type": kind})
    if kind == "string":
        return {"kind": "text"}
    if kind == "array" and "prefixItems" in node:
        return {
            "kind": "tuple",
            "fields": [_field(str(place), one, definitions) for place, one in enumerate(node["prefixItems"])],
        }
    if kind == "array":
        item = _field(None, node.get("items", {}), definitions)
        return {"kind": "list", "item": item, "most": node.get("maxItems") or node.get("maxLength")}
    if kind == "object" and "properties" in node:
        needed = node.get("required", [])
        return {"kind": "table", "fields": [_field(k, v, definitions, k in needed) for k, v in node["properties"].items()]}
    if kind == "object":
        return {"kind": "map", "item": {"kind": "value"}}
    return {"kind": "value"}


def _named(tag: str, options: list[Json], definitions: Json) -> Json:
    """A key that takes a name, or a table in which `tag` is the name; other text is a path."""
    names: list[str] = []
    tables: dict[str, list[Json]] = {}
    other = False
    for option in options:
        names += [name for name in option.get("enum") or option.get("examples") or [] if name not in names]
        if "$ref" not in option:
            other = other or ("enum" not in option and "properties" not in option)
            continue
        fields: list[Json] = _field(None, option, definitions)["fields"]
        tags = next((one for one in fields if one["key"] == tag), {})
        for name in tags.get("choices") or [_path_name(names, tables)]:
            tables[name] = [one for one in fields if one["key"] != tag or "choices" not in tags]
            names += [] if name in names else [name]
    return {"kind": "named", "tag": tag, "names": names, "tables": tables, "other": other}


def _path_name(names: list[str], tables: dict[str, list[Json]]) -> str:
    """The name of a table that any text selects: the one of `names` that has no table yet."""
    return next(name for name in reversed(names) if name not in tables)


def _limited(node: Json) -> Json:
    limits = {word: node[key] for key, word in LIMITS.items() if key in node}
    return {"kind": "whole" if node.get("type") == "integer" else "number", **limits}


def _label(field: Json) -> str:
    """A word for an alternative."""
    words = {
        "number": "a number", "whole": "a number", "text": "text", "switch": "yes or no", "list": "a list", "table": "a table",
        "map": "a table", "value": "a value", "tuple": "a list", "named": "a name",
    }  # fmt: skip
    return "a name" if field["kind"] == "choice" else words.get(str(field["kind"]), "a value")
