"""Differences between cells, seed by seed."""

import csv
import json
from pathlib import Path

import pytest

from analysis.decisions.answers import answers_in
from analysis.decisions.pairs import pairs, write_pairs
from analysis.decisions.rule import comparison
from analysis.tables.kept_rows import KEPT, KeptRow, merged, rows_in, write
from analysis.tables.results import collect_runs
from analysis.tests.test_tables import make_run


@pytest.fixture
def out_dir(tmp_path: Path) -> Path:
    """Three seeds of two variants at one hop: the differences are 10, 20 and 30; seed 4 counts in one of them only."""
    for seed, base, more in ((1, 100.0, 110.0), (2, 300.0, 320.0), (3, 200.0, 230.0)):
        make_run(tmp_path, "old", 1, seed, base)
        make_run(tmp_path, "new", 1, seed, more)
    make_run(tmp_path, "old", 1, 4, 100.0)
    make_run(tmp_path, "new", 1, 4, 900.0, verdict="void")
    return tmp_path


def test_effects_of_a_seed_cancel_in_the_difference(out_dir: Path) -> None:
    (pair,) = pairs(collect_runs(out_dir, ("hops",)), ("hops",), "variant", "old", ["acked_kbps"])
    assert (pair.where, pair.compared, pair.base, pair.seeds) == ("1", "new", "old", 3)
    assert (pair.mean, pair.mean_base, pair.difference) == (220, 200, 20)
    assert pair.answer == comparison((10, 20, 30), (-300, 320))  # the largest value of each cell, if the other fell to zero
    assert (pair.outcome, pair.percent) == ("undecided", 10)


def test_a_difference_beyond_its_interval_is_decided(tmp_path: Path) -> None:
    for seed in range(1, 31):
        make_run(tmp_path, "old", 1, seed, 500.0 + 10 * (7 * seed % 10))
        make_run(tmp_path, "new", 1, seed, 20.0)
    (pair,) = pairs(collect_runs(tmp_path, ("hops",)), ("hops",), "variant", "old", ["acked_kbps"])
    assert (pair.difference, pair.outcome) == (-525, "less")
    assert pair.answer.low < -525 < pair.answer.high < 0


def test_the_answer_to_a_question_is_that_of_the_pair(tmp_path: Path) -> None:
    """A comparison has one answer, wherever it stands: seeds after its last look change none."""
    question = {"question": "?", "claim": "more", "metric": "acked_kbps", "compared": "new", "with": "old", "matters": 20.0}
    for seed in range(1, 7):
        make_run(tmp_path, "old", 1, seed, 100.0 + seed)
        make_run(tmp_path, "new", 1, seed, 400.0 if seed < 5 else 0.0)
    cells = [{"name": f"{variant}-hops1", "variant": variant, "axes": {"hops": 1}} for variant in ("old", "new")]
    description = {
        "name": "e",
        "axes": {"hops": [1]},
        "cells": cells,
        "questions": [question | {"confidence": 0.6}],
        "looks": [4, 30],
    }
    (tmp_path / "experiment.json").write_text(json.dumps(description))
    (asked,) = answers_in(tmp_path)
    rows = collect_runs(tmp_path, ("hops",))
    (pair,) = pairs(rows, ("hops",), "variant", "old", ["acked_kbps"], answers=[asked])
    assert (pair.answer, pair.seeds, pair.outcome, pair.difference) == (asked.answer, 4, "more", 297.5)
    assert pairs(rows, ("hops",), "variant", "old", ["acked_kbps"])[0].outcome == "undecided"
    (other,) = pairs(rows, ("hops",), "variant", "new", ["acked_kbps"], answers=[asked])
    assert (other.seeds, other.outcome) == (6, "undecided")  # nobody asks about old minus new


def test_kept_rows_pair_as_runs_do(tmp_path: Path) -> None:
    """Seeds 1 to 4 ran elsewhere: the answer and the pair are of the same six seeds, and a run that is here replaces its row."""
    names = ("old", "new")
    cells = [{"name": f"{name}-hops1", "variant": name, "axes": {"hops": 1}, "identity": f"of-{name}"} for name in names]
    question = {"question": "?", "claim": "more", "metric": "acked_kbps", "compared": "new", "with": "old", "matters": 20.0}
    asked = [question | {"confidence": 0.6}]
    description = {"name": "e", "axes": {"hops": [1]}, "cells": cells, "questions": asked, "looks": [6, 6]}
    (tmp_path / "experiment.json").write_text(json.dumps(description))
    kept = [
        KeptRow(f"of-{name}", seed, "valid", {"variant": name, "hops": "1"}, {"acked_kbps": base + seed})
        for name, base in (("old", 100.0), ("new", 400.0), ("another", 1.0))
        for seed in range(1, 5)
    ]
    write(tmp_path / KEPT, merged(kept))
    for seed in (4, 5, 6):
        make_run(tmp_path, "old", 1, seed, 100.0 + seed)
        make_run(tmp_path, "new", 1, seed, 410.0 + seed)
    (answer,) = answers_in(tmp_path)
    (pair,) = pairs(rows_in(tmp_path, ("hops",)), ("hops",), "variant", "old", ["acked_kbps"], answers=[answer])
    assert (pair.by_seed, pair.outcome) == ((300, 300, 300, 310, 310, 310), "more")
    assert pair.answer == answer.answer


def test_other_keys_must_be_equal_and_one_seed_decides_nothing(tmp_path: Path) -> None:
    for hops, kbps in ((1, 600.0), (2, 300.0)):
        make_run(tmp_path, "old", hops, 1, kbps)
    make_run(tmp_path, "new", 2, 1, 400.0)
    found = pairs(collect_runs(tmp_path, ("hops",)), ("hops",), "hops", "1", ["acked_kbps"])
    assert [(pair.where, pair.compared, pair.difference, pair.answer.low, pair.outcome) for pair in found] == [
        ("old", "2", -300, None, "undecided")
    ]
    assert pairs(collect_runs(tmp_path, ("hops",)), ("hops",), "variant", "old", ["acked_kbps"], compared=["other"]) == []


def test_pairs_csv_has_a_row_for_each_with_its_unit(out_dir: Path) -> None:
    path = write_pairs(
        out_dir / "pairs.csv", pairs(collect_runs(out_dir, ("hops",)), ("hops",), "variant", "old", ["acked_kbps"])
    )
    (row,) = csv.DictReader(path.open())
    assert (row["compared"], row["with"], row["unit"], row["difference"], row["outcome"]) == (
        "new", "old", "kbit/s", "20", "undecided",
    )  # fmt: skip


def test_a_flow_of_an_axis_named_flows_does_not_hide_the_axis(tmp_path: Path) -> None:
    """The runs' own `flows` once replaced the axis in the table."""
    for value in ("one", "two"):
        folder = tmp_path / f"flows{value}" / "seed-1"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"axes": {"flows": value}, "seed": 1, "status": "complete"}))
        (folder / "verdict.json").write_text('{"verdict": "valid"}')
        (folder / "metrics.json").write_text(json.dumps({"flows": {"flow1": {"acked_bps": 1e5 if value == "one" else 3e5}}}))
    (pair,) = pairs(collect_runs(tmp_path, ("flows",)), ("flows",), "flows", "one", ["acked_kbps"])
    assert (pair.compared, pair.difference) == ("two", 200)
