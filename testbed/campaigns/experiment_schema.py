"""The JSON Schema of an experiment file: its tables, with the keys of a scenario in each table that may have them (`manet
schema experiment`).
"""

from typing import Any

from scenarios.json_schema import DIALECT, plain, scenario_keys
from testbed.campaigns.declaration import Tables
from testbed.campaigns.sweep import Size

Json = dict[str, Any]
AXES = {
    "type": "object",
    "description": "Keys of the scenario, dotted where they are in a table, each with the values that it takes in turn.",
    "additionalProperties": {"type": "array", "minItems": 1},
}


# The keys that have no comment in the example of formats/scenario.md
DESCRIPTIONS = {
    "": {
        "question": "What the experiment asks, in one sentence.",
        "source": "Paper, and its figure or table.",
        "plot": "What the general figure shows, its size and words.",
        "expected": "Whether throughput is compared with the expected throughput of the movement (chain curves).",
        "scenario": "Keys of all cells.",
        "flow_sets": "Named lists of flows, which `flows` may name.",
        "variants": "Named alternatives, each crossed with the axes.",
        "full": "Keys of the full size.",
        "quick": "Keys of the quick size.",
        "expect": "The outcome stated beforehand.",
        "questions": "What a campaign decides.",
    },
    "Plot": {
        "metric": "A metric of summary.csv (default: the first that is printed).",
        "x_label": "Words below the horizontal axis.",
        "y_label": "Words beside the vertical axis.",
        "width": "Inches; a paper's column has some 3.5.",
        "height": "Inches.",
        "legend": "Words for values of axes and names of variants.",
        "origin": "Whether the line with runs, seeds and verdicts stands below.",
    },
    "Expectation": {"within_percent": "Largest distance from the reference, at full size."},
    "Expected": {"checks": "Comparisons with reference numbers."},
    "Question": {"reference": "Table of reference numbers in place of `with`."},
    "Variant": {"name": "Part of the name of the variant's cells.", "set": "Keys that replace the scenario's."},
    "size": {"seeds": "Number of seeds: 1 to this.", "variants": "Only these variants."},
}
BASE = {"type": "string", "description": "Another file, relative to this one, which says all that this one does not."}


def of_experiment() -> Json:
    """The schema of an experiment file (JSON Schema, draft 2020-12)."""
    keys, definitions = scenario_keys()
    keys["properties"]["flows"] = _with_flow_sets(keys["properties"]["flows"])
    schema, size = plain(Tables.model_json_schema()), plain(Size.model_json_schema())
    definitions |= schema.pop("$defs") | {"scenario": keys}
    size["properties"] = {**keys["properties"], **size["properties"], "axes": AXES}
    # what one file says at full and quick size: a size's own keys and any of the scenario's
    definitions["size"] = {
        "type": "object", "additionalProperties": False, "properties": size["properties"],
        "patternProperties": {r"\.": {}},  # a key of a table, such as `routing.link`
    }  # fmt: skip
    tables = {
        "base": BASE,
        "scenario": {"$ref": "#/$defs/scenario"},
        "axes": AXES,
        "full": {"$ref": "#/$defs/size"},
        "quick": {"$ref": "#/$defs/size"},
    }
    head = {"$schema": DIALECT, "$id": "manet/experiment", "title": "An experiment (formats/scenario.md)"}
    definitions = {name: _described(table, name) for name, table in definitions.items()}
    tables = _described({"properties": {**schema["properties"], **tables}}, "")["properties"]
    needed = [{"required": schema.pop("required")}, {"required": ["base"]}]
    return {**head, **schema, "anyOf": needed, "properties": tables, "$defs": definitions}


def _described(table: Json, name: str) -> Json:
    """The table with its keys' descriptions."""
    texts = DESCRIPTIONS.get(name, {})
    keys = table["properties"]
    return {
        **table,
        "properties": {key: value | {"description": texts[key]} if key in texts else value for key, value in keys.items()},
    }


def _with_flow_sets(flows: Json) -> Json:
    """`flows` may also name a set of `flow_sets`, and its list have elements that do."""
    of_set = {"type": "object", "properties": {"set": {"type": "string"}}, "required": ["set"]}
    listed = {**flows, "items": {"anyOf": [flows["items"], of_set]}}
    return {key: flows[key] for key in ("description", "default") if key in flows} | {"anyOf": [listed, {"type": "string"}]}
