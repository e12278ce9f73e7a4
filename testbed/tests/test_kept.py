"""Runs kept as rows: written from a folder of results, counted as done by a campaign, merged with those of other machines."""

import dataclasses
import itertools
import json

import pytest

from analysis.decisions.rule import Answer, Outcome
from analysis.tables.kept_rows import KeptRow, merged, read, write
from analysis.tables.results import collect_runs, endings_of_cells, read_summary
from record.errors import RunFileError
from testbed import __main__ as manet
from testbed.campaigns import kept
from testbed.campaigns.batch import Batch
from testbed.campaigns.experiment import load
from testbed.campaigns.html_report import HtmlReport
from testbed.campaigns.report import Report, answer_lines
from testbed.campaigns.request import Request
from testbed.campaigns.rounds import Member, Rounds
from testbed.errors import UsageError
from testbed.tests.workers import TEXT, Workers, clear, noisy


@pytest.fixture
def machine(tmp_path):
    """Campaigns on several machines, whose checkouts have one folder of rows."""
    (tmp_path / "e.toml").write_text(TEXT)
    rows = tmp_path / "rows"

    def campaign(name, workers, *overrides, text=TEXT):
        (tmp_path / "e.toml").write_text(text)
        member = Member(load(tmp_path / "e.toml", Request(True, overrides)), tmp_path / name / "e")
        member.directory.mkdir(parents=True, exist_ok=True)
        (member.directory / "experiment.json").write_text(member.experiment.to_json())
        line = kept.lay_out(member.experiment, member.directory, rows).line("e")
        Rounds(tmp_path / name, [member], Batch(()), workers, lambda _line: None).run()
        return member, line

    def keep(member):
        description = json.loads((member.directory / "experiment.json").read_text())
        return kept.keep(member.directory, description, collect_runs(member.directory, ("hops",)), rows)

    campaign.keep, campaign.file = keep, rows / "e" / "runs.csv"
    return campaign


def answer_of(member):
    (found,) = member.answers()
    return found.to_json()


def test_a_campaign_elsewhere_runs_nothing_that_is_kept_and_answers_the_same(machine):
    first, line = machine("one", Workers(noisy))
    assert line == ""
    path, rows, new = machine.keep(first)
    assert (path, rows, new) == (machine.file, 28, 28)
    workers = Workers(noisy)
    second, line = machine("two", workers)
    assert (workers.runs, line) == ([], "e: 28 kept rows count as done (docs/results/e/runs.csv)")
    assert answer_of(second) == answer_of(first)
    report = Report(second.directory)
    report.make()
    assert report.missing == {}
    assert report.is_complete
    assert [found.to_json() for found in report.answers] == [answer_of(first)]
    Report(first.directory).make()
    tables = (read_summary(each.directory) for each in (first, second))
    of_runs, of_rows = ([row for row in table if row["metric"] == "acked_kbps"] for table in tables)
    assert of_rows == of_runs and [row["valid"] for row in of_rows] == [14, 14], "of kept rows as of their runs"
    html = HtmlReport(second.directory)
    assert "28 rows of earlier runs (kept.csv) count in means, answers" in html.make().read_text()
    assert html.is_complete


def test_a_report_has_a_line_for_each_question_with_pairs_and_one_for_the_others(machine):
    first, _ = machine("one", Workers(noisy))
    (found,) = first.answers()
    none = dataclasses.replace(found, answer=Answer(Outcome.UNDECIDED, 0))
    assert answer_lines([found], "e") == [found.line()]
    more = "2 questions have too few seeds; `./manet campaign e` runs as many as an answer needs"
    assert answer_lines([none, found, none], "e") == [found.line(), more]


def test_rows_and_runs_are_together_in_an_answer(machine):
    """Six of 14 seeds are kept: the other machine runs the other eight of both cells."""
    first, _ = machine("one", Workers(noisy))
    machine.keep(first)
    write(machine.file, [row for row in read(machine.file) if row.seed <= 6])
    workers = Workers(noisy)
    second, _ = machine("two", workers)
    assert sorted(workers.runs) == [(f"hops{hops}", seed) for hops in (1, 2) for seed in range(7, 15)]
    assert {**answer_of(second), "emulated_s": 0} == {**answer_of(first), "emulated_s": 0}
    report = Report(second.directory)
    report.make()
    assert report.results is not None
    assert list(endings_of_cells(report.results).values()) == [["8 valid", "6 kept"]] * 2, "as many as the mean is of"


def test_a_folder_of_rows_alone_gives_the_table_the_figure_and_the_answers(tmp_path):
    """docs/results/hv-fig14: the answers are those of claims.md, the figure is drawn, and nothing is written beside the rows."""
    rows = kept.FOLDER / "hv-fig14"
    assert kept.is_folder_of_rows(rows) and not kept.is_folder_of_rows(tmp_path)
    before = sorted(rows.iterdir())
    directory = kept.without_runs(rows, tmp_path)
    report = Report(directory)
    report.make()
    assert directory == tmp_path / "hv-fig14-rows" and sorted(rows.iterdir()) == before
    assert [path.name for path in report.figures if path.suffix == ".png"] == ["hv_elfn.png"] and not report.has_bad_runs
    experiment = load(kept.ROOT / "experiments" / "hv-fig14.toml", Request(True))
    counted = kept.rows_of(experiment)
    assert report.kept_text().startswith(f"{len(counted.rows)} rows of earlier runs") and len(counted.not_valid) > 0
    assert {found.verdict for found in report.answers} == {"holds"}
    (directory / "kept.csv").write_text("not of this checkout")
    assert len(read(kept.without_runs(rows, tmp_path) / "kept.csv")) == len(report.kept), "it is made anew"


def test_no_run_is_missing_of_rows_alone_if_a_cell_lacks_its_first_seed_or_every_seed(tmp_path, monkeypatch, capsys):
    """A run that was void has no row, and a cell may wait for its first campaign. Those of plain Reno are in the file of
    hv-fig12, which this folder does not have."""
    rows = read(kept.FOLDER / "hv-fig14" / "runs.csv")
    lacks_first, lacks_all = sorted({row.scenario for row in rows})[:2]
    left = [row for row in rows if row.scenario != lacks_all and (row.scenario, row.seed) != (lacks_first, 1)]
    write(kept.file_of("hv-fig14", tmp_path), left)
    monkeypatch.setattr("testbed.commands.report.results_folder", lambda: tmp_path)
    status = manet.main(["report", str(tmp_path / "hv-fig14")])
    lines = capsys.readouterr().out.splitlines()
    assert not [line for line in lines if line.startswith("runs ")]
    assert "  none (0 valid, 0 suspect, 0 void): " in lines[-1]
    assert lines[-1].endswith("there are no runs but kept rows, of which 3 of 6 cells have none")
    assert status == 0


def test_rows_of_no_experiment_or_of_none_that_counts_are_refused_in_one_line(tmp_path):
    for name, text in (("odd", "is no experiment of this checkout"), ("hv-fig14", "no row counts")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "runs.csv").write_text("scenario,seed,verdict,commit,version,kernel,ended,emulated_s\n")
        with pytest.raises(UsageError, match=text):
            kept.without_runs(tmp_path / name, tmp_path)


def test_rows_of_another_scenario_count_for_nothing_and_a_line_says_so(machine):
    first, _ = machine("one", Workers(clear))
    machine.keep(first)
    workers = Workers(clear)
    _, line = machine("two", workers, "duration=11")
    assert len(workers.runs) == 8
    assert line == "e: 8 of another scenario or size (count for nothing) (docs/results/e/runs.csv)"


def test_rows_of_another_experiment_with_the_same_scenario_count(machine, tmp_path):
    first, _ = machine("one", Workers(noisy))
    machine.keep(first)
    machine.file.parent.rename(machine.file.parent.with_name("other"))
    workers = Workers(noisy)
    second, line = machine("two", workers, text=TEXT.replace("hops = [1, 2]", "hops = [1, 2, 3]"))
    assert {cell for cell, _ in workers.runs} == {"hops3"}
    assert line.startswith("e: 28 kept rows count as done")
    assert answer_of(second) == answer_of(first)
    assert [(row.seed, row.cell["hops"]) for row in read(second.directory / "kept.csv")][:2] == [(1, "1"), (2, "1")]


def test_only_valid_rows_with_the_metrics_of_the_questions_count(machine):
    first, _ = machine("one", Workers(clear))
    machine.keep(first)
    rows = read(machine.file)
    rows[0] = dataclasses.replace(rows[0], verdict="suspect")
    rows[1] = dataclasses.replace(rows[1], metrics={})
    write(machine.file, rows)
    workers = Workers(clear)
    second, line = machine("two", workers)
    assert sorted(workers.runs) == sorted((f"hops{row.cell['hops']}", row.seed) for row in rows[:2])
    assert "6 kept rows count as done; 1 not valid (run again); 1 without a metric" in line
    assert answer_of(second)["pairs"] == 4
    machine.keep(second)
    assert [(row.verdict, bool(row.metrics)) for row in read(machine.file)] == [("valid", True)] * 8


def test_rows_stay_in_a_campaign_whose_checkout_loses_them(machine):
    first, _ = machine("one", Workers(clear))
    machine.keep(first)
    machine("two", Workers(clear))
    machine.file.unlink()
    workers = Workers(clear)
    second, _ = machine("two", workers)
    assert workers.runs == []
    assert answer_of(second) == answer_of(first)


def test_keeping_twice_gives_the_same_bytes(machine):
    first, _ = machine("one", Workers(noisy))
    machine.keep(first)
    before = machine.file.read_bytes()
    assert machine.keep(first)[1:] == (28, 0)
    assert machine.file.read_bytes() == before


def test_a_failed_run_has_a_row_without_values(machine):
    """Its seed has ended: the looks of an answer go on after it, here as there."""
    first, _ = machine("one", Workers(lambda hops, seed: None if (hops, seed) == (2, 3) else clear(hops, seed)))
    machine.keep(first)
    (failed,) = [row for row in read(machine.file) if row.verdict == "failed"]
    assert (failed.seed, failed.cell["hops"], failed.metrics) == (3, "2", {"acked_kbps": None})


def row(seed=1, verdict="valid", ended="2026-11-26T10:00:00.000+00:00", hops="1", **metrics):
    return KeptRow(f"scenario{hops}", seed, verdict, {"variant": "", "hops": hops}, metrics, 30.0, {"ended": ended})


def test_the_order_of_the_machines_does_not_matter():
    """Of a scenario and seed the best verdict stays, then the first end."""
    first, later = row(acked_kbps=1.0), row(ended="2026-11-27T10:00:00.000+00:00", acked_kbps=2.0)
    void, other = row(verdict="void", ended="2026-11-25T10:00:00.000+00:00"), row(seed=2, hops="10", acked_kbps=4.0)
    groups = [[first], [later], [void], [other, row(hops="9", acked_kbps=3.0)]]
    for order in itertools.permutations(groups):
        found = merged(*order)
        assert [(one.cell["hops"], one.seed, one.metrics["acked_kbps"]) for one in found] == [
            ("1", 1, 1.0), ("9", 1, 3.0), ("10", 2, 4.0),
        ]  # fmt: skip


def test_a_run_that_is_kept_again_with_more_metrics_gets_them():
    assert merged([row(acked_kbps=1.0)], [row(acked_kbps=1.0, percent=50.0)])[0].metrics == {"acked_kbps": 1.0, "percent": 50.0}


def test_a_value_that_is_missing_is_not_one_that_was_not_kept(tmp_path):
    write(tmp_path / "runs.csv", merged([row(acked_kbps=1.5, percent=None), row(seed=2, acked_kbps=2.0)]))
    assert (tmp_path / "runs.csv").read_text().splitlines() == [
        "scenario,seed,verdict,commit,version,kernel,ended,emulated_s,variant,hops,acked_kbps,percent",
        "scenario1,1,valid,,,,2026-11-26T10:00:00.000+00:00,30.0,,1,1.5,NA",
        "scenario1,2,valid,,,,2026-11-26T10:00:00.000+00:00,30.0,,1,2,",
    ]
    assert [one.metrics for one in read(tmp_path / "runs.csv")] == [{"acked_kbps": 1.5, "percent": None}, {"acked_kbps": 2.0}]


@pytest.mark.parametrize(
    "line", ["<<<<<<< HEAD", "a,1,valid", "a,x,valid,,,,,1,,1,2", "a,1,good,,,,,1,,1,2", "a,1,valid,,,,,1,,1,2,3"]
)
def test_a_damaged_file_is_named_with_its_line(tmp_path, line):
    path = tmp_path / "runs.csv"
    write(path, merged([row(acked_kbps=1.0)]))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(RunFileError, match=r"runs\.csv, line 3: is no row of a run; take it from git again"):
        read(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(RunFileError, match='has no column "scenario"'):
        read(path)


def test_the_verb_keeps_rows_of_experiments_of_the_checkout_only(machine, tmp_path, monkeypatch, capsys):
    first, _ = machine("one", Workers(clear))
    assert manet.main(["report", str(first.directory), "--rows"]) == 2
    assert "e is no experiment of this checkout; rows are kept of those in experiments/ only" in capsys.readouterr().err
    monkeypatch.setattr("testbed.campaigns.library.names", lambda: ["e"])
    monkeypatch.setattr(kept, "file_of", lambda name, folder=None: tmp_path / "kept" / name / "runs.csv")
    assert manet.main(["report", "--html", str(tmp_path / "one"), "--rows"]) == 0
    assert f"{tmp_path}/kept/e/runs.csv: 8 rows, 8 of them new" in capsys.readouterr().err


def test_each_experiment_of_the_papers_keeps_what_its_questions_ask():
    for name in ("hv-fig3", "im-dsdv", "wm-http"):
        description = json.loads(load(kept.ROOT / "experiments" / f"{name}.toml", Request(True)).to_json())
        assert {question["metric"] for question in description["questions"]} <= set(kept.metrics_of(description, []))


def untidy(folder, scratch):
    """The experiments whose rows are not as the verb writes them, such as after a merge by hand."""
    found = []
    for path in sorted(folder.glob("*/runs.csv")):
        write(scratch, merged(read(path)))
        found += [path.parent.name] if scratch.read_bytes() != path.read_bytes() else []
    return found


def test_the_committed_rows_are_as_the_verb_writes_them(tmp_path):
    """A merge in git may leave two rows of one run, or another order; `manet report --rows` of any folder puts it right."""
    assert untidy(kept.FOLDER, tmp_path / "tidy.csv") == []


def test_rows_that_git_has_merged_are_put_right_by_the_next_that_are_kept(machine, tmp_path):
    first, _ = machine("one", Workers(clear))
    machine.keep(first)
    folder, lines = machine.file.parents[1], machine.file.read_text().splitlines(keepends=True)
    machine.file.write_text("".join([*lines, lines[1]]))
    assert untidy(folder, tmp_path / "tidy.csv") == ["e"]
    machine.keep(first)
    assert untidy(folder, tmp_path / "tidy.csv") == []
