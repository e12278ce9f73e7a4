"""Errors of pydantic as one line: the key as the user wrote it, the problem, the remedy."""

import json
import re
from collections.abc import Callable
from datetime import date, time
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from keys.errors import UsageError, did_you_mean, shortened
from keys.models import KeyProblem
from keys.quantities import NAMES
from keys.toml_lines import Path as KeyPath
from scenarios import owned
from scenarios.key_models import TAGGED, classes_by_name, keys_at, unit_at
from scenarios.overrides import SHORT_FOR
from scenarios.routing import PRESETS, PROTOCOLS
from scenarios.toml_file import BASE

Model = TypeVar("Model", bound=BaseModel)
Refusal = Callable[[KeyPath, str], UsageError]

_TYPE_WORDS = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "string": "text in quotes",
    "tuple": "a list", "list": "a list", "dict": "a table", "model": "a table", "model_attributes": "a table",
}  # fmt: skip


_KEY = "[key]"  # pydantic's last part of the path of a wrong key of a table
_LIST = "tuple["  # pydantic's name of a list begins so, in the path of a key that takes something else, too
_NAMES = "literal["  # and that of names


def validated(model: type[Model], raw: object, refusal: Refusal, unknown: Refusal | None = None) -> Model:
    """Validate `raw` as `model`; the first error is raised as `refusal(key path, text)`, that of an unknown key as `unknown`,
    if given."""
    if (place := _of_nul(raw)) is not None:
        raise refusal(place, "has a NUL character, which no command or file may have; remove it")
    try:
        return model.model_validate(raw)
    except ValidationError as problem:
        first = _first(problem)
        refused = unknown if unknown and first["type"] == "extra_forbidden" else refusal
        raise refused(*_explain(first, model)) from None


def _of_nul(raw: object) -> KeyPath | None:
    """The path of the first text, or key, with a NUL character."""
    rest: list[tuple[KeyPath, object]] = [((), raw)]
    while rest:
        path, value = rest.pop()
        if isinstance(value, str) and "\0" in value:
            return path
        if isinstance(value, dict):
            rest += (((*path, key), inner) for key, inner in value.items())
            rest += (((*path, key), key) for key in value if isinstance(key, str) and "\0" in key)
        elif isinstance(value, list | tuple):
            rest += (((*path, index), inner) for index, inner in enumerate(value))
    return None


def _first(problem: ValidationError) -> ErrorDetails:
    """Unknown keys come first, because a misspelt key causes the error about the missing one. If a key takes text or a list, the
    error of the given form is chosen."""
    errors = problem.errors(include_url=False)
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    last = str(first["loc"][-1]) if first["loc"] else ""
    if isinstance(first["input"], str) or not (last == "str" or last.startswith(_NAMES)):
        return first
    *key, _ = first["loc"]
    of_key = (e for e in errors if list(e["loc"][: len(key)]) == key)
    return next((e for e in of_key if any(str(part).startswith(_LIST) for part in e["loc"][len(key) :])), first)


def _explain(error: ErrorDetails, model: type[BaseModel]) -> tuple[KeyPath, str]:
    """The key as the user wrote it, and the text. (pydantic's path has the chosen name after `routing` and `mobility`.)"""
    path: KeyPath = tuple(part for part in error["loc"] if not str(part).startswith((_LIST, _NAMES)) and part != _KEY)
    within, text = _worded(error, model, path)
    return (within[:1] + within[2:] if within[1:2] and within[1] in classes_by_name(within) else within), text


def _worded(error: ErrorDetails, model: type[BaseModel], path: KeyPath) -> tuple[KeyPath, str]:
    kind, given, ctx = error["type"], error["input"], error.get("ctx", {})
    if kind == "value_error":
        cause = ctx["error"]
        return path + (cause.path if isinstance(cause, KeyProblem) else ()), str(cause)
    if kind == "extra_forbidden":
        return path, _unknown(str(path[-1]), model, path[:-1])
    if kind == "union_tag_invalid":
        return path, _not_a_tag(str(path[0]), ctx)
    if kind == "union_tag_not_found":
        tag, named = TAGGED[str(path[0])]
        return path, f"names no {tag}; add {tag} = one of {', '.join(named)}"
    if kind == "missing":
        return path, "the table [scenario] is missing; add it" if path == ("scenario",) else "is missing; add it"
    if kind in ("literal_error", "string_pattern_mismatch"):
        return path, _not_a_choice(given, ctx)
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        return path, _out_of_range(given, ctx, unit_at(model, path))
    if path[:-1] and path[-1] in ("bool", "int", "float", "str"):
        return path[:-1], _mistyped(given, "a number, true, false or text in quotes")
    expected = _TYPE_WORDS.get(kind.removesuffix("_type").removesuffix("_parsing"))
    if kind == "int_from_float":
        expected = "a whole number"
    if expected == "a table" and path in ((), ("scenario",)):
        return path, f"scenario = {_shown(given)} is of the wrong type; write a table [scenario]"
    if expected == "a list" and str(error["loc"][-1]).startswith(_LIST):
        expected = "text in quotes or a list"
    if expected == "a table" and len(path) == 1 and path[0] in SHORT_FOR:
        expected = "a name in quotes or a table"
    if expected:
        unit = unit_at(model, path)
        each = " of numbers" if unit and expected.endswith("a list") else ""
        return path, _mistyped(given, expected + each + (f" in {unit} ({NAMES[unit]})" if unit else ""))
    if kind == "too_long" and isinstance(given, list | tuple):
        return path, f"has {len(given)} entries; give at most {ctx['max_length']}"
    return path, f"{error['msg'][0].lower()}{error['msg'][1:]}; correct it"


def _unknown(key: str, model: type[BaseModel], path: KeyPath) -> str:
    if key == BASE:
        return "unknown key here; it stands at the top of a file, before all tables"
    known = keys_at(model, path)
    if path[:1] == ("routing",) and key == "arp":
        able = ", ".join(f'"{name}"' for name, protocol in PROTOCOLS.items() if "arp" in protocol.model_fields)
        return f'routing "{path[1]}" writes no frames, so the kernel resolves its addresses; remove it, or take {able}'
    if path[:1] == ("routing",) and known == ["protocol"]:
        return f'routing "{path[1]}" has no options'
    if not path and key in owned.schema("radio")["properties"]:
        return f"unknown key; as one of the radio it is radio_overrides.{key}"
    if close := did_you_mean(key, known if path else [*known, BASE]):
        return f"unknown key; {close}"
    return f"unknown key; the keys here are {', '.join(known)}" if known else "unknown key; remove it"


def _not_a_choice(given: object, ctx: dict[str, Any]) -> str:
    if "expected" in ctx:
        choices = ctx["expected"].replace("'", '"').replace(" or ", ", ")
        if not isinstance(given, str):
            return _mistyped(given, f"one of {choices}")
        close = did_you_mean(given, re.findall(r'"([^"]*)"', choices))
        return f"{_shown(given)} is not known; use one of {choices}" + (f" ({close})" if close else "")
    return f"{_shown(given)} is not a name; use letters, digits, '-' and '_' only"


def _not_a_tag(key: str, ctx: dict[str, Any]) -> str:
    """`routing` accepts protocols and names of option tables; such a name is not valid as the table's own `protocol`."""
    tables = list(PRESETS) if key == "routing" else []
    if ctx["tag"] in tables:
        return f'"{ctx["tag"]}" stands for a whole table; write routing = "{ctx["tag"]}"'
    return _not_a_choice(ctx["tag"], {"expected": ", ".join([ctx["expected_tags"], *(f"'{name}'" for name in tables)])})


def _out_of_range(given: object, ctx: dict[str, Any], unit: str | None) -> str:
    return f"{_shown(given)} is out of range; give {owned.in_words(ctx)[0]}" + (f" {unit}" if unit else "")


def _mistyped(given: object, expected: str) -> str:
    return f"{_shown(given)} is of the wrong type; give {expected}"


def _shown(value: object) -> str:
    """The value as the user wrote it, in one line; of TOML's dates and times and of lists with their kind."""
    if isinstance(value, str):
        return f'"{shortened(value)}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return shortened(str(value))
    if isinstance(value, list | tuple):
        return f"the list {shortened(json.dumps(value, default=str, ensure_ascii=False), 40)}"
    if isinstance(value, date | time):
        return f"the {'time' if isinstance(value, time) else 'date'} {value}"
    return "a table" if isinstance(value, dict) else "this"
