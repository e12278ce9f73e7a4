"""The report on the runs in a folder: tables, answer for programs, verdict, errors."""

import errno
import importlib
import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from analysis.tables import results as tables
from analysis.tests.drawn import panels
from record import manifest
from testbed import __main__ as manet
from testbed.campaigns.report import Report
from testbed.errors import UsageError

FIXTURE = Path(__file__).parents[2] / "analysis" / "tests" / "fixtures" / "two-flows"


@pytest.fixture
def results(tmp_path):
    """A folder of one cell with a run, and a run put aside as void."""
    for run in ("all/seed-1", "all/void/seed-1-try-1"):
        shutil.copytree(FIXTURE, tmp_path / run)
        record = tmp_path / run / "run.json"
        record.write_text(record.read_text().replace('"cell": "hops2"', '"cell": "all"'))
    description = {
        "format": "manet-experiment/1", "name": "e", "question": "", "source": None, "figure": None, "published": None,
        "ns2": None, "quick": False, "axes": {}, "variants": [], "seeds": 1,
        "cells": [{"name": "all", "variant": "", "axes": {}}], "expect": {},
    }  # fmt: skip
    (tmp_path / "experiment.json").write_text(json.dumps(description))
    return tmp_path


def test_tables_are_made_and_runs_put_aside_are_left_out(results):
    report = Report(results)
    report.make()
    assert len((results / "table.csv").read_text().splitlines()) == 2
    assert sum(report.verdicts().values()) == 1
    assert report.capture() == results / "all" / "seed-1" / "captures" / "sta1.pcap"


def test_the_answer_for_programs_names_every_file(results, capsys):
    assert manet.main(["report", str(results), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["format"] == "manet-answer/1"
    assert answer["table"] == str(results / "table.csv")
    assert Path(answer["summary"]).exists()
    assert answer["capture"] == str(results / "all" / "seed-1" / "captures" / "sta1.pcap")
    assert set(answer["verdicts"]) == {"valid", "suspect", "void", "failed", "interrupted"}
    assert answer["missing"] == []


def test_a_report_reads_each_run_once(results, monkeypatch, capsys):
    importlib.import_module("analysis.store.files")  # it has the function itself, for runs put aside, whatever test came before
    read, row = [], tables.run_row
    monkeypatch.setattr(tables, "run_row", lambda run_dir, *more: read.append(run_dir.name) or row(run_dir, *more))
    assert manet.main(["report", str(results)]) == 0
    assert read == ["seed-1"]
    assert "flow2" in capsys.readouterr().out  # a table of each flow was printed, too


def test_people_get_the_table_the_files_and_the_verdict(results, capsys):
    assert manet.main(["report", str(results)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("verdict   ")
    assert f"table     {results / 'table.csv'}" in lines
    assert f"capture   {results / 'all' / 'seed-1' / 'captures' / 'sta1.pcap'}" in lines


def test_the_outcome_expected_beforehand_is_printed_below_the_table(results, capsys):
    rewritten(results, expect={"outcome": "Vegas leads everywhere;\n  TCP-AP follows."})
    assert manet.main(["report", str(results)]) == 0
    assert "expected: Vegas leads everywhere; TCP-AP follows." in capsys.readouterr().out.splitlines()


def test_a_flow_that_never_connected_is_a_remark_and_no_verdict(results, capsys):
    report = results / "all" / "seed-1" / "traffic" / "flow1.json"
    content = json.loads(report.read_text())
    report.write_text(json.dumps(content | {"manet": {"first_try_s": 1_700_000_000.5, "connected": False}}))
    manifest.write(report.parents[1])
    assert manet.main(["report", str(results), "--again"]) == 0
    lines = capsys.readouterr().out.splitlines()
    remark = "flow1 from sta1 to sta2 never connected; its rates are 0"
    assert lines[-2] == f"remark    all/seed-1: {remark}"
    assert lines[-1].startswith("verdict   valid (1 valid")
    assert manet.main(["report", str(results), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["remarks"] == [{"run": "all/seed-1", "remark": remark}]


def test_remarks_beyond_the_first_are_counted(results):
    report = Report(results)
    report.make()
    assert report.results is not None and report.remarks() == []
    report.results.rows[0]["remarks"] = [f"flow{number} never connected" for number in range(1, 9)]
    assert len(report.remark_lines()) == 6
    assert report.remark_lines()[-1] == "remark    and 3 more: `remarks` of each run's metrics.json"


def rewritten(results: Path, **keys: object) -> None:
    path = results / "experiment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def test_a_figure_that_the_axes_do_not_fit_is_one_line_below_the_table(results, capsys):
    cells = [{"name": "all", "variant": "", "axes": {"spacing": 200}}]
    rewritten(results, figure="hv_fig1", axes={"spacing": [200]}, cells=cells)
    assert manet.main(["report", str(results)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"table     {results / 'table.csv'}" in lines
    wanted = f'figure    none: {results}: figure "hv_fig1" is over the axis hops, but experiment e has spacing; add it'
    assert [line[: len(wanted)] for line in lines if line.startswith("figure")] == [wanted]


def test_results_without_a_figure_give_one_line(results, capsys):
    rewritten(results, figure="tcp_outage")
    assert manet.main(["report", str(results), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["figures"] == [] and answer["no_figure"].startswith("figure tcp_outage: ")


def test_an_experiment_without_a_figure_gets_the_general_one(results):
    shutil.copytree(FIXTURE, results / "other" / "seed-1")
    for cell, hops in (("all", 1), ("other", 2)):
        path = results / cell / "seed-1" / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"cell": cell, "axes": {"hops": hops}, "status": "complete"}))
        (path.parent / "verdict.json").write_text('{"format": "manet-verdict/1", "verdict": "valid"}')
    rewritten(results, axes={"hops": [1, 2]}, cells=[{"name": name, "variant": "", "axes": {}} for name in ("all", "other")])
    report = Report(results)
    (panel,) = panels(report.make)
    assert [path.name for path in report.figures] == ["general.png", "general.pdf", "general.svg"]
    metrics = json.loads((results / "all" / "seed-1" / "metrics.json").read_text())
    kbps = metrics["flows"]["flow1"]["acked_bps"] / 1e3
    assert [one.points for one in panel.series] == [[(1, pytest.approx(kbps)), (2, pytest.approx(kbps))]], "of the same run"


def test_a_single_cell_has_no_figure(results):
    report = Report(results)
    report.make()
    assert (report.figures, report.no_figure) == ([], None)


def test_metrics_are_kept_unless_recalculation_is_requested(results):
    Report(results).make()
    metrics = results / "all" / "seed-1" / "metrics.json"
    metrics.write_text(metrics.read_text().replace("\n", "\n\n"))
    kept = metrics.read_text()
    Report(results).make()
    assert metrics.read_text() == kept
    Report(results).make(analyse_again=True)
    assert metrics.read_text() != kept


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ({"valid": 3}, "valid (3 valid, 0 suspect, 0 void): the host kept up with the air in every run"),
        (
            {"valid": 2, "suspect": 1},
            "suspect (2 valid, 1 suspect, 0 void): some runs are in doubt; verdict.json",
        ),
        (
            {"valid": 2, "suspect": 1, "void": 1},
            "void (2 valid, 1 suspect, 1 void): some runs cannot be trusted",
        ),
        ({"valid": 2, "failed": 1}, "failed (2 valid, 0 suspect, 0 void, 1 failed): some runs failed; "),
        ({"valid": 2, "interrupted": 1}, "incomplete (2 valid, 0 suspect, 0 void, 1 interrupted): runs are missing or"),
        ({}, "none (0 valid, 0 suspect, 0 void)"),
    ],
)
def test_the_verdict_is_that_of_the_worst_run(results, counts, wanted):
    shutil.rmtree(results / "all" / "void")
    report = Report(results)
    report.endings = Counter(counts)
    assert report.verdict_line().startswith(wanted)


def test_a_void_run_that_was_rerun_is_reported(results, capsys):
    assert manet.main(["report", str(results)]) == 0
    assert "; 1 void, incomplete or of another scenario before (kept in <cell>/void)" in capsys.readouterr().out.splitlines()[-1]
    assert Report(results).as_json([])["put_aside"] == 1


def _as_left(results: Path) -> Path:
    """The run with a manifest, and metrics that are in it."""
    run = results / "all" / "seed-1"
    manifest.write(run)
    Report(results).make()
    return run


def test_a_run_that_was_changed_is_left_out_and_named(results, capsys):
    run = _as_left(results)
    shutil.copytree(run, results / "all" / "seed-2")
    (run / "captures" / "sta1.pcap").unlink()
    assert manet.main(["report", str(results)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "left out  all/seed-1: captures/sta1.pcap is missing" in lines
    assert "left out  all/seed-2: is seed 1 by its run.json; a copy is no second seed: move it out of the results" in lines
    assert lines[-1].startswith("verdict   void (0 valid, 0 suspect, 0 void, 2 left out")
    assert (
        f"remedy    run what is left out again: ./manet run e --out {results} --resume (and the --set it was run with)" in lines
    )
    assert len((results / "table.csv").read_text().splitlines()) == 2, "as it was"
    assert f"table     {results / 'table.csv'} (as it was: no run is left to make it of)" in lines
    assert not [line for line in lines if line.rstrip().endswith(",")]
    assert manet.main(["report", str(results), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["left_out"][0] == {"run": "all/seed-1", "reason": "captures/sta1.pcap is missing"}


def test_an_edited_metric_is_noticed_and_recalculated_on_request(results, capsys):
    metrics = _as_left(results) / "metrics.json"
    measured = metrics.read_text()
    metrics.write_text(measured.replace('"acked_bps": 78000.0', '"acked_bps": 98000.0'))
    assert metrics.read_text() != measured
    assert manet.main(["report", str(results)]) == 1
    message = "left out  all/seed-1: metrics.json was changed; `manet report --again` recalculates it"
    assert message in capsys.readouterr().out.splitlines()
    assert manet.main(["report", str(results), "--again"]) == 0
    assert metrics.read_text() == measured


def test_runs_without_a_manifest_are_named_once(results, capsys):
    assert manet.main(["report", str(results)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("unchecked")] == [
        "unchecked all/seed-1: no manifest.json, by which changes would show"
    ]


def test_on_a_full_disk_existing_results_stay_and_the_next_command_is_printed(results, capsys, monkeypatch):
    run = _as_left(results)
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    monkeypatch.setattr("record.files.os.fsync", _no_space)
    assert manet.main(["report", str(results), "--again"]) == 1
    remedy = f"free space on this disk (results need not be deleted), then ./manet report {results}"
    message = f"{run}/metrics.json: disk full; {remedy}"
    assert capsys.readouterr().err == f"manet report: {message}\n"
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before


def _no_space(_descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_metrics_that_are_cut_off_are_measured_again(results):
    metrics = results / "all" / "seed-1" / "metrics.json"
    Report(results).make()
    whole = metrics.read_text()
    metrics.write_text(whole[:100])
    Report(results).make()
    assert metrics.read_text() == whole


def test_a_folder_that_holds_no_results_is_named(tmp_path):
    with pytest.raises(UsageError) as caught:
        Report(tmp_path)
    assert str(caught.value) == f"{tmp_path}: holds no experiment.json; give a folder that `manet run` has made"
    (tmp_path / "experiment.json").write_text("{")
    with pytest.raises(UsageError, match=r"experiment\.json: is not JSON; run again with --resume"):
        Report(tmp_path)


def test_the_verdict_names_at_most_five_runs_that_are_not_valid(results):
    folder = results / "all"
    (folder / "seed-1" / "verdict.json").write_text('{"verdict": "suspect"}')
    report = Report(results)
    report.make()
    assert report.verdict_line().endswith("[all/seed-1 suspect]")
    report.doubtful = [f"all/seed-{seed} void" for seed in range(1, 8)]
    assert report.verdict_line().endswith("all/seed-4 void, all/seed-5 void, and 2 more]")


def test_missing_runs_of_the_experiment_are_named_with_the_next_command(results, capsys):
    """Two cells of four seeds: one has a whole run, a failed and an interrupted one, the other none."""
    for seed, status in ((2, "failed"), (3, "interrupted")):
        run = results / "all" / f"seed-{seed}" / "run.json"
        shutil.copytree(FIXTURE, run.parent)
        run.write_text(json.dumps(json.loads(run.read_text()) | {"cell": "all", "seed": seed, "status": status}))
    cells = [{"name": name, "variant": name, "axes": {}, "profile": "period"} for name in ("all", "dsdv")]
    rewritten(results, seeds=4, cells=cells, resume="./manet run e --set hops=2 --out x --resume")
    for seed in (1, 2, 3):
        path = results / "all" / f"seed-{seed}" / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"variant": "all"}))
    assert manet.main(["report", str(results)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert (
        "runs      2 of 8; missing: all seed 3 (interrupted), all seed 4, dsdv seeds 1 to 4; "
        "finish with ./manet run e --set hops=2 --out x --resume"
    ) in lines
    assert lines[-1].startswith("verdict   failed (1 valid, 0 suspect, 0 void, 1 failed, 1 interrupted, 5 missing; 1 void,")
    assert [words[-2:] for line in lines if (words := line.strip("│ ").split())[:1] == ["dsdv"]] == [["│", "none"]]
    summary = (results / "summary.csv").read_text().splitlines()
    assert [line.split(",")[:3] for line in summary if line.startswith("dsdv,")] == [["dsdv", "period", "acked_kbps"]]
    assert manet.main(["report", str(results), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["missing"][:2] == [
        {"cell": "all", "seed": 3, "interrupted": True}, {"cell": "all", "seed": 4, "interrupted": False},
    ]  # fmt: skip


def test_only_cells_that_a_question_compares_miss_runs_where_only_they_are_run(results):
    cells = [{"name": name, "variant": name, "axes": {}, "profile": "period"} for name in ("all", "dsdv", "olsr")]
    question = {"question": "?", "claim": "more", "metric": "acked_kbps", "compared": "dsdv", "with": "all", "matters": 1}
    rewritten(results, seeds=2, cells=cells, questions=[question], looks=[2, 4])
    report = Report(results)
    report.make()
    assert set(report.missing) == {("all", 2), ("dsdv", 1), ("dsdv", 2), ("olsr", 1), ("olsr", 2)}
    rewritten(results, asked_only=True)
    report = Report(results)
    report.make()
    assert set(report.missing) == {("all", 2), ("dsdv", 1), ("dsdv", 2)}


@pytest.mark.parametrize(("status", "verdict"), [("failed", "valid"), ("late", "valid"), ("complete", "void")])
def test_a_run_that_failed_or_stayed_void_is_status_1(results, status, verdict, capsys):
    """One that failed because its host was late stayed void."""
    run = results / "all" / "seed-1"
    ends = {"status": "failed", "host_late": True} if status == "late" else {"status": status}
    (run / "run.json").write_text(json.dumps(json.loads((run / "run.json").read_text()) | ends))
    (run / "verdict.json").write_text(json.dumps({"format": "manet-verdict/1", "verdict": verdict, "reasons": []}))
    assert manet.main(["report", str(results)]) == 1
    kind = "failed" if status == "failed" else "void"
    assert f"1 {kind}" in capsys.readouterr().out


def test_the_command_that_completes_older_results_is_the_plain_one(results, capsys):
    rewritten(results, seeds=2, quick=True)
    assert manet.main(["report", str(results)]) == 1
    assert f"finish with ./manet run e --quick --out {results} --resume (and the --set" in capsys.readouterr().out


def test_of_the_only_run_that_is_suspect_the_reasons_are_printed(results, capsys):
    """The folder after `manet run` of a single scenario."""
    verdict = {"format": "manet-verdict/1", "verdict": "suspect", "reasons": ["8.20 % of releases were more than 5000 us late"]}
    verdict |= {"lateness": {"max_us": 109_300.0}}
    (results / "all" / "seed-1" / "verdict.json").write_text(json.dumps(verdict))
    assert manet.main(["report", str(results)]) == 0
    message = "): 8.20 % of releases were more than 5000 us late; captures up to 109 ms behind the air [all/seed-1 suspect]"
    assert capsys.readouterr().out.splitlines()[-1].endswith(message)
