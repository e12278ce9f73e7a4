"""The page of the papers' claims: its numbers follow from kept rows, then from committed tables, and the others are marked."""

import json
import random

import pytest

from analysis.decisions.answers import answers_of
from analysis.digits import rounded
from analysis.kept_rows import KeptRow, merged, write
from analysis.tables import METRICS, mean_and_interval
from testbed import __main__ as manet
from testbed.campaigns import kept
from testbed.campaigns.experiment import load
from testbed.campaigns.library import find
from testbed.campaigns.request import Request
from testbed.claims import page, source
from testbed.claims.numbers import NONE, ROWS, TABLES, Numbers
from testbed.errors import UsageError

NAME = "hv-fig12"
QUESTION = "Probes every 30 s carry less than plain Reno"
HEAD = 'title = "T"\nhead = "H"\n[[papers]]\nheading = "P"\n[[papers.claims]]\nclaim = "C"\nholds = "yes"\n'


@pytest.fixture
def results(tmp_path):
    """A folder of results with rows of hv-fig12 (quick): 24 movements, in which probes every 30 s cost some 200 kbit/s."""
    experiment, draw = load(find(NAME), Request(quick=True)), random.Random(1)
    rows = [
        KeptRow(
            cell.identity, seed, "valid", {"variant": cell.variant, **{axis: str(value) for axis, value in cell.axes.items()}},
            {"acked_kbps": round(600 - 200 * (cell.variant == "elfn-30s") + draw.gauss(0, 5), 3)}, 60.0,
        )
        for cell in experiment.cells for seed in range(1, 25)
    ]  # fmt: skip
    folder = tmp_path / "results"
    write(kept.file_of(NAME, folder), merged(rows))
    return folder


def written(path, measured, numbers=""):
    path.write_text(f"{HEAD}measured = {json.dumps(measured)}\n[papers.claims.numbers]\n{numbers}\n")
    return path


def test_the_committed_page_is_what_the_command_writes():
    made = page.make()
    assert source.PAGE.read_text() == made.text(), "docs/claims.md is not of claims.toml and the rows; ./manet report --claims"
    assert made.sources.total() > 100


def test_the_command_writes_the_page_and_counts_its_numbers(monkeypatch, tmp_path, results, capsys):
    monkeypatch.setattr(page, "SOURCE", written(tmp_path / "c.toml", "{|4 points}"))
    monkeypatch.setattr(page, "PAGE", tmp_path / "claims.md")
    assert manet.main(["report", "--claims"]) == 0
    assert "1 numbers: 0 from kept rows, 0 from tables of means, 1 not recomputable" in capsys.readouterr().out
    assert "| C | yes | 4 points† |" in (tmp_path / "claims.md").read_text()
    assert manet.main(["report"]) == 2
    assert manet.main(["report", str(tmp_path), "--claims"]) == 2


def test_an_interval_is_that_of_the_campaign_with_these_runs(tmp_path, results):
    number = f'a = {{ experiment = "{NAME}", question = "{QUESTION}" }}'
    made = page.make(written(tmp_path / "c.toml", "{a|old} kbit/s, {a.end|old}, {a.answer}", number), Numbers(results))
    description = json.loads(load(find(NAME), Request(quick=True)).to_json())
    (answer,) = [
        each
        for each in answers_of(description, Numbers(results).load(NAME, "quick").runs)
        if each.asked.question.question == QUESTION
    ]
    found = answer.answer
    mean, low, high = (rounded(value, "+") for value in (found.mean, found.low, found.high))
    expected = f"{mean} [{low}, {high}] kbit/s, {found.pairs} pairs, holds |"
    assert found.mean < -190
    assert f"| C | yes | {expected}" in made.text()
    assert made.sources == {ROWS: 3}


def test_without_rows_of_this_scenario_the_old_text_stands_with_a_mark(tmp_path, results):
    path = kept.file_of(NAME, results)
    path.write_text("\n".join(f"x{line}" if number else line for number, line in enumerate(path.read_text().splitlines())) + "\n")
    number = f'a = {{ experiment = "{NAME}", question = "{QUESTION}" }}'
    made = page.make(written(tmp_path / "c.toml", "{a|-98 [-183, -12]} kbit/s, {a.pairs|21} pairs", number), Numbers(results))
    assert "| -98 [-183, -12]† kbit/s, 21 pairs |" in made.text()
    assert made.sources == {NONE: 2}


def test_a_mean_and_a_paired_difference_are_of_rows_before_tables(tmp_path, results):
    (results / NAME / "summary.csv").write_text("speed,variant,metric,mean,ci95,n\n20,reno,acked_kbps,1,0.5,6\n")
    head = "where,compared,with,metric,difference,ci95,percent,seeds\n"
    (results / NAME / "pairs.csv").write_text(f"{head}20,elfn-2s,reno,acked_kbps,-7,3,-1.2,6\n")
    numbers = (
        f'm = {{ experiment = "{NAME}", mean = "acked_kbps", where = {{ variant = "reno" }}, digits = 1 }}\n'
        f'p = {{ experiment = "{NAME}", pair = "acked_kbps", compared = "elfn-2s", with = "reno", where = {{ speed = 20 }} }}\n'
    )
    claims = written(tmp_path / "c.toml", "{m.interval} and {p} ({p.percent})", numbers)
    runs = [run["acked_kbps"] for run in Numbers(results).load(NAME, "quick").runs if run["variant"] == "reno"]
    found = mean_and_interval(runs)
    made = page.make(claims, Numbers(results))
    assert f"{found['mean']:.1f} ±{found['ci95']:.1f} and " in made.text()
    assert made.sources == {ROWS: 3}
    kept.file_of(NAME, results).unlink()
    made = page.make(claims, Numbers(results))
    assert "| 1.0 ±0.5‡ and -7 ±3‡ (-1 %) |" in made.text()
    assert made.sources == {TABLES: 3}


@pytest.mark.parametrize(
    ("measured", "numbers", "wrong"),
    [
        ("{a}", "", 'there is no number "a"; define it'),
        ("{|}", "", "has no value"),
        ("{a.median}", f'a = {{ experiment = "{NAME}", question = "{QUESTION}" }}', "has no value"),
        ("1", f'a = {{ experiment = "{NAME}", question = "{QUESTION}" }}', 'does not show its number "a"'),
        ("{a|1}", f'a = {{ experiment = "{NAME}", question = "Probes help" }}', '0 questions "Probes help" where'),
        ("{a|1}", f'a = {{ experiment = "{NAME}", mean = "percent", where = {{ variant = "elfn" }} }}', "0 cells where"),
        ("{a|1}", f'a = {{ experiment = "{NAME}", means = "percent" }}', "papers.0.claims.0.numbers.a"),
        ("{a|1}", 'a = { experiment = "hv-fig99", mean = "percent" }', "hv-fig99"),
    ],
)
def test_a_number_that_cannot_be_shown_is_named(tmp_path, results, measured, numbers, wrong):
    with pytest.raises(UsageError) as refused:
        page.make(written(tmp_path / "c.toml", measured, numbers), Numbers(results)).text()
    assert wrong in str(refused.value)


def test_rows_keep_every_metric_that_the_claims_show():
    measured = [dict.fromkeys(METRICS, 1.0)]
    numbers = [number for paper in source.read().papers for claim in paper.claims for number in claim.numbers.values()]
    shown = {(each.experiment, getattr(each, "mean", None) or getattr(each, "pair", None)) for each in numbers}
    for name, metric in sorted(pair for pair in shown if pair[1]):
        description = json.loads(load(find(name), Request(quick=True)).to_json())
        assert metric in kept.metrics_of(description, measured), f"{name}: rows have no {metric}"
