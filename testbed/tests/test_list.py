"""`manet list`: every name of every kind, with the line that stands where it is defined."""

import json
import re
import tomllib

import pytest

from mobility.models import MODELS
from scenarios.layout import LAYOUT_KEYS
from scenarios.routing import PRESETS, PROTOCOLS
from testbed import __main__ as manet
from testbed import catalogue
from testbed.programs import ROOT
from topologies.layouts import LAYOUTS

SECTIONS = [section.name for section in catalogue.SECTIONS]


def printed(capsys, *arguments):
    assert manet.main(["list", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("section", catalogue.SECTIONS, ids=SECTIONS)
def test_every_entry_has_a_name_and_a_line(section):
    entries = section.entries()
    assert len(entries) == len({entry.name for entry in entries}) > 1
    for entry in entries:
        assert entry.name and entry.summary and "\n" not in entry.summary, entry


def test_names_are_those_that_scenarios_take():
    names = {section.name: {entry.name for entry in section.entries()} for section in catalogue.SECTIONS}
    assert names["experiments"] == {path.stem for path in (ROOT / "experiments").glob("*.toml")}
    assert names["topologies"] == set(LAYOUT_KEYS) == set(LAYOUTS)
    assert names["routing"] == {*PROTOCOLS, *PRESETS}
    assert names["mobility"] >= {*MODELS, "static", "file"}
    assert {"bulk", "cbr"} <= names["traffic"]
    assert {"two-ray", "shadowing"} <= names["propagation"]


def test_lines_come_from_the_definitions(capsys):
    text = printed(capsys, "experiments", "scenarios", "radios", "topologies", "routing")
    question = tomllib.loads((ROOT / "experiments/hv-fig1.toml").read_text())["question"]
    assert f"  hv-fig1           {question}\n" in text
    assert "  chain             " not in text  # each section has its own column
    assert re.search(r"^  dot11a-54m +802\.11a at a fixed 54 Mbit/s in the 5 GHz band$", text, re.MULTILINE)
    assert "  chain      `hops` + 1 stations on a line, neighbours `spacing_m` apart\n" in text
    assert "  cross4            Two TCP connections that cross in the middle station of two four-hop chains\n" in text
    assert "  adv-30-1    adv with buffer_tcp = 30, buffer_udp = 1\n" in text
    assert "  batmand     B.A.T.M.A.N. III by batmand, Debian's package of that name" in text


def test_without_a_section_all_names_are_printed_with_their_number(capsys):
    text = printed(capsys)
    for section in catalogue.SECTIONS:
        entries = section.entries()
        assert f"{section.name} ({len(entries)}): {section.usage}\n" in text
        assert all(entry.name in text for entry in entries)
    assert text.index("hv-fig9") < text.index("hv-fig10")


def test_json_has_all_sections_or_the_chosen_ones(capsys):
    answer = json.loads(printed(capsys, "--json"))
    assert answer["format"] == "manet-list/1" and list(answer["sections"]) == SECTIONS
    answer = json.loads(printed(capsys, "tcp", "--json"))
    assert {"name": "newreno", "summary": tomllib.loads((ROOT / "kernel-tcp/names/newreno.toml").read_text())["summary"]} in (
        answer["sections"]["tcp"]
    )


def test_a_section_that_does_not_exist_is_refused(capsys):
    assert manet.main(["list", "radio"]) == 2
    assert capsys.readouterr().err == 'manet list: "radio" is not a section; did you mean "radios"?\n'
    assert manet.main(["list", "xyz"]) == 2
    assert capsys.readouterr().err == f'manet list: "xyz" is not a section; use one of {", ".join(SECTIONS)}\n'


def test_help_names_every_section(capsys):
    with pytest.raises(SystemExit):
        manet.main(["list", "--help"])
    text = capsys.readouterr().out
    assert all(f"{section}" in text.partition("sections: ")[2] for section in SECTIONS)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A chain. It has hops.", "A chain"),
        ("B.A.T.M.A.N. III by batmand: UDP 4305.\n\nMore.", "B.A.T.M.A.N. III by batmand: UDP 4305"),
        ("In the form of Camp,\nsection 2.5.\n", "In the form of Camp, section 2.5"),
        ("Constant bit rate, as a program: `cbr.py send ...` and more.", "Constant bit rate, as a program"),
    ],
)
def test_the_first_sentence_is_cut_at_its_end(text, wanted):
    assert catalogue.first_sentence(text) == wanted


def test_the_comment_of_a_file_ends_at_its_first_empty_line():
    assert catalogue.first_comment("# One,\n# two.\n#\n# Three.\nkey = 1\n") == "One,\ntwo."
    assert catalogue.first_comment("key = 1\n# One.\n") == ""
