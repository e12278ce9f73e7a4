"""A night with made-up parts: its rows, its alarms, JUnit XML, and the verb's exit status."""

import json
import subprocess

import pytest
from junitparser import JUnitXml

from testbed.__main__ import main
from testbed.errors import RunError
from testbed.nightly import campaign, junit, night, validation, words
from testbed.nightly.figure import Figure, Part
from testbed.validate import checks, simulate


def speed(value):
    return lambda _name: Part([Figure("speed/x", "of reference", (value, value), 0.03)])


@pytest.fixture
def history(tmp_path, monkeypatch):
    """Six quiet nights; each has another name."""
    names = iter(range(100))
    monkeypatch.setattr(night, "_name", lambda _date: f"n{next(names):02}")
    for value in (1.0, 1.01, 0.99, 1.005, 0.995, 1.0):
        assert night.run(tmp_path, {"speed": speed(value)}).alarms == []
    return tmp_path


def test_a_change_names_metric_values_commits_and_runs(history):
    (alarm,) = night.run(history, {"speed": speed(1.5)}).alarms
    line = words.alarm_line(alarm)
    assert line.startswith("speed/x: 1 -> 1.5 of reference (+50.0%") and ".." in line
    assert line.endswith("runs repetition 1 to repetition 2 of n06")


def test_the_night_after_an_alarm_is_compared_with_the_nights_before_it(history):
    night.run(history, {"speed": speed(1.5)})
    assert len(night.run(history, {"speed": speed(1.5)}).alarms) == 1
    assert night.run(history, {"speed": speed(1.0)}).alarms == []


def test_a_part_that_cannot_run_has_failed_and_the_others_run(history):
    def broken(_name):
        raise RunError("no medium")

    outcome = night.run(history, {"validation": broken, "speed": speed(1.0)})
    assert outcome.failures == ["validation: no medium"] and len(outcome.verdicts) == 1


def test_junit_has_a_case_per_figure_failure_and_skipped_part(history, tmp_path):
    parts = {
        "campaign": lambda _: Part(failures=["campaign: ended"]),
        "kernels": lambda _: Part(skipped="none"),
        "speed": speed(2),
    }
    junit.write(night.run(history, parts), tmp_path / "n.xml")
    read = JUnitXml.fromfile(str(tmp_path / "n.xml"))
    assert (read.tests, read.failures, read.errors, read.skipped) == (3, 1, 1, 1)


@pytest.mark.parametrize(("exact", "needed"), [(False, 5), (True, 1)])
def test_a_figure_with_too_few_earlier_nights_is_skipped_in_junit_and_not_passed(tmp_path, exact, needed):
    one = night.run(tmp_path, {"speed": lambda _: Part([Figure("speed/x", "s", (1.0, 1.0), 0.03, exact=exact)])})
    junit.write(one, tmp_path / "n.xml")
    (case,) = next(iter(JUnitXml.fromfile(str(tmp_path / "n.xml"))))
    assert (case.is_passed, case.is_skipped, case.result[0].message) == (False, True, f"too few earlier nights: 0 of {needed}")


def test_json_is_strict(history):
    outcome = night.run(history, {"speed": speed(1.5)})
    assert json.loads(json.dumps(words.as_json(outcome), allow_nan=False))["figures"][0]["alarm"] is True


def test_a_check_that_fails_is_a_failure_of_the_part(monkeypatch):
    layout = simulate.Layout("ns2-dsss-2m", [], [], 1.0, 0.0)
    case = checks.Case("x", layout, lambda result: 0.0, "kbit/s", 100.0, "source", 0.05)
    monkeypatch.setattr(checks, "cases", lambda pattern: [case])
    monkeypatch.setattr(checks, "measure", lambda cases, progress: [(case, [50.0] * 5)])
    part = validation.figures()
    assert part.failures == ["validation/x: 50 kbit/s, reference 100: -50.0%, allowed 5.0%"]
    assert part.figures[0].values == (50.0,) * 5


def test_a_campaign_keeps_the_captures_of_one_seed_and_a_failed_one_names_its_verdicts(tmp_path, monkeypatch):
    called = []

    def manet(words, **_):
        called.extend(words)
        (tmp_path / "n1" / "campaign").mkdir(parents=True)
        (tmp_path / "n1" / "campaign" / "campaign.json").write_text('{"verdicts": {"valid": 2, "void": 1}}')
        return subprocess.CompletedProcess(words, 1)

    monkeypatch.setattr(subprocess, "run", manet)
    part = campaign.figures(tmp_path, "n1", ["tcp-chain"], ["--seeds", "2"])
    assert " ".join(called).endswith(f"tcp-chain --quick --captures first --out {tmp_path}/n1/campaign --seeds 2")
    assert part.failures == ["campaign: `manet campaign tcp-chain --quick` ended with 1: 2 valid, 1 void"]


@pytest.mark.parametrize(("value", "status"), [(1.0, 0), (1.5, 1)])
def test_the_exit_status_says_whether_something_changed(history, monkeypatch, value, status):
    monkeypatch.setattr("testbed.commands.nightly._jobs", lambda *_: {"speed": speed(value)})
    assert main(["nightly", "--history", str(history), "--parts", "speed", "--page"]) == status
    assert (history / "index.html").exists()


def test_an_unknown_part_or_metric_is_wrong_usage(history, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["nightly", "--parts", "spead"])
    assert main(["nightly", "--history", str(history), "--accept", "speed/y"]) == 2
    assert "no such metric" in capsys.readouterr().err


@pytest.mark.parametrize("damaged", ["history", "junit"])
def test_what_cannot_be_read_or_written_is_named_before_the_night(history, monkeypatch, capsys, damaged):
    def measured(_name):
        raise AssertionError("hours of measuring")

    monkeypatch.setattr("testbed.commands.nightly._jobs", lambda *_: {"speed": measured})
    more = ["--junit", "/proc/nowhere/n.xml"] if damaged == "junit" else []
    if damaged == "history":
        (history / "nights.parquet").write_text("no Parquet")
    assert main(["nightly", "--history", str(history), "--parts", "speed", *more]) in (1, 2)
    error = capsys.readouterr().err
    assert ("/proc/nowhere/n.xml: give a file" if more else "nights.parquet: cannot be read") in error and len(
        error.splitlines()
    ) == 1


def test_sql_reads_the_history(history, capsys):
    assert main(["sql", "select count(distinct night) n from nights", str(history), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"n": 6}]
