"""Values become TOML, and come back as they were."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.errors import UsageError
from keys.toml_lines import MAX_WHOLE
from scenarios.toml_text import file_text, value_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SIMPLE = st.one_of(st.booleans(), st.integers(-MAX_WHOLE, MAX_WHOLE - 1), st.floats(allow_nan=False, allow_infinity=False), TEXT)
VALUES = st.recursive(
    SIMPLE, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)), max_leaves=20
)


@given(st.dictionaries(TEXT, VALUES, max_size=5))
def test_the_file_gives_the_values_back(tables: dict[str, Any]) -> None:
    assert tomllib.loads(file_text(tables)) == tables


@given(VALUES)
def test_a_value_of_set_is_one_line(value: Any) -> None:
    text = value_text(value, "x")
    assert "\n" not in text
    assert tomllib.loads(f"value = {text}")["value"] == value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "is null"),
        (float("inf"), "is no finite number"),
        (1 << 63, "is a number of more than 64 bits"),
        ("\ud800", "is no Unicode text"),
        (object(), "is a object, which TOML lacks"),
    ],
)
def test_what_toml_lacks_is_refused_with_its_key(value: Any, words: str) -> None:
    with pytest.raises(UsageError, match=f"key .*{words}"):
        value_text({"inner": value}, "outer")
