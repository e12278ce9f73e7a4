"""The disk budget: what is deleted is recorded, and the run still counts."""

import json
import os

import pytest

from analysis.metrics.analyse import analyse_run
from record import manifest
from record.errors import RunFileError
from record.found_runs import exclusion_reason, find_runs
from testbed.campaigns import captures
from testbed.campaigns.experiment import EXPERIMENT_FORMAT
from testbed.campaigns.report import Report


@pytest.fixture
def run(tmp_path):
    def make(seed, measured=True):
        folder = tmp_path / "all" / f"seed-{seed}"
        (folder / "captures").mkdir(parents=True)
        (folder / "captures" / "sta1.pcap").write_bytes(b"x" * 1000)
        (folder / "air.csv").write_bytes(b"y" * 500)
        (folder / "run.json").write_text(json.dumps({"seed": seed, "status": "complete"}))
        if measured:
            (folder / "metrics.json").write_text("{}")
        manifest.write(folder)
        return folder

    return make


def test_dropped_files_are_in_the_record_and_the_run_counts(run):
    one = run(2)
    assert captures.apply("none", one, 2) == 1500
    assert not (one / "air.csv").exists() and not (one / "captures" / "sta1.pcap").exists()
    assert {name: entry["bytes"] for name, entry in manifest.dropped_files(one).items()} == {
        "air.csv": 500,
        "captures/sta1.pcap": 1000,
    }
    assert exclusion_reason(one) is None
    manifest.enter(one, "metrics.json")  # a later entry keeps what was dropped
    assert set(manifest.dropped_files(one)) == {"air.csv", "captures/sta1.pcap"}


def test_a_run_without_its_captures_is_never_measured_again(run):
    """A copy has other dates, and an unpacked bundle too."""
    one = run(2)
    captures.drop(one)
    os.utime(one / "run.json")
    assert find_runs(one.parent.parent).runs == [one]
    (one.parent.parent / "experiment.json").write_text(json.dumps({"format": EXPERIMENT_FORMAT, "name": "one", "cells": []}))
    Report(one.parent.parent)._measure(again=True)
    assert (one / "metrics.json").read_text() == "{}"
    with pytest.raises(RunFileError, match=r"air\.csv was dropped"):
        analyse_run(one)


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("{ }")])
def test_a_damaged_measurement_without_captures_is_left_out(run, damage):
    one = run(2)
    captures.drop(one)
    damage(one / "metrics.json")
    assert exclusion_reason(one) in ("metrics.json is missing", "metrics.json was changed")
    assert not manifest.only_derived_differ(one)


def test_a_crash_between_record_and_deletion_is_made_good(run):
    one = run(2)
    captures.drop(one)
    (one / "air.csv").write_bytes(b"y" * 500)  # as if the crash had come before
    assert captures.drop(one) == 0
    assert not (one / "air.csv").exists()


def test_the_rule_first_keeps_seed_1_and_a_run_that_is_not_measured_keeps_all(run):
    assert captures.apply("first", run(1), 1) == 0
    assert captures.apply("first", run(2), 2) == 1500
    assert captures.apply("none", run(3, measured=False), 3) == 0
    assert captures.apply("all", run(4), 4) == 0


def test_a_budget_takes_the_last_runs_first(run):
    runs = [run(seed) for seed in (1, 2, 3)]
    size = sum(path.stat().st_size for one in runs for path in one.rglob("*") if path.is_file())
    assert captures.within(size - 1600, runs) == (2, 3000)
    assert (runs[0] / "air.csv").exists() and not (runs[1] / "air.csv").exists()
    assert captures.within(1e9, runs) == (0, 0)
