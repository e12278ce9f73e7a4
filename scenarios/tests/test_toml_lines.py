"""Lines of keys, checked against the values that tomllib reads."""

import tomllib

import pytest

from keys.toml_lines import Duplicate, TooMuch, duplicate, locate, parse

TEXT = '''# comment = "not a key"
a = 1
"quoted key" = 'x = [ # no comment'
b.c = """
d = 5
"quotes" in here \\""" and on
"""
list = [ # a comment ] with a bracket
  [1, 2],
  { x = 1, y = [3, 4] },

  "]",
]

[table.inner]
key = true
[[items]]
name = "one"
[[items]]
name = "two"
[items.sub]
deep = 1979-05-27T07:32:00Z
'''


def paths(value, prefix=()):
    yield prefix
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*prefix, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*prefix, index))


def test_every_key_and_element_that_tomllib_reads_has_a_line():
    lines = locate(TEXT)
    missing = [path for path in paths(tomllib.loads(TEXT)) if path and path not in lines and path != ("table",)]
    assert missing == []


def test_lines_are_those_of_the_keys():
    lines = locate(TEXT)
    assert lines[("a",)] == 2
    assert lines[("quoted key",)] == 3
    assert lines[("b", "c")] == 4
    assert lines[("list",)] == 8
    assert lines[("list", 1, "y")] == 10
    assert lines[("list", 2)] == 12
    assert lines[("table", "inner", "key")] == 16
    assert lines[("items", 0, "name")] == 18
    assert lines[("items", 1, "name")] == 20
    assert lines[("items", 1, "sub", "deep")] == 22


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "[a.b]\nx = 1\n[a]\ny = 2",
        "a.b = 1\na.c = 2\n[d.e]\nx.y = 1\nx.z = 2\n[d]",
        "[a]\nb.c = 1\n[a.b.d]\ne = 1",
        "[[a]]\nb = 1\n[a.c]\nd = 1\n[[a]]\nb = 1\n[a.c]\nd = 1\n[[a.e]]\nf = 1\n[[a.e]]\nf = 1",
        "a = [{ b = 1 }, { b = 1 }]\nc = { d = { b = 1 }, e = { b = 1 } }",
    ],
)
def test_a_text_that_tomllib_reads_has_no_duplicate(text):
    tomllib.loads(text)
    assert duplicate(text) is None


@pytest.mark.parametrize(
    ("text", "path", "first", "line", "is_table"),
    [
        ("a = 1\nb = 2\na = 3", ("a",), 1, 3, False),
        ("[t]\na.b = 1\na.b = 2", ("t", "a", "b"), 2, 3, False),
        ("a = 1\na.b = 2", ("a",), 1, 2, False),
        ("a = {}\na.b = 2", ("a",), 1, 2, False),
        ("[a]\nb = { c = 1, c = 2 }", ("a", "b", "c"), 2, 2, False),
        ("[[a]]\nb = 1\n[[a]]\nb = 1\nb = 2", ("a", 1, "b"), 4, 5, False),
        ("[a]\n[b]\n[a]", ("a",), 1, 3, True),
        ("a.b = 1\n[a]", ("a",), 1, 2, True),
        ("[[a]]\n[a]", ("a",), 1, 2, True),
        ("a = 1\n[a]", ("a",), 1, 2, False),
        ("a = []\n[[a]]", ("a",), 1, 2, False),
        ("a = 1\n[a.b]", ("a",), 1, 2, False),
    ],
)
def test_the_first_duplicate_has_its_path_and_both_lines(text, path, first, line, is_table):
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    assert duplicate(text) == Duplicate(path, first, line, is_table)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("hops = 2\nseeds = 9223372036854775808\n", 2), (f"hops = 2\n\nseeds = {'9' * 5000}\n", 3),
        ("a = [1,\n 0x8000000000000000]\n", 2), ("a = { b = -9223372036854775809 }\n", 1),
    ],
)  # fmt: skip
def test_a_whole_number_of_more_than_64_bits_is_refused_with_its_line(text, line):
    with pytest.raises(TooMuch, match="64 bits") as refused:
        parse(text)
    assert refused.value.line == line


def test_the_largest_whole_numbers_are_read():
    assert parse("a = 9223372036854775807\nb = -9223372036854775808\n")[0] == {"a": 2**63 - 1, "b": -(2**63)}
