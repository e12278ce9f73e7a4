"""The JSON Schema of an experiment file: its tables, with a scenario's keys where they may stand (`manet schema experiment`)."""

from typing import Any

from scenarios.json_schema import DIALECT, plain, scenario_keys
from testbed.campaigns.experiment import Definition, Size

Json = dict[str, Any]
AXES = {
    "type": "object",
    "description": "Keys of the scenario, dotted where they are in a table, each with the values that it takes in turn.",
    "additionalProperties": {"type": "array", "minItems": 1},
}


def of_experiment() -> Json:
    keys, definitions = scenario_keys()
    made, size = plain(Definition.model_json_schema()), plain(Size.model_json_schema())
    definitions |= made.pop("$defs") | {"scenario": keys}
    size["properties"] = {**keys["properties"], **size["properties"], "axes": AXES}
    # what one file says at full and quick size: a size's own keys and any of the scenario's
    definitions["size"] = {"type": "object", "additionalProperties": False, "properties": size["properties"]}
    tables = {
        "scenario": {"$ref": "#/$defs/scenario"},
        "axes": AXES,
        "full": {"$ref": "#/$defs/size"},
        "quick": {"$ref": "#/$defs/size"},
    }
    head = {"$schema": DIALECT, "$id": "manet/experiment", "title": "An experiment (formats/scenario.md)"}
    return {**head, **made, "properties": {**made["properties"], **tables}, "$defs": definitions}
