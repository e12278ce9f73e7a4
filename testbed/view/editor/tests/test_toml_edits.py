"""Changes of a text by paths: only the changed lines differ, and comments stay."""

import difflib
import tomllib

import pytest

from keys.errors import UsageError
from testbed.programs import ROOT
from testbed.view.editor.drawing import ORDER
from testbed.view.editor.toml_edits import pretty, with_elements, with_value, without

TEXT = """# head
topology = "positions"   # why
positions = [[0, 0], [200, 0], { name = "gw", at = [400, 0] }]  # m
flows = [
    { from = "sta1", to = "sta4" },   # first
    # about the second
    { from = "sta3", to = "sta4", traffic = "cbr", rate = 40960, bytes = 512, start = 3 },
]
mobility = { model = "schedule", moves = [
    # up
    { at = 5, station = "sta1", to = [0, 10] },
] }

# the first wire
[[wires]]   # to host1
station = "gw"
# its other end
host = "host1"  # name

# second wire
[[wires]]
station = "gw2"
host = "host1"
"""


def difference(before: str, after: str) -> list[str]:
    """The lines that differ."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


@pytest.mark.parametrize(
    ("path", "value", "lines"),
    [
        (("topology",), "chain", ['-topology = "positions"   # why', '+topology = "chain"   # why']),
        (("radio",), "dot11b-11m", ['+radio = "dot11b-11m"']),
        (("positions", 1), [3, 4], ["-" + TEXT.splitlines()[2], "+" + TEXT.splitlines()[2].replace("[200, 0]", "[3, 4]")]),
        (("positions", 2, "at", 0), 7, ["-" + TEXT.splitlines()[2], "+" + TEXT.splitlines()[2].replace("[400, 0]", "[7, 0]")]),
        (("flows", 0, "tcp"), "vegas", [
            '-    { from = "sta1", to = "sta4" },   # first', '+    { from = "sta1", to = "sta4", tcp = "vegas" },   # first',
        ]),
        (("mobility", "moves", 0, "speed"), 2.5, [
            '-    { at = 5, station = "sta1", to = [0, 10] },', '+    { at = 5, station = "sta1", to = [0, 10], speed = 2.5 },',
        ]),
        (("wires", 0, "host"), "h", ['-host = "host1"  # name', '+host = "h"  # name']),
        (("wires", 1, "rate"), 1000, ["+rate = 1000"]),
        (("sysctls", "net.ipv4.tcp_frto"), 0, ['+sysctls = { "net.ipv4.tcp_frto" = 0 }']),
    ],
)  # fmt: skip
def test_a_set_key_changes_its_own_line(path, value, lines):
    assert difference(TEXT, with_value(TEXT, path, value, ORDER)) == lines


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        (("topology",), ['-topology = "positions"   # why']),
        (("flows", 0), ['-    { from = "sta1", to = "sta4" },   # first']),
        (("flows", 1, "bytes"), [
            '-    { from = "sta3", to = "sta4", traffic = "cbr", rate = 40960, bytes = 512, start = 3 },',
            '+    { from = "sta3", to = "sta4", traffic = "cbr", rate = 40960, start = 3 },',
        ]),
        (("positions", 0), ["-" + TEXT.splitlines()[2], "+" + TEXT.splitlines()[2].replace("[0, 0], ", "")]),
        (("wires", 0), ["-[[wires]]   # to host1", '-station = "gw"', '-host = "host1"  # name']),
        (("wires", 1, "host"), ['-host = "host1"']),
    ],
)  # fmt: skip
def test_a_removed_key_takes_its_own_lines(path, lines):
    assert sorted(difference(TEXT, without(TEXT, path))) == sorted(lines)


def test_a_new_element_has_the_form_of_the_others():
    flow = {"from": "sta2", "to": "gw"}
    assert difference(TEXT, with_elements(TEXT, ("flows",), [flow])) == ['+    { from = "sta2", to = "gw" },']
    wire = with_elements(TEXT, ("wires",), [{"station": "sta1", "host": "h"}])
    assert wire.endswith('host = "host1"\n\n[[wires]]\nstation = "sta1"\nhost = "h"\n')
    fresh = with_elements("hops = 2\n\n# end\n[energy]\nidle_w = 1\n", ("flows",), [flow], ORDER)
    assert fresh.startswith('hops = 2\nflows = [\n    { from = "sta2", to = "gw" },\n]\n\n# end\n[energy]')


def test_many_elements_wrap_and_keep_the_comments_of_the_list():
    places = [[number, 0] for number in range(40)]
    text = with_elements("positions = [[9, 9]] # all\n", ("positions",), places)
    assert max(map(len, text.splitlines())) <= 100 and text.endswith("] # all\n")
    kept = with_elements("positions = [\n    [9, 9], # one\n]\n", ("positions",), places)
    assert "    [9, 9], # one\n" in kept and tomllib.loads(kept)["positions"] == [[9, 9], *places]


def test_a_new_key_stands_where_the_reference_has_it():
    text = with_value('hops = 2\ntcp = "vegas"\n', ("radio",), "dot11b-11m", ORDER)
    assert text == 'hops = 2\nradio = "dot11b-11m"\ntcp = "vegas"\n'
    assert with_value("", ("hops",), 2, ORDER) == "hops = 2\n"
    assert with_value("[scenario]\nseeds = 2\n", ("scenario", "hops"), 2, ORDER) == "[scenario]\nhops = 2\nseeds = 2\n"


def test_a_long_list_has_several_lines():
    text = pretty([[x, 0] for x in range(0, 4000, 100)], "positions")
    assert max(map(len, text.splitlines())) <= 100 and text.count("\n") == 6
    assert tomllib.loads(f"x = {text}")["x"] == [[x, 0] for x in range(0, 4000, 100)]


@pytest.mark.parametrize("path", [("hops", "x"), ("flows", 9, "to"), ("positions", 0, "at")])
def test_a_path_that_leads_nowhere_is_refused(path):
    with pytest.raises(UsageError, match="key"):
        with_value("hops = 2\nflows = []\npositions = [[0, 0]]\n", path, 1)


@pytest.mark.parametrize("path", sorted((ROOT / "experiments/scenarios").glob("*.toml")), ids=lambda path: path.stem)
def test_each_scenario_of_the_project_can_be_changed_and_changed_back(path):
    text = path.read_text()
    prefix = ("scenario",) if "[scenario]" in text else ()
    changed = with_value(text, (*prefix, "snaplen"), 256, ORDER)
    assert changed != text and without(changed, (*prefix, "snaplen")) == text
