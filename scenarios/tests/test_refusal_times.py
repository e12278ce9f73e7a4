"""A refusal takes at most a second of processor time, however large or deep the definition is."""

import time
from pathlib import Path

import pytest

from keys import toml_lines
from keys.errors import UsageError
from keys.toml_lines import MAX_KEYS, MAX_PARTS, TooMuch, locate
from scenarios.definition import load_scenario
from scenarios.toml_file import MAX_FILE_BYTES

MAX_CPU_S = 5.0  # a generous second; without the limits each of these takes 7 s or more
EVENT = '{at=1,power="sta1",on=true},'
FLOW = '{from="sta1",to="sta2"},'
LARGE = {
    "100000 unknown keys": (
        "".join(f"k{number}=1\n" for number in range(100_000)),
        f"line {MAX_KEYS + 1}: is one key more than the {MAX_KEYS} that a table may have",
    ),
    "100000 tables": ("".join(f"[t{number}]\n" for number in range(100_000)), "is one key more than"),
    "100000 flows": (f"flows=[{FLOW * 100_000}]\n", f"has 2400016 bytes, of at most {MAX_FILE_BYTES}; shorten it"),
    "all flows that a file can have": (f"flows=[{FLOW * 30_000}]\n", 'key "flows": has 30000 entries; give at most 10000'),
    "a misspelt key in each flow": (f"flows=[{FLOW.replace('to', 'tu') * 30_000}]\n", 'key "flows.0.tu": unknown key'),
    "events": (f"events=[{EVENT * 30_000}]\n", 'key "events": has 30000 entries; give at most 10000'),
    "positions": (f"positions=[{'[1,2],' * 30_000}]\n", 'key "positions": has 30000 entries; give at most 2000'),
    "a list of 170000 entries": (f"positions=[{'[1,2],' * 170_000}]\n", "line 2: a list has more than 30000 entries; shorten it"),
    "a key of 20000 parts": (".".join(["a"] * 20_000) + "=1\n", f"line 2: a dotted key has more than {MAX_PARTS} parts"),
    "a table of 20000 parts": (f"[{'.'.join(['a'] * 20_000)}]\n", f"line 2: a dotted key has more than {MAX_PARTS} parts"),
    "an inline key of 20000 parts": (f"routing={{{'.'.join(['a'] * 20_000)}=1}}\n", "line 2: a dotted key has more than"),
    "comments": ("# x\n" * 200_000 + "z=1\n", "line 200002: "),
}


@pytest.mark.parametrize("case", LARGE)
def test_a_large_definition_is_refused_at_once(tmp_path: Path, case: str) -> None:
    text, refusal = LARGE[case]
    path = tmp_path / "x.toml"
    path.write_text(f"hops=1\n{text}")
    begin_s = time.process_time()
    with pytest.raises(UsageError) as caught:
        load_scenario(path)
    assert refusal in str(caught.value) and "\n" not in str(caught.value)
    assert time.process_time() - begin_s < MAX_CPU_S


@pytest.mark.parametrize("setting", [f"{'a.' * 20_000}a=1", f"routing={{{'a.' * 20_000}a=1}}"])
def test_a_deep_setting_is_refused_at_once(tmp_path: Path, setting: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text("hops=1\n")
    with pytest.raises(UsageError, match=f"a dotted key has more than {MAX_PARTS} parts; no key needs more than five"):
        load_scenario(path, [setting])


class Counted(str):
    """A text that adds up the characters in which line ends were counted."""

    looked_at = 0

    def count(self, part: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        Counted.looked_at += (len(self) if end is None else end) - start
        return super().count(part, start, end)


def test_lines_are_counted_once() -> None:
    text = Counted("a = [\n" + "1,\n" * 5000 + "]\n")
    assert locate(text)[("a", 4999)] == 5001
    assert Counted.looked_at <= len(text)


@pytest.mark.parametrize("text", ["a = 'x", 'a = "x', "a = [}", "a = [1,", "a = {b", "[a", "= 1", "a", "\\", "a = [,]"])
def test_text_that_is_no_toml_has_no_lines(text: str) -> None:
    assert set(locate(text)) <= {("a",)}


def test_the_limits_are_those_of_a_table_and_a_key() -> None:
    assert len(locate("".join(f"k{number} = 1\n" for number in range(MAX_KEYS)))) == MAX_KEYS
    assert len(locate(f"{'.'.join(f'a{part}' for part in range(MAX_PARTS))} = 1")) == MAX_PARTS
    with pytest.raises(TooMuch, match=toml_lines.TOO_MANY_PARTS):
        locate(f"a{'.a' * MAX_PARTS} = 1")
