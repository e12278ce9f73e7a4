"""The page of the papers' claims: each claim's state and numbers follow from kept rows, then from committed tables, and the
others are marked."""

import json
import random
import re
from dataclasses import replace
from functools import cache

import pytest

from analysis.decisions.answers import answers_of, schedule
from analysis.decisions.pairs import pairs
from analysis.tables.digits import rounded
from analysis.tables.kept_rows import KeptRow, merged, read, write
from analysis.tables.results import METRICS, mean_and_interval
from testbed import __main__ as manet
from testbed.campaigns import kept
from testbed.campaigns.experiment import load
from testbed.campaigns.library import find, names
from testbed.campaigns.request import Request
from testbed.claims import eras, page, source, verdicts
from testbed.claims.numbers import NONE, ROWS, TABLES, Numbers, agrees
from testbed.errors import UsageError

NAME = "hv-fig12"
SLOW = "Probes every 30 s carry less than plain Reno"
RENO = 'where = { variant = "reno", speed = 10 }'
FAST = "Probes every 2 s carry more than plain Reno"
HEAD = 'title = "T"\nhead = "H"\n[[papers]]\nshort = "P"\nheading = "Paper"\n'
MOVEMENTS = 24


@cache
def described(name):
    return load(find(name), Request(quick=True))


@cache
def committed():
    """The page of docs/claims.toml, which takes the loading of all experiments."""
    return page.make()


def rows_of(name, value, seeds=MOVEMENTS):
    """A row for each cell and seed; `value` has the metrics by cell and seed."""
    return merged([
        KeptRow(
            cell.identity, seed, "valid",
            {"variant": cell.variant or ""} | {axis: str(value) for axis, value in cell.axes.items()}, value(cell, seed), 60.0,
        )
        for cell in described(name).cells for seed in range(1, seeds + 1)
    ])  # fmt: skip


@pytest.fixture
def results(tmp_path):
    """A folder of results with rows of hv-fig12 (quick): 24 movements, in which probes every 30 s cost some 200 kbit/s, and
    those every 2 s nothing. The rows have no metric but one."""
    draw = random.Random(1)
    folder = tmp_path / "results"
    write(
        kept.file_of(NAME, folder),
        rows_of(NAME, lambda cell, _: {"acked_kbps": round(600 - 200 * (cell.variant == "elfn-30s") + draw.gauss(0, 5), 3)}),
    )
    return folder


def written(path, *claims):
    """A file of claims: the TOML of each, without its text."""
    texts = [f'[[papers.claims]]\nclaim = "C{number}"\nof = "figure"\n{claim}\n' for number, claim in enumerate(claims, 1)]
    path.write_text(HEAD + "".join(texts))
    return path


def of_note(note, numbers="", answers=""):
    answers = answers or f'answers = [{{ experiment = "{NAME}", question = "{SLOW}" }}]'
    return f"{answers}\nnote = {json.dumps(note)}\n[papers.claims.numbers]\n{numbers}\n"


def one(tmp_path, results, claim):
    """The state of one claim."""
    (paper,) = source.read(written(tmp_path / "c.toml", claim)).papers
    return verdicts.verdict(paper.claims[0], Numbers(results))


def test_the_committed_page_is_what_the_command_writes():
    made = committed()
    assert page.PAGE.read_text() == made.text(), "docs/claims.md is not of claims.toml and the rows; ./manet report --claims"
    assert made.sources.total() > 40


def test_the_command_writes_the_page_and_counts_its_numbers(monkeypatch, tmp_path, capsys):
    claims = written(tmp_path / "c.toml", 'cannot = "no such metric"\nnote = "{|4 points}"')
    monkeypatch.setattr(page, "SOURCE", claims)
    monkeypatch.setattr(page, "PAGE", tmp_path / "claims.md")
    monkeypatch.setattr(eras, "write", lambda: "")
    assert manet.main(["report", "--claims"]) == 0
    assert "1 numbers: 0 from kept rows, 0 from tables of means, 1 not recomputable" in capsys.readouterr().out
    assert "| P 1 | C1 (figure) | cannot be | no such metric. 4 points† |" in (tmp_path / "claims.md").read_text()
    assert manet.main(["report"]) == 2
    assert manet.main(["report", str(tmp_path), "--claims"]) == 2


def test_every_claim_of_the_catalogue_names_what_the_experiments_have():
    claims, numbers = source.read(), committed().numbers
    for paper in claims.papers:
        for claim in paper.claims:
            verdicts.verdict(claim, numbers)  # UsageError for an experiment, question or cell that does not exist
    assert {answer.experiment for answer in claims.of(source.Asked)} <= set(names())
    assert sum(not claim.ours for paper in claims.papers for claim in paper.claims) > 100


def test_every_question_of_a_paper_is_asked_by_a_claim():
    asked = {(answer.experiment, answer.question) for answer in source.read().of(source.Asked)}
    papers = [name for name in names() if name.split("-")[0] in ("hv", "be", "rt", "im", "wm") and name != "hv-eras"]
    known = {(name, question.question) for name in papers for question in described(name).questions}
    assert known - asked == set()


def test_no_claim_compares_anew_what_a_question_compares():
    """One comparison has one answer: that of the question."""
    asked = {
        (name, each.asked.question.metric, frozenset(tuple(cell.items()) for cell in each.asked.cells))
        for name in names() for each in committed().numbers.load(name, "quick").answers if isinstance(each.asked.base, dict)
    }  # fmt: skip
    for between in source.read().of(source.Between):
        if between.compared.experiment == between.base.experiment and between.compared.size == "quick":
            sized = committed().numbers.load(between.compared.experiment, "quick")
            cells = frozenset(
                tuple(cell.items()) for chosen in (between.compared, between.base) for cell in sized.cells
                if agrees(cell, chosen.where)
            )  # fmt: skip
            assert len(cells) == 2
            assert (between.compared.experiment, between.metric, cells) not in asked, (between.compared, between.base)


def test_every_margin_has_a_reason():
    for name in names():
        for question in described(name).questions:
            reason = verdicts.reason_of(name, question.question)
            assert len(reason) > 20, (
                f'{name}: "{question.question}": say behind `matters` why a smaller difference does not matter'
            )


def test_an_interval_is_that_of_the_campaign_with_these_runs(tmp_path, results):
    made = one(tmp_path, results, f'answers = [{{ experiment = "{NAME}", question = "{SLOW}" }}]')
    runs = Numbers(results).load(NAME, "quick").runs
    found = [
        each for each in answers_of(json.loads(described(NAME).to_json()), runs) if each.asked.question.question == SLOW
    ]  # fmt: skip
    assert (made.state, made.holds) == ("decided", "yes")
    assert len(made.parts) == len(found) == len(described(NAME).axes["speed"])
    for part, each in zip(made.parts, found, strict=True):
        mean, low, high = (rounded(value, "+") for value in (each.answer.mean, each.answer.low, each.answer.high))
        percent = 100 * each.answer.mean / each.means[1]
        assert part.text.startswith(f"{mean} [{low}, {high}] kbit/s ({percent:+.0f} %), {each.answer.pairs} pairs")
        assert part.label == f"{each.asked.where['speed']:g} m/s"


def test_an_open_question_says_how_many_pairs_would_decide(tmp_path, results):
    made = one(tmp_path, results, f'answers = [{{ experiment = "{NAME}", question = "{FAST}", where = {{ speed = 10 }} }}]')
    (part,) = made.parts
    assert (made.state, made.holds, part.verdict) == ("undecided", "undecided", "undecided")
    assert made.needed == part.needed > MOVEMENTS
    assert part.text.endswith(f"some {made.needed} would decide")


@pytest.mark.parametrize("name", [NAME, "hv-fig3"])
@pytest.mark.parametrize("verdict", ["suspect", "void", "failed"])
def test_a_run_that_is_not_valid_costs_its_pair_and_no_later_one(tmp_path, results, name, verdict):
    """Wherever its row is kept: in the experiment's own file, or in that of another with the same scenario."""
    rows = read(kept.file_of(NAME, results))
    write(kept.file_of(NAME, results), [row for row in rows if row.seed != 7])
    write(
        kept.file_of(name, results),
        merged(read(kept.file_of(name, results)), [replace(row, verdict=verdict) for row in rows if row.seed == 7]),
    )
    (part,) = one(
        tmp_path, results, f'answers = [{{ experiment = "{NAME}", question = "{FAST}", where = {{ speed = 10 }} }}]'
    ).parts
    looks = [seeds for seeds in schedule(described(NAME).seeds, 80) if seeds <= MOVEMENTS]
    assert f"{looks[-1] - 1} pairs" in part.text


def test_a_claim_of_several_answers_holds_if_all_do(tmp_path, results):
    slow, fast = (f'{{ experiment = "{NAME}", question = "{text}" }}' for text in (SLOW, FAST))
    level = f'{{ experiment = "{NAME}", mean = "acked_kbps", where = {{ variant = "reno", speed = 10 }}, LIMIT }}'
    above, below = level.replace("LIMIT", "least = 200"), level.replace("LIMIT", "most = 200")
    for answers, state, holds in [
        ([slow, above], "decided", "yes"), ([slow, below], "decided", "in part"), ([below], "decided", "no"),
        ([slow, fast], "undecided", "undecided"), ([below, fast], "decided", "not everywhere"),
    ]:  # fmt: skip
        made = one(tmp_path, results, f"answers = [{', '.join(answers)}]")
        assert (made.state, made.holds) == (state, holds), answers


def test_without_rows_nothing_is_decided(tmp_path, results):
    kept.file_of(NAME, results).unlink()
    made = one(tmp_path, results, f'answers = [{{ experiment = "{NAME}", question = "{SLOW}" }}]')
    assert (made.state, made.needed, {part.text for part in made.parts}) == ("undecided", None, {"no rows yet"})


def test_rows_of_another_scenario_decide_nothing(tmp_path, results):
    path = kept.file_of(NAME, results)
    path.write_text("\n".join(f"x{line}" if number else line for number, line in enumerate(path.read_text().splitlines())) + "\n")
    assert one(tmp_path, results, f'answers = [{{ experiment = "{NAME}", question = "{SLOW}" }}]').state == "undecided"


def test_two_cells_of_two_experiments_are_compared_seed_by_seed(tmp_path, results):
    write(kept.file_of("hv-fig13", results), rows_of("hv-fig13", lambda cell, seed: {"acked_kbps": 300.0 + seed}))
    places = [f'{{ experiment = "{name}", where = {{ variant = "reno", speed = 10 }} }}' for name in ("hv-fig13", NAME)]
    text = 'answers = [{{ metric = "acked_kbps", claim = "{}", compared = {}, with = {}, matters = 20, reason = "r" }}]'
    for claim, state, holds in [("less", "decided", "yes"), ("more", "decided", "no"), ("same", "decided", "no")]:
        made = one(tmp_path, results, text.format(claim, *places))
        assert (made.state, made.holds) == (state, holds)
    assert re.fullmatch(r"-28\d \[-\d+, -\d+\] kbit/s \(-48 %\), 24 pairs", made.parts[0].text)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ('where = { variant = "reno", speed = 10 }, above = 500', "yes"),
        ('where = { variant = "reno", speed = 10 }, below = 500', "no"),  # none of 24
        ('where = { variant = "reno", speed = 10 }, below = 500, never = true', "yes"),
        ('where = { variant = "reno", speed = 10 }, above = 500, never = true', "no"),
        ('where = { speed = 10 }, compared = "elfn-30s", with = "reno", below = -150', "yes"),
        ('where = { speed = 10 }, compared = "elfn-30s", with = "reno", above = 0', "no"),
    ],
)
def test_single_runs_and_pairs_show_that_something_happens(tmp_path, results, condition, holds):
    made = one(tmp_path, results, f'answers = [{{ experiment = "{NAME}", some = "acked_kbps", {condition} }}]')
    assert (made.state, made.holds) == ("decided", holds)
    few = rows_of(NAME, lambda *_: {"acked_kbps": 600.0}, seeds=5)
    write(kept.file_of(NAME, results), few)
    never = one(tmp_path, results, f'answers = [{{ experiment = "{NAME}", some = "acked_kbps", below = 500, WHERE }}]'.replace(
        "WHERE", 'where = { variant = "reno", speed = 10 }'))  # fmt: skip
    assert never.state == "undecided", "five runs without a case do not show that there is none"


def test_a_committed_table_answers_without_rows_and_is_marked(tmp_path, results):
    kept.file_of(NAME, results).unlink()
    head = "where,compared,with,metric,difference,"
    answer = f'answers = [{{ experiment = "{NAME}", question = "{SLOW}", where = {{ speed = 10 }}, table = "pairs.csv" }}]'
    for columns, values, state in [
        ("ci95", "40", "decided"), ("ci95", "140", "undecided"), ("low,high,method", "-140,-60,student-t", "decided"),
        ("ci95", "0", "undecided"),  # equal differences of a few runs
    ]:  # fmt: skip
        (results / NAME / "pairs.csv").write_text(f"{head}{columns}\n10,elfn-30s,reno,acked_kbps,-100,{values}\n")
        assert one(tmp_path, results, answer).state == state, (columns, values)
    (results / NAME / "pairs.csv").write_text(f"{head}low,high,method\n10,elfn-30s,reno,acked_kbps,-100,-140,-60,student-t\n")
    made = page.make(written(tmp_path / "c.toml", answer), Numbers(results))
    assert "| yes | -100 [-140, -60] kbit/s‡ (" in made.text()
    assert made.sources == {TABLES: 1}


def test_a_mean_and_a_paired_difference_are_of_rows_before_tables(tmp_path, results):
    (results / NAME / "summary.csv").write_text("speed,variant,metric,mean,ci95,n\n10,reno,acked_kbps,1,0.5,6\n")
    head = "where,compared,with,metric,difference,ci95,percent,seeds\n"
    (results / NAME / "pairs.csv").write_text(
        f"{head}10,elfn-4s,reno,acked_kbps,-7,3,-1.2,6\n10,elfn-2s,reno,acked_kbps,-7,3,1,6\n"
    )
    numbers = (
        f'm = {{ experiment = "{NAME}", mean = "acked_kbps", where = {{ variant = "reno", speed = 10 }}, digits = 1 }}\n'
        f'p = {{ experiment = "{NAME}", pair = "acked_kbps", compared = "elfn-2s", with = "reno", where = {{ speed = 10 }} }}\n'
    )
    claims = written(tmp_path / "c.toml", of_note("{m.interval} and {p}, {p.pairs}", numbers))
    sized = Numbers(results).load(NAME, "quick")
    mean = mean_and_interval([run["acked_kbps"] for run in sized.runs if run["variant"] == "reno" and run["speed"] == 10])
    (pair,) = [
        each for each in pairs(sized.runs, ("speed",), "variant", "reno", ("acked_kbps",), ["elfn-2s"], sized.answers)
        if each.where == "10"
    ]  # fmt: skip
    text = page.make(claims, Numbers(results)).text()
    usual = f"{rounded(pair.difference, '+')} [{rounded(pair.answer.low, '+')}, {rounded(pair.answer.high, '+')}]"
    assert f"{mean['mean']:.1f} ±{mean['ci95']:.1f} and {usual}, {pair.seeds} |" in text
    kept.file_of(NAME, results).unlink()
    made = page.make(claims, Numbers(results))
    assert "1.0 ±0.5‡ and -7 [-10, -4]‡, " in made.text()


def test_the_first_table_counts_all_claims(tmp_path, results):
    asked = f'answers = [{{ experiment = "{NAME}", question = "QUESTION", where = {{ speed = 10 }} }}]'
    made = page.make(
        written(
            tmp_path / "c.toml", asked.replace("QUESTION", SLOW), asked.replace("QUESTION", FAST), 'cannot = "why"',
            asked.replace("QUESTION", SLOW) + "\nours = true",
        ),
        Numbers(results),
    )  # fmt: skip
    needed = next(part for part in one(tmp_path, results, asked.replace("QUESTION", FAST)).parts).needed
    text = made.text()
    assert f"| P | 3 | 1 | 1 | 0 | 0 | 1 | {needed} | 1 |" in text
    assert f"| all papers | 3 | 1 | 1 | 0 | 0 | 1 | {needed} | 1 |" in text
    assert f"| {page.OURS} | 1 | 1 | 1 | 0 | 0 | 0 |  | 0 |" in text
    assert "| `acked_kbps` | 20 kbit/s | hv-fig12 | 3 % of" in text
    assert made.sources == {ROWS: 3}


def test_each_question_of_an_experiment_of_ours_is_a_claim(tmp_path, results):
    path = written(tmp_path / "c.toml")
    path.write_text(f'{path.read_text()}experiments = ["{NAME[:-1]}*2"]\n')  # a pattern, which other experiments do not match
    text = page.make(path, Numbers(results)).text()
    assert f"| P 2 | {SLOW} ({NAME}; ours) | yes |" in text
    assert f"| {page.OURS} | {len(described(NAME).questions)} |" in text


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        (of_note("{a}"), 'there is no number "a"; define it'),
        (of_note("{|}"), "has no value"),
        (of_note("{a.median}", f'a = {{ experiment = "{NAME}", mean = "acked_kbps", {RENO} }}'),
         "has no value"),
        (of_note("1", f'a = {{ experiment = "{NAME}", mean = "acked_kbps", {RENO} }}'),
         'does not show its number "a"'),
        (of_note("{a|1}", f'a = {{ experiment = "{NAME}", mean = "percent", where = {{ variant = "elfn" }} }}'), "0 cells where"),
        (of_note("{a|1}", f'a = {{ experiment = "{NAME}", means = "percent" }}'), "papers.0.claims.0.numbers.a"),
        (of_note("{a|1}", 'a = { experiment = "hv-fig99", mean = "percent" }'), "hv-fig99"),
        (f'answers = [{{ experiment = "{NAME}", question = "Probes help" }}]', 'asks no "Probes help"'),
        (f'answers = [{{ experiment = "{NAME}", question = "{SLOW}", where = {{ speed = 3 }} }}]', "where {'speed': 3}"),
        (f'answers = [{{ experiment = "{NAME}", mean = "percent", least = 1 }}]', "cells where {}"),
        (f'answers = [{{ experiment = "{NAME}", some = "percent", above = 1, where = {{ variant = "x" }} }}]', "0 cells where"),
        ('holds = "yes"', "needs one of answers, cannot, and read with holds"),
        ('read = "claims.md"', "needs one of answers, cannot, and read with holds"),
        ('read = "results/none.csv"\nholds = "yes"', "docs/results/none.csv does not exist"),
        ('cannot = "a"\nread = "claims.md"\nholds = "yes"', "needs one of answers, cannot, and read with holds"),
    ],
)  # fmt: skip
def test_a_claim_that_cannot_be_shown_is_named(tmp_path, results, claim, wrong):
    with pytest.raises(UsageError) as refused:
        page.make(written(tmp_path / "c.toml", claim), Numbers(results)).text()
    assert wrong in str(refused.value)


def test_rows_keep_every_metric_that_the_claims_show():
    measured = [dict.fromkeys(METRICS, 1.0)]
    claims = source.read()
    numbers = [number for paper in claims.papers for claim in paper.claims for number in claim.numbers.values()]
    shown = {(each.experiment, getattr(each, "mean", None) or getattr(each, "pair", None)) for each in numbers}
    shown |= {(each.experiment, each.mean) for each in claims.of(source.Level)}
    shown |= {(each.experiment, each.some) for each in claims.of(source.Some)}
    shown |= {
        (each.experiment, between.metric) for between in claims.of(source.Between) for each in (between.compared, between.base)
    }
    for name, metric in sorted(shown):
        description = json.loads(described(name).to_json())
        assert metric in kept.metrics_of(description, measured), f"{name}: rows have no {metric}"


def test_a_text_without_rows_and_table_is_marked(tmp_path, results):
    kept.file_of(NAME, results).unlink()
    number = f'a = {{ experiment = "{NAME}", mean = "acked_kbps", where = {{ variant = "reno", speed = 10 }} }}'
    made = page.make(written(tmp_path / "c.toml", of_note("{a|-98} kbit/s, {a.runs|21} runs", number)), Numbers(results))
    assert "-98† kbit/s, 21 runs |" in made.text()
    assert made.sources == {NONE: 2}
