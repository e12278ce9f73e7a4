"""The machine that says which runs a campaign wants: rows in, tasks out."""

import json
import random
from pathlib import Path

import pytest

from analysis.decisions import answers
from analysis.decisions.answers import answers_of
from analysis.tables.results import METRICS
from testbed.campaigns import plan as plans
from testbed.campaigns.experiment import load
from testbed.campaigns.plan import MemberPlan, next_round
from testbed.campaigns.request import Request
from testbed.tests.workers import TEXT, clear, noisy


@pytest.fixture
def make(tmp_path):
    (tmp_path / "e.toml").write_text(TEXT)
    experiment = load(tmp_path / "e.toml", Request(quick=True))

    def made(folder="e", kept=()):
        kept_rows = {(f"hops{row['hops']}", row["seed"]): row for row in kept}
        description = json.loads(experiment.to_json())
        return MemberPlan("e", description, experiment.cells, experiment.seeds, Path(folder), kept=kept_rows)

    return made


def row(hops, seed, kbps, status="complete", verdict="valid"):
    values = dict.fromkeys(METRICS) | {"hops": hops, "variant": "", "seed": seed, "acked_kbps": kbps}
    return values | {"status": status, "verdict": verdict, "host_late": False, "emulated_s": 10.0}


def carry_out(plan, kbps, tasks=None):
    """Let the wanted runs end; returns their cells and seeds."""
    tasks = plan.wanted() if tasks is None else tasks
    for task in tasks:
        hops = task.cell.axes["hops"]
        plan.ended(task.cell.name, task.seed, row(hops, task.seed, kbps(hops, task.seed)), True)
    return [(task.cell.name, task.seed) for task in tasks]


def test_each_run_is_wanted_once_until_the_question_is_at_its_limit(make):
    plan, wanted = make(), []
    while new := carry_out(plan, noisy):
        wanted.append(new)
    assert [len(each) for each in wanted] == [8, 4, 6, 10]
    assert len({run for each in wanted for run in each}) == 28


def test_a_decided_question_is_not_answered_again(make, monkeypatch):
    plan, calls = make(), []
    inner = plans.answer_by_seed
    monkeypatch.setattr(plans, "answer_by_seed", lambda *words: (calls.append(words), inner(*words))[1])
    carry_out(plan, clear)
    assert plan.wanted() == [] and plan.answers()[0].verdict == "holds"
    assert len(calls) == 2  # before the runs and after them


def test_a_look_that_took_place_is_not_replayed(make, monkeypatch):
    """Looks at 4, 6, 9 and 14 pairs, each calculated once."""
    plan, looks = make(), []
    inner = answers.answer
    monkeypatch.setattr(answers, "answer", lambda rule, at, *words: (looks.append(at[-1]), inner(rule, at, *words))[1])
    while carry_out(plan, noisy):
        pass
    assert looks == [4, 6, 9, 14]


def test_a_run_that_did_not_end_is_wanted_again(make):
    plan = make()
    first = plan.wanted()
    carry_out(plan, clear, first[:-1])
    assert plan.wanted() == first[-1:]


def test_a_run_that_is_over_without_a_row_is_not_repeated_and_leaves_its_look_open(make):
    plan = make()
    *others, last = plan.wanted()
    carry_out(plan, clear, others)
    plan.ended(last.cell.name, last.seed, None, True)
    assert plan.wanted() == [] and plan.answers()[0].looks == []


def test_kept_rows_count_as_done_and_a_fresh_run_replaces_its_row(make):
    kept = [row(1, seed, 600.0) for seed in range(1, 5)]
    plan = make(kept=kept)
    assert {task.cell.name for task in plan.wanted()} == {"hops2"}
    plan.ended("hops1", 1, row(1, 1, 0.0, verdict="void"), True)  # does not count
    plan.ended("hops1", 2, row(1, 2, 610.0), True)
    carry_out(plan, clear)
    assert plan.answers()[0].means[0 if plan.answers()[0].asked.compared["hops"] == 1 else 1] == 602.5


def test_a_round_has_all_cells_of_all_experiments_at_one_seed_before_the_next(make):
    tasks = next_round([make("e"), make("f")])
    assert [(t.seed, t.results.name, t.cell.name) for t in tasks[:5]] == [
        (1, "e", "hops1"), (1, "e", "hops2"), (1, "f", "hops1"), (1, "f", "hops2"), (2, "e", "hops1"),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_answers_are_those_of_all_rows_read_at_once(make, seed):
    """Whatever fails, is void or suspect. The order in which runs end does not matter."""
    rng, plan, rows = random.Random(seed), make(), []
    for _ in range(20):
        tasks = plan.wanted()
        rng.shuffle(tasks)
        for task in tasks:
            status = rng.choice(["complete"] * 8 + ["failed", "interrupted"])
            verdict = rng.choice(["valid"] * 8 + ["suspect", "void"])
            rows.append(row(task.cell.axes["hops"], task.seed, rng.gauss(600, 100), status, verdict))
            plan.ended(task.cell.name, task.seed, rows[-1], rng.random() < 0.9)
    latest = {(each["hops"], each["seed"]): each for each in rows if each["status"] != "interrupted"}
    assert plan.answers() == answers_of(plan.description, list(latest.values()))
