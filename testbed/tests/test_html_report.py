"""The page of an experiment's folder and of a campaign's (`manet report --html`), from run directories with made-up metrics."""

import json
import re
from pathlib import Path

import pytest

from analysis.tests.markup import Outline, outline
from analysis.tests.test_report_page import HOLDS, UNDECIDED, write_answers
from analysis.tests.test_tables import make_run
from record import manifest
from record.errors import RunFileError
from testbed import __main__ as manet
from testbed.campaigns import html_report
from testbed.campaigns.html_report import HtmlReport
from testbed.errors import UsageError

EVIL = "</td><script>alert(1)</script>"
CAMPAIGN = {
    "format": "manet-campaign/1",
    "name": "papers",
    "resume": "./manet campaign papers --quick",
    "began": "2026-11-23T21:00:00+00:00",
    "ended": None,
    "experiments": ["my-own", "hv-fig1"],
    "size": "quick",
    "cluster": None,
    "rounds": [{"round": 1, "batches": 2, "runs": 4, "wall_s": 100.0, "emulated_s": 390.0}],
    "batches": [{"round": 1, "batch": 1, "jobs": [4, 16]}, {"round": 1, "batch": 2, "jobs": [8, 8]}],
    "wall_s": 100.0,
    "emulated_s": 390.0,
    "verdicts": {"valid": 3, "void": 1},
}


def make_experiment(folder: Path, name: str, hops: tuple[int, ...] = (1, 2), **more) -> Path:
    """A folder of results: a valid run for each number of hops, named in experiment.json."""
    cells = [{"name": f"ns2-hops{n}", "variant": "ns2", "axes": {"hops": n}, "profile": "period"} for n in hops]
    description = {
        "format": "manet-experiment/1", "name": name, "question": "How fast?", "source": "a paper", "figure": None,
        "published": "holland-vaidya_fig1", "ns2": "chain_static", "quick": True, "axes": {"hops": list(hops)},
        "variants": ["ns2"], "seeds": 1, "cells": cells, "expect": {},
        "resume": f"./manet run {name} --quick --set 'hops=[1, 2]' --set duration=5 --variant ns2 --out {folder} --resume",
    }  # fmt: skip
    for number, n in enumerate(hops, start=1):
        make_run(folder, "ns2", n, 1, 1200.0 / n)
        change(folder / f"ns2-hops{n}" / "seed-1" / "run.json", id=f"{number:016x}", commit="abcdef1")
        change(folder / f"ns2-hops{n}" / "seed-1" / "scenario.json", flows=[{"from": "sta1", "to": "sta2"}])
    (folder / "experiment.json").write_text(json.dumps(description | more))
    return folder


def change(path: Path, **entries) -> None:
    """Replace entries of a file of a run, whose metrics stay up to date."""
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))
    (path.parent / "metrics.json").touch()


def page_of(folder: Path) -> Outline:
    """The page of a folder, well formed and without anything that a browser would load."""
    found = outline(HtmlReport(folder).make().read_text())
    assert (found.problems, found.loaded) == ([], [])
    assert not any(link.startswith("/") for link in found.links)
    assert len(found.ids) == len(set(found.ids))
    return found


def test_an_experiments_page_has_its_figure_numbers_origin_and_commands(tmp_path):
    folder = make_experiment(tmp_path / "hv-fig1", "hv-fig1")
    found = page_of(folder)
    assert "svg" in found.tags and {"general.pdf", "general.png"} <= set(found.links)
    assert all((folder / link).exists() for link in found.links if not link.startswith("#"))
    for words in ("HV: TCP over mobile ad hoc networks", "How fast?", "published", "1463", "abcdef1", "2 valid"):
        assert words in found.text
    assert f"--variant ns2 --out {folder}" in found.text and "--resume" not in found.text  # nothing is missing
    assert "No experiment here states a question" in found.text


def test_a_campaigns_page_has_every_experiment_by_paper_and_its_pace(tmp_path):
    for name in ("hv-fig1", "my-own"):
        make_experiment(tmp_path / name, name)
    (tmp_path / "campaign.json").write_text(json.dumps(CAMPAIGN))
    found = page_of(tmp_path)
    assert found.text.index("HV: TCP") < found.text.index("Other experiments")
    assert {"hv-fig1/general.pdf", "my-own/general.pdf"} <= set(found.links)
    assert "100 s for 390 s on the air (3.9 emulated seconds a second)" in found.text
    assert "has not ended" in found.text and "./manet campaign papers --quick" in found.text
    for words in ("The command that goes on:", "2026-11-23 21:00:00 UTC", "runs side by side", "4 to 16", "3 valid, 1 void"):
        assert words in found.text
    assert all((tmp_path / link).exists() for link in found.links if not link.startswith("#"))


def test_a_campaign_without_a_batch_that_has_ended_has_no_pace_yet(tmp_path):
    make_experiment(tmp_path / "hv-fig1", "hv-fig1")
    nothing = {"rounds": [], "batches": [], "wall_s": 0.0, "emulated_s": 0.0, "verdicts": {"valid": 0, "void": 0}}
    (tmp_path / "campaign.json").write_text(json.dumps(CAMPAIGN | nothing))
    text = page_of(tmp_path).text
    assert "has not ended" in text and "wall time" not in text and "0 valid, 0 void" not in text


def test_the_answers_of_all_experiments_come_first(tmp_path):
    for name, answer in (("hv-fig1", HOLDS), ("wm-http", UNDECIDED | {"question": "Is Reno-F faster?"})):
        write_answers(make_experiment(tmp_path / name, name), answer)
    text = page_of(tmp_path).text
    first = text.index("ELFN carries more than Reno")
    assert first < text.index("Is Reno-F faster?") < text.index("HV: TCP over mobile ad hoc networks", first)
    assert "5.8 [−1.2, 10.4] %" in text and "would take about 140 pairs" in text  # noqa: RUF001
    assert (tmp_path / "hv-fig1" / "answers.pdf").exists()


def test_each_value_of_a_wide_table_has_its_heading_for_a_narrow_screen(tmp_path):
    folder = make_experiment(tmp_path, "hv-fig1")
    write_answers(folder, HOLDS, UNDECIDED)
    HtmlReport(tmp_path).make()
    text = (tmp_path / "report.html").read_text()
    tables = re.findall(r'<table class="wide">(.*?)</table>', text, re.DOTALL)
    assert len(tables) >= 3
    for table in tables:
        headings = [re.sub("<[^>]*>", "", one) for one in re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)]
        for row in re.findall(r"<tr>(.*?)</tr>", table.partition("</thead>")[2], re.DOTALL):
            cells = re.findall(r'<td data-label="([^"]*)"|<th scope="row"', row)
            assert [cell or heading for cell, heading in zip(cells, headings, strict=True)] == headings


def test_void_failed_missing_and_changed_runs_are_named_with_their_reasons(tmp_path):
    folder = make_experiment(tmp_path, "hv-fig1", hops=(1, 2, 3, 4, 5))
    runs = {n: folder / f"ns2-hops{n}" / "seed-1" for n in (1, 2, 3, 4)}
    change(runs[1] / "verdict.json", verdict="void", reasons=["8.1 % of deliveries were late"])
    change(runs[2] / "run.json", status="failed", error="iperf3 ended with status 1")
    manifest.write(runs[3])
    change(runs[3] / "scenario.json", hops=9)
    for path in sorted(runs[4].rglob("*"), reverse=True):
        path.unlink()
    runs[4].rmdir()
    text = page_of(folder).text
    for words in ("8.1 % of deliveries were late", "iperf3 ended with status 1", "scenario.json was changed", "left out",
                  "ns2-hops4/seed-1", "was never run", "1 valid, 1 void, 1 failed, 1 left out, 1 missing",
                  "Do what is missing:", "--resume"):  # fmt: skip
        assert words in text


def test_texts_of_an_experiment_are_escaped(tmp_path):
    folder = make_experiment(tmp_path, "x", question=EVIL, source=EVIL, resume=f"./manet run '{EVIL}' --out x --resume")
    change(folder / "ns2-hops1" / "seed-1" / "verdict.json", verdict="void", reasons=[EVIL])
    change(folder / "ns2-hops2" / "seed-1" / "run.json", commit=EVIL)
    found = page_of(folder)
    assert "script" not in found.tags
    assert found.text.count(EVIL) >= 5


@pytest.mark.parametrize(("content", "problem"), [("{", "is not JSON"), ("[]", 'is no "manet-experiment/1"')])
def test_an_experiment_that_cannot_be_read_is_named_and_the_others_are_there(tmp_path, content, problem):
    make_experiment(tmp_path / "hv-fig1", "hv-fig1")
    (make_experiment(tmp_path / "be-per", "be-per") / "experiment.json").write_text(content)
    report = HtmlReport(tmp_path)
    text = outline(report.make().read_text()).text
    assert f"{problem}; run again with --resume" in text and "hv-fig1" in text
    assert (list(report.problems), report.is_complete) == (["be-per"], False)


@pytest.mark.parametrize("edited", [{"name": 5}, {"seeds": "x"}, {"cells": 7}])
def test_an_experiment_with_values_of_another_type_is_named_with_the_key(tmp_path, edited):
    folder = make_experiment(tmp_path / "be-per", "be-per")
    change(folder / "experiment.json", **edited)
    report = HtmlReport(tmp_path)
    report.make()
    assert f'"{next(iter(edited))}" is' in report.problems["be-per"]


@pytest.mark.parametrize(
    "edited", [{"wall_s": "long"}, {"verdicts": 7}, {"experiments": "my"}, {"rounds": [5]}, {"time_limit": 1}]
)
def test_a_campaign_with_values_of_another_type_is_one_line(tmp_path, edited):
    make_experiment(tmp_path / "hv-fig1", "hv-fig1")
    (tmp_path / "campaign.json").write_text(json.dumps(CAMPAIGN | edited))
    with pytest.raises(RunFileError, match=rf'/campaign.json: "{next(iter(edited))}.*" is .*rewrites it'):
        HtmlReport(tmp_path).make()


def test_two_sizes_of_an_experiment_are_told_apart_on_one_page(tmp_path):
    for folder in ("hv-fig1", "hv-fig1-quick"):
        make_experiment(tmp_path / folder, "hv-fig1")
    found = page_of(tmp_path)  # which checks that no id is there twice
    assert "hv-fig1 (hv-fig1)" in found.text and "hv-fig1 (hv-fig1-quick)" in found.text


def test_answers_of_another_format_are_a_problem_on_the_page(tmp_path):
    (make_experiment(tmp_path, "hv-fig1") / "answers.json").write_text("{}")
    assert "is no manet-answers/1" in page_of(tmp_path).text


def test_a_folder_without_experiments_is_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"holds no experiment\.json, nor folders with one"):
        HtmlReport(tmp_path).make()


def test_the_command_prints_the_page_and_answers_programs(tmp_path, capsys):
    make_experiment(tmp_path, "hv-fig1")
    assert manet.main(["report", "--html", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"page      {tmp_path / 'report.html'}"
    assert manet.main(["report", "--html", "--json", str(tmp_path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["format"], answer["page"]) == (html_report.FORMAT, str(tmp_path / "report.html"))
    assert [one["experiment"] for one in answer["experiments"]] == ["hv-fig1"] and answer["problems"] == {}


def test_a_cell_is_run_again_with_the_campaigns_settings_and_its_own_axes(tmp_path):
    folder = make_experiment(tmp_path / "r", "hv-fig1")
    description = json.loads((folder / "experiment.json").read_text())
    first, second = html_report.cell_commands(folder, description)
    start = "./manet run hv-fig1 --quick --set duration=5 --set"
    assert (first.of, first.line) == ("ns2-hops1", f"{start} 'hops=[1]' --variant ns2 --out {folder}-ns2-hops1")
    assert second.line == f"{start} 'hops=[2]' --variant ns2 --out {folder}-ns2-hops2"


def test_a_cell_of_a_campaign_is_run_again_by_manet_run_outside_its_folder(tmp_path):
    folder = make_experiment(tmp_path / "c" / "hv-fig1", "hv-fig1")
    path = folder / "experiment.json"
    description = json.loads(path.read_text())
    options = "--max-pairs 4 --set duration=5 --time 2h --fresh --captures none"
    description["resume"] = f"./manet campaign hv rt --quick {options} --out {folder.parent}"
    path.write_text(json.dumps(description))
    first, _ = html_report.cell_commands(folder, description)
    expected = "./manet run hv-fig1 --quick --set duration=5 --set 'hops=[1]' --variant ns2"
    assert first.line == f"{expected} --out {tmp_path / 'c'}-hv-fig1-ns2-hops1"


def test_each_run_is_checked_once_for_tables_and_figures(tmp_path, monkeypatch):
    folder = make_experiment(tmp_path, "hv-fig1")
    for run in folder.glob("*/seed-1"):
        manifest.write(run)
    checked, difference = [], manifest.difference
    monkeypatch.setattr(manifest, "difference", lambda run: checked.append(run.parent.name) or difference(run))
    HtmlReport(folder).make()
    assert sorted(checked) == ["ns2-hops1", "ns2-hops2"]
