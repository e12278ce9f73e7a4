"""The generated reference is complete: each verb, option and key, each row of measurements."""

import json
import re
import shutil
import subprocess

import pytest

from docs.site import claims, command_line, man_page, scenario_keys
from docs.site.repository import ROOT
from docs.site.table import cell, prose
from scenarios.json_schema import of_scenario
from testbed.__main__ import parser
from testbed.campaigns.experiment_schema import of_experiment
from testbed.commands import HIDDEN, VERBS


def rows_of(page, heading):
    """The first cells of the table below a heading."""
    part = page.split(f"## {heading}\n", 1)[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_and_option_is_on_the_page_of_the_command_line(verb):
    part = command_line.page().split(f"\n## {verb}\n", 1)[1].split("\n## ")[0]
    top = command_line.subcommands(parser())[verb]
    for one in [top, *command_line.subcommands(top).values()]:
        for action in command_line.options(one):
            for word in action.option_strings or [action.metavar or action.dest]:
                assert f"`{word}".replace("|", "\\|") in part, word
        assert one.format_usage().removeprefix("usage: ").strip() in part


def test_the_examples_of_a_verb_keep_their_lines():
    assert "\n./manet story results/chain5/all/seed-1 --segment 12\n" in command_line.page()


@pytest.mark.parametrize("of, page", [(of_scenario, scenario_keys.scenario_page), (of_experiment, scenario_keys.experiment_page)])
def test_each_key_of_each_table_is_on_the_page(of, page):
    schema, text = of(), page()
    shared = {} if of is of_scenario else of_scenario()["$defs"]
    tables = {name: table for name, table in schema["$defs"].items() if name not in (*shared, "scenario")}
    assert set(rows_of(text, "Top level")) >= set(schema["properties"]) - {"scenario", "base"}
    for name, table in tables.items():
        found = set(rows_of(text, scenario_keys.title(name, table)))
        wanted = set(table["properties"]) - set(shared["scenario"]["properties"] if name == "size" else ())
        assert found >= wanted, name


@pytest.mark.parametrize("page", [scenario_keys.scenario_page, scenario_keys.experiment_page])
def test_each_key_has_its_description_and_owner(page):
    cells = [re.split(r"(?<!\\)\|", line) for line in page().splitlines() if line.startswith("| `")]
    assert len(cells) > 25
    assert [row[1].strip() for row in cells if not (row[2].strip() and row[4].strip() and row[5].strip())] == []


def test_angle_brackets_are_escaped_outside_of_code():
    assert prose("`sta<i>` and <name>") == "`sta<i>` and &lt;name>"
    assert cell("a|b") == "a\\|b"


def test_unit_range_default_and_owner_of_a_key():
    page = scenario_keys.scenario_page()
    assert "| `duration` | s ≥ 0.1, ≤ 86400 | `30.0` |" in page
    aodv = page.split('## `routing`, protocol "aodv"')[1]
    row = next(line for line in aodv.splitlines() if line.startswith("| `hello_interval` |"))
    assert "| s > 0, ≤ 86400 | `1.0` |" in row and row.endswith("| `manet-aodv` |")


def test_each_format_has_a_page_of_the_site():
    nav = (ROOT / "mkdocs.yml").read_text()
    assert [path.name for path in (ROOT / "formats").glob("*.md") if f"formats/{path.name}" not in nav] == []


def test_the_counts_of_claims_add_up_to_the_rows():
    rows = [line for line in claims.ROWS.read_text().splitlines() if line.startswith("|")]
    measured = [line for line in rows if not line.startswith(("| claim |", "|---"))]
    total = claims.page().split("| **all** |")[1].splitlines()[0]
    numbers = [int(word) for word in re.findall(r"\d+", total)]
    assert numbers[-1] == sum(numbers[:-1]) == len(measured) > 40


def test_a_claim_that_was_not_met_is_listed_with_its_reason():
    unmet = [claim for claim in claims.read() if claim.kind == "not"]
    assert unmet and all(claims._linked(claim.answer) in claims.page() for claim in unmet)


@pytest.mark.parametrize(
    "answer, kind",
    [
        ("yes", "met"),
        ("yes, on 6.12", "part"),
        ("in part: to be repeated", "part"),
        ("first no, second yes", "part"),
        ("nearly", "part"),
        ("no: 4 %", "not"),
        ("not on one CPU", "not"),
        ("undecided; to be repeated", "open"),
        ("-", "none"),
    ],
)
def test_an_answer_is_counted_by_its_first_words(answer, kind):
    assert claims.Claim("Medium", "", "", answer).kind == kind


def test_a_row_with_too_few_columns_is_refused_by_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "ROWS", tmp_path / "validation.md")
    claims.ROWS.write_text(
        "## A\n\n| claim | command | measured | date | compared with | met? |\n|---|---|---|---|---|---|\n| a | b |\n"
    )
    with pytest.raises(ValueError, match="line 5: 2 columns"):
        claims.read()


def test_each_field_of_a_radio_is_on_its_page():
    schema = json.loads((ROOT / "formats" / "schema" / "radio.json").read_text())
    rules = schema["properties"]["rules"]["properties"]
    named = set(re.findall(r"^\| `([a-z_]+)` \|", (ROOT / "formats" / "radio.md").read_text(), re.MULTILINE))
    assert {*schema["properties"], *rules} - {"rules"} <= named


def test_each_verb_and_option_is_on_the_man_page_which_groff_formats_without_a_warning():
    page = man_page.page()
    for name, verb in command_line.subcommands(parser()).items():
        assert (f".SH MANET {name.upper()}\n" in page) == (name not in HIDDEN)
        for action in command_line.options(verb) if name not in HIDDEN else ():
            assert f"\\fB{man_page.roff(command_line.spelled(action))}\\fR\n" in page
    assert "./manet" not in page and "\nmanet run hv\\-fig1" in page.replace("\n  ", "\n")
    if (groff := shutil.which("groff")) is None:
        pytest.skip("groff: not found; apt-get install groff-base")
    formatted = subprocess.run([groff, "-man", "-Tascii", "-ww"], input=page, capture_output=True, text=True, check=True)
    assert formatted.stderr == "" and "`./setup.sh --guests` in a checkout" in formatted.stdout
