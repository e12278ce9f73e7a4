"""Lines of keys: checked against what tomllib reads, so that the locator cannot lose its way unnoticed."""

import tomllib

from scenarios.toml_lines import line_of, locate

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


def test_lines_are_where_the_keys_stand():
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


def test_a_path_without_a_line_takes_that_of_what_is_around_it():
    assert line_of(locate(TEXT), ("items", 1, "nowhere")) == 19
    assert line_of(locate(TEXT), ("nowhere",)) is None
