"""Forms from the schema: each of its keys has a field, and a value from each field is one that the schema takes."""

import tomllib
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from scenarios.json_schema import of_scenario
from testbed.view.editor import forms
from testbed.view.editor.drawing import changed

SCHEMA = of_scenario()
KINDS = {"number", "whole", "text", "switch", "choice", "value", "tuple", "list", "table", "map", "named", "either"}


def keys_of_schema(node: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths of all keys of a schema, elements of lists as `*`, read by itself: not as forms.py reads it."""
    if "$ref" in node:
        yield from keys_of_schema(SCHEMA["$defs"][node["$ref"].rsplit("/", 1)[1]], path)
    for option in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        if isinstance(option, dict):
            yield from keys_of_schema(option, path)
    if isinstance(node.get("items"), dict):
        yield from keys_of_schema(node["items"], (*path, "*"))
    for key, inner in node.get("properties", {}).items():
        yield (*path, key)
        yield from keys_of_schema(inner, (*path, key))


def keys_of_form(field: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The same paths, of a form."""
    yield path
    if field["kind"] == "table":
        for inner in field["fields"]:
            yield from keys_of_form(inner, (*path, inner["key"]))
    elif field["kind"] == "list":
        yield from keys_of_form(field["item"], (*path, "*"))
    elif field["kind"] == "named":
        yield (*path, field["tag"])
        for table in field["tables"].values():
            for inner in table:
                yield from keys_of_form(inner, (*path, inner["key"]))
    elif field["kind"] == "either":
        for option in field["options"]:
            yield from keys_of_form(option, path)


def fields() -> list[dict[str, Any]]:
    return [field for group in forms.form() for field in group["fields"]]


def test_every_key_of_the_schema_has_a_field():
    wanted = {path for path in keys_of_schema({**SCHEMA, "$defs": {}}, ()) if path[0] != "scenario"}
    found = {path for field in fields() for path in keys_of_form(field, (field["key"],))}
    assert wanted - found == set()
    assert len(wanted) > 400, "the schema has fewer keys than at the time of writing"
    print(f"{len(wanted)} keys, {len({path[0] for path in wanted})} at the top level")


def test_each_field_has_a_kind_and_each_key_at_the_top_a_sentence():
    def walk(field: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield field
        for inner in [*field.get("fields", ()), *field.get("options", ()), *([field["item"]] if "item" in field else [])]:
            yield from walk(inner)
        for table in field.get("tables", {}).values():
            for inner in table:
                yield from walk(inner)

    every = [inner for field in fields() for inner in walk(field)]
    assert {field["kind"] for field in every} == KINDS
    assert [field["key"] for field in fields() if not field.get("text") and field["key"] != "scenario"] == []


def test_a_field_has_unit_range_default_and_sentence():
    by_key = {field["key"]: field for field in fields()}
    assert by_key["warmup"] == {
        "key": "warmup", "text": "Time after the start of each flow that is not measured.", "unit": "s", "default": 5.0,
        "kind": "number", "minimum": 0, "maximum": 86400, "units": ["s", "ms", "us", "min"],
    }  # fmt: skip
    assert by_key["duration"]["words"] == ["movement"] and by_key["spacing"]["above"] == 0
    assert by_key["tcp"]["default"] == "newreno" and by_key["arp"]["kind"] == "choice"


def sample(field: dict[str, Any], tag: str | None = None) -> Any:
    """A value of a field, as the page makes it."""
    kind = field["kind"]
    if kind in ("number", "whole"):
        low = field.get("minimum", field.get("above", 0))
        value = low + 1 if "above" in field else low
        value = min(value, field.get("maximum", value))
        return int(value) if kind == "whole" else value
    if kind == "choice":
        return field["choices"][0]
    if kind == "switch":
        return True
    if kind == "tuple":
        return [sample(inner) for inner in field["fields"]]
    if kind == "list":
        return [sample({**field["item"]})]
    if kind == "table":
        return {inner["key"]: sample(inner) for inner in field["fields"] if inner.get("required")}
    if kind == "map":
        return {"net.ipv4.tcp_frto": 1}
    return {"text": "x", "value": 1, "named": (field.get("names") or [""])[0]}.get(kind) or sample(field["options"][0])


def values_of_form(field: dict[str, Any], path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any, list[dict[str, Any]]]]:
    """For each control: its path, a value, and the operations that make what it is in."""
    if field["kind"] == "either":
        for option in field["options"]:  # the page sets a list or a table as a whole when its form is chosen
            first = [{"op": "set", "path": list(path), "value": sample(option)}] if option["kind"] in ("list", "table") else []
            for inside, value, before in values_of_form({**option, "key": field.get("key")}, path):
                yield inside, value, [*first, *before]
        return
    if field["kind"] == "named":
        for name in field["names"]:
            yield path, name, []
        for name, table in field["tables"].items():
            needed = {inner["key"]: sample(inner) for inner in table if inner.get("required")}
            whole = needed if name == "file" else {field["tag"]: name, **needed}
            for inner in table:
                for inside, value, before in values_of_form(inner, (*path, inner["key"])):
                    yield inside, value, [{"op": "set", "path": list(path), "value": whole}, *before]
        return
    yield path, sample(field), []
    if field["kind"] == "table":
        for inner in field["fields"]:
            yield from values_of_form(inner, (*path, inner["key"]))
    elif field["kind"] == "list":
        make = {"op": "append", "path": list(path), "value": sample(field["item"])}
        for inside, value, before in values_of_form(field["item"], (*path, 0)):
            yield inside, value, [make, *before]


VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.mark.parametrize("field", fields(), ids=lambda field: field["key"])
def test_each_control_sets_its_key_in_the_text_to_what_the_schema_takes(field):
    count = 0
    for path, value, before in values_of_form(field, (field["key"],)):
        text = "# kept\n"
        for operation in (*before, {"op": "set", "path": list(path), "value": value}):
            text = changed(text, operation)
        held: Any = tomllib.loads(text)
        for part in path:
            held = held[part]
        assert held == value and "# kept" in text, path
        wrong = [
            problem for problem in VALIDATOR.iter_errors(tomllib.loads(text))
            if list(problem.absolute_path)[: len(path)] == list(path) and "required" not in str(problem.validator)
        ]  # fmt: skip
        assert [problem.message[:200] for problem in wrong if problem.validator not in ("anyOf", "oneOf")] == [], (path, value)
        count += 1
    assert count
