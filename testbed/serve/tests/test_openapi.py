"""The description of the interface agrees with the addresses of the application."""

import json
import re

import jsonschema
import pytest

from testbed.programs import ROOT
from testbed.serve.app import Api
from testbed.serve.tests.serving import NoQueue, document

DOCUMENT = document()
PAGE = (ROOT / "formats" / "serve.md").read_text()


def routes() -> set[tuple[str, str]]:
    found = Api(NoQueue()).fastapi().state.routes  # type: ignore[arg-type]
    return {(method, re.sub(r":\w+", "", route.path)) for route in found for method in route.methods if method != "HEAD"}


def operations() -> set[tuple[str, str]]:
    methods = ("get", "post", "delete")
    return {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item if method in methods}


def test_each_address_is_described() -> None:
    assert operations() == routes()


@pytest.mark.parametrize("operation", sorted(operations()))
def test_each_address_is_on_the_page(operation: tuple[str, str]) -> None:
    method, path = operation
    assert f"`{method} {re.sub(r'{(.+?)}', lambda name: name[1].upper(), path)}" in PAGE


def test_each_reference_leads_to_a_component() -> None:
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(DOCUMENT))):
        node = DOCUMENT
        for part in reference.split("/"):
            node = node[part]


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_each_schema_is_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(DOCUMENT["components"]["schemas"][name])


def test_requests_match_their_schema() -> None:
    schema = {"$ref": "#/components/schemas/RunRequest", "components": DOCUMENT["components"]}
    validator = jsonschema.Draft202012Validator(schema)
    for body in (
        {"scenario": {"topology": "chain", "hops": 2}, "seeds": 2, "name": "x"},
        {"experiment": "hv-fig1", "quick": True, "set": {"hops": [1], "mobility.speed": 2}, "variant": ["hv"]},
    ):
        validator.validate(body)
    for body in ({}, {"scenario": {"hopps": 2}}, {"experiment": "none"}, {"scenario": {}, "experiment": "chain5"}):
        assert list(validator.iter_errors(body))
