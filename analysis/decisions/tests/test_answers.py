"""Answers from the runs of a folder: replayed looks, kept decisions, missing and void runs."""

import json

import pytest

from analysis.decisions.answers import answer_by_seed, answers_of, asked, cells_wanted, schedule, seeds_of_cells, write_answers
from analysis.decisions.question import Question

CELLS = [{"speed": speed, "variant": variant} for variant in ("old", "new") for speed in (2, 20)]


def question(**keys):
    return Question.model_validate(
        {
            "question": "New carries more",
            "claim": "more",
            "metric": "acked_kbps",
            "compared": "new",
            "with": "old",
            "matters": 5.0,
        }
        | keys
    )


def rows(values, cell, verdict="valid"):
    """Runs of a cell, a seed for each value; None is a failed run."""
    return [
        cell | {"seed": seed, "status": "failed" if value is None else "complete", "verdict": "" if value is None else verdict}
        | {"acked_kbps": value, "host_late": False}
        for seed, value in enumerate(values, 1)
    ]  # fmt: skip


def of(old, new, **keys):
    where = {"where": {"speed": 20}}
    (one,) = asked([question(**where | keys)], CELLS, {})
    runs = rows(old, {"speed": 20, "variant": "old"}) + rows(new, {"speed": 20, "variant": "new"})
    return answer_by_seed(one, seeds_of_cells(runs, list(one.compared)), 4, 50)


def test_looks_grow_by_half_up_to_the_limit():
    assert schedule(1, 30) == [4, 6, 9, 14, 21, 30]
    assert schedule(6, 50) == [6, 9, 14, 21, 32, 48, 50]
    assert schedule(6, 3) == [3]
    assert schedule(20, 50) == [20, 32, 48, 50]
    assert schedule(12, 40) == [12, 18, 27, 32, 40]


def test_a_question_is_asked_in_each_place_where_both_cells_are():
    both = asked([question()], CELLS, {})
    assert [each.where for each in both] == [{"speed": 2}, {"speed": 20}]
    assert both[0].cells == [{"speed": 2, "variant": "new"}, {"speed": 2, "variant": "old"}]
    assert asked([question()], [cell for cell in CELLS if cell["variant"] == "new"], {}) == []
    across = asked([question(key="speed", compared=20, **{"with": 2})], CELLS, {})
    assert [each.where for each in across] == [{"variant": "old"}, {"variant": "new"}]


def test_a_difference_is_decided_at_the_first_look_that_can_and_later_seeds_do_not_change_it():
    noise = [0.0, 1.0, -1.0, 0.5, -0.5, 0.2]
    six = of([10 + each for each in noise], [400 + 2 * each for each in noise], range=400, confidence=0.6)
    assert (six.verdict, six.looks, six.seeds) == ("holds", [4, 6], None)
    more = of(
        [10 + each for each in noise] + [500.0] * 5, [400 + 2 * each for each in noise] + [0.0] * 5, range=400, confidence=0.6
    )
    assert (more.verdict, more.answer) == (six.verdict, six.answer)


def test_an_open_question_asks_for_the_seeds_of_its_next_look():
    found = of([100.0, 300.0, 50.0, 220.0], [110.0, 250.0, 80.0, 230.0])
    assert (found.verdict, found.looks, found.seeds) == ("undecided", [4], 6)
    assert cells_wanted([found]) == {(("speed", 20), ("variant", "new")): 6, (("speed", 20), ("variant", "old")): 6}
    assert "it would take about" in found.line()


def test_large_differences_are_printed_in_digits():
    """1250, no 1.25e+03."""
    found = of([2000.0, 2001.0, 1999.0, 2000.0], [3250.0, 3251.0, 3249.0, 3250.0])
    assert "+1250 kbit/s [-1137, +2719], 4 pairs, bounds of the runs -2001 to +3251; " in found.line()


def test_a_look_waits_for_all_its_runs():
    found = of([100.0, 101.0, 99.0], [200.0, 201.0, 199.0, 202.0])
    assert (found.looks, found.seeds, found.answer.pairs) == ([], 4, 0)


def test_a_failed_run_ends_its_seed_without_a_pair():
    found = of([100.0, 101.0, 99.0, 100.5], [200.0, None, 199.5, 203.0])
    assert (found.answer.pairs, found.looks) == (3, [3])


@pytest.mark.parametrize("verdict", ["suspect", "void"])
def test_a_run_that_is_not_valid_decides_nothing(verdict):
    """Kept rows count valid runs only: the folder of the runs and the claims from its rows have one answer."""
    (one,) = asked([question(where={"speed": 20})], CELLS, {})
    new = rows([200.0, 201.0, 199.5, 203.0], {"speed": 20, "variant": "new"})
    new[2]["verdict"] = verdict
    runs = rows([100.0, 101.0, 99.0, 100.5], {"speed": 20, "variant": "old"}) + new
    found = answer_by_seed(one, seeds_of_cells(runs, list(one.compared)), 4, 50)
    assert (found.answer.pairs, found.looks, found.seeds) == (3, [3], 6)


def test_at_the_limit_a_question_stays_undecided():
    values = [100.0, 300.0, 50.0, 220.0, 130.0, 90.0]
    found = of(values, values[::-1], max_pairs=6)
    assert (found.verdict, found.looks, found.seeds) == ("undecided", [4, 6], None)


@pytest.mark.parametrize(
    ("claim", "new", "verdict"),
    [("more", 300, "holds"), ("less", 300, "does not hold"), ("same", 300, "does not hold"), ("same", 101, "holds"),
     ("more", 101, "no difference that matters")],
)  # fmt: skip
def test_the_claim_decides_what_an_outcome_means(claim, new, verdict):
    noise = [0.0, 0.3, -0.3, 0.2] * 8
    asks = {"claim": claim, "matters": 30.0, "range": 250.0}
    assert of([100 + each for each in noise], [new - each for each in noise], **asks).verdict == verdict


def test_an_answer_names_its_method_and_bounds():
    """Without a range the bounds are those of a cell that falls to zero beside the other's largest value."""
    noise = [0.0, 1.0, -1.0, 0.5]
    runs = [100 + each for each in noise], [130 - each for each in noise]
    few = of(*runs, matters=2.0)
    assert (few.to_json()["method"], few.to_json()["bounds"], few.to_json()["range"]) == (
        "student-t, few pairs",
        (-101.0, 131.0),
        None,
    )
    assert "4 pairs, Student's t of fewer than 30 pairs: assumes that no rare event was missed" in few.line()
    equal = of([100.0] * 4, [130.0] * 4, matters=2.0, range=40)
    assert (equal.to_json()["method"], equal.to_json()["bounds"]) == ("bounds of the range", (-40.0, 40.0))
    assert "4 pairs, bounds of the range -40 to +40" in equal.line()
    assert of([each * 1.0 for each in range(50)], [each + 9.0 + each % 3 for each in range(50)]).method == "Student's t"
    assert of([100.0, None], [130.0, None], max_pairs=2).to_json()["method"] is None


def test_a_range_below_what_matters_is_refused():
    with pytest.raises(ValueError, match=r"is 2, less than matters = 5; give the largest difference that a pair can have"):
        question(range=2)


def test_answers_follow_from_experiment_json_and_are_written(tmp_path):
    cells = [
        {"name": f"{cell['variant']}{cell['speed']}", "variant": cell["variant"], "axes": {"speed": cell["speed"]}}
        for cell in CELLS
    ]
    asks = question(where={"speed": 20}, range=105, confidence=0.6).model_dump(mode="json", by_alias=True, exclude_none=True)
    description = {"name": "e", "axes": {"speed": [2, 20]}, "cells": cells, "questions": [asks], "looks": [4, 50]}
    runs = rows([100.0, 101.0, 99.0, 100.5, 99.8, 100.2], {"speed": 20, "variant": "old"})
    runs += rows([200.0, 202.0, 199.5, 203.0, 201.0, 200.5], {"speed": 20, "variant": "new"})
    found = answers_of(description, runs)
    (entry,) = json.loads(write_answers(tmp_path, "e", found).read_text())["answers"]
    assert (entry["answer"], entry["pairs"], entry["unit"], entry["with"]) == ("holds", 6, "kbit/s", "old")
    assert entry["low"] < entry["difference"] < entry["high"]
    assert (entry["mean_compared"], entry["where"], entry["looks"]) == (pytest.approx(201), {"speed": 20}, [4, 6])
    assert answers_of({**description, "questions": []}, runs) == []
