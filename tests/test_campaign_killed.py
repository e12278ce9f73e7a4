"""A campaign that is killed or reaches its time limit, with real runs: the same command goes on and repeats no finished run."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from testbed.programs import ROOT

EXPERIMENT = """question = "?"
[scenario]
topology = "chain"
hops = 1
spacing = 200
duration = 2
[axes]
hops = [1, 2]
[[questions]]
question = "Two hops carry less"
claim = "less"
metric = "acked_kbps"
key = "hops"
compared = 2
with = 1
matters = 20
max_pairs = 4
confidence = 0.6
"""
LIMIT_S = 300

pytestmark = [pytest.mark.root, pytest.mark.slow]


def start(folder: Path, log: Path, *more: str) -> subprocess.Popen[bytes]:
    argv = [
        sys.executable,
        "-P",
        "-m",
        "testbed",
        "campaign",
        str(folder / "two.toml"),
        "--out",
        str(folder / "out"),
        "--jobs",
        "2",
        *more,
    ]
    with log.open("wb") as file:
        return subprocess.Popen(argv, env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=ROOT, stdout=file, stderr=file)


def complete(out: Path) -> dict[str, str]:
    """The id of each run that has ended, by its folder."""
    runs = {
        path.parent: json.loads(path.read_text())
        for path in out.glob("two/*/seed-*/manifest.json")
        for path in [path.parent / "run.json"]
    }
    return {str(folder): run["id"] for folder, run in runs.items() if run.get("status") == "complete"}


def test_a_killed_campaign_goes_on_without_repeating_a_finished_run(tmp_path):
    (tmp_path / "two.toml").write_text(EXPERIMENT)
    out = tmp_path / "out"
    first = start(tmp_path, tmp_path / "first.log")
    deadline = time.monotonic() + LIMIT_S
    while len(complete(out)) < 3:
        assert first.poll() is None and time.monotonic() < deadline, (tmp_path / "first.log").read_text()
        time.sleep(0.1)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    before = complete(out)
    second = start(tmp_path, tmp_path / "second.log")
    assert second.wait(LIMIT_S) == 0, (tmp_path / "second.log").read_text()
    after = complete(out)
    assert len(after) == 8
    assert {folder: after[folder] for folder in before} == before
    rows = list(csv.DictReader((out / "two" / "table.csv").open()))
    assert [(row["hops"], row["seed"], row["status"]) for row in rows] == [
        (hops, str(seed), "complete") for hops in ("1", "2") for seed in range(1, 5)
    ]
    (answer,) = json.loads((out / "two" / "answers.json").read_text())["answers"]
    assert (answer["answer"], answer["pairs"]) == ("undecided", valid_pairs(out / "two"))  # the bounds need more pairs
    assert json.loads((out / "campaign.json").read_text())["ended"] is not None
    assert not list(out.rglob("*.unfinished"))


def valid_pairs(directory: Path) -> int:
    """The seeds of which both cells have a valid run: on a loaded host one may be suspect."""
    valid = Counter(row["seed"] for row in csv.DictReader((directory / "table.csv").open()) if row["verdict"] == "valid")
    return sum(number == 2 for number in valid.values())


def test_a_campaign_at_its_time_limit_ends_in_order_and_goes_on_without_one(tmp_path):
    """The limit of 60 microseconds is reached before any run."""
    (tmp_path / "two.toml").write_text(EXPERIMENT)
    out = tmp_path / "out"
    first = start(tmp_path, tmp_path / "first.log", "--time", "0.000001")
    assert first.wait(LIMIT_S) == 0, (tmp_path / "first.log").read_text()
    assert "limit     the time limit ended the campaign: 8 of 8 runs of round 1" in (tmp_path / "first.log").read_text()
    (answer,) = json.loads((out / "two" / "answers.json").read_text())["answers"]
    assert (answer["answer"], answer["pairs"]) == ("undecided", 0)
    record = json.loads((out / "campaign.json").read_text())
    assert record["ended"] is not None and record["time_limit"] == {"round": 1, "runs": 8, "not_started": 8}
    assert (out / "report.html").exists() and not complete(out)
    second = start(tmp_path, tmp_path / "second.log")
    assert second.wait(LIMIT_S) == 0, (tmp_path / "second.log").read_text()
    (answer,) = json.loads((out / "two" / "answers.json").read_text())["answers"]
    assert (answer["answer"], answer["pairs"]) == ("undecided", valid_pairs(out / "two"))  # the bounds need more pairs
    assert json.loads((out / "campaign.json").read_text())["time_limit"] is None
