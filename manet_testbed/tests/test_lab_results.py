"""Tables, comparisons and heat maps in Python, by crafted runs whose numbers are known."""

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.decisions.pairs import COLUMNS, pairs, write_pairs
from analysis.drawing import style
from analysis.figures import general
from analysis.tables.results import METRICS, collect_runs
from analysis.tests.drawn import panels
from analysis.tests.test_tables import make_run
from manet_testbed import MeshError, Results, Run, UnreadableResults, WrongRequest, mean_and_interval

VEGAS, RENO = "vegas", "reno"
# kbit/s by variant, hops and seed: vegas is 20 and 40 above reno over one hop, 20 above and 20 below over two
VALUES = {
    (RENO, 1): (600.0, 640.0), (VEGAS, 1): (620.0, 680.0),
    (RENO, 2): (300.0, 320.0), (VEGAS, 2): (320.0, 300.0),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for (variant, hops), values in VALUES.items():
        for seed, value in enumerate(values, start=1):
            verdict = "suspect" if (variant, hops, seed) == (VEGAS, 2, 2) else "valid"
            make_run(tmp_path, variant, hops, seed, value, verdict=verdict)
    make_run(tmp_path, RENO, 1, 3, 9000.0, verdict="void")
    make_run(tmp_path, VEGAS, 1, 3, 9000.0, status="failed")
    for path in tmp_path.glob("*/seed-*/scenario.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"profile": "period"}))
    cells = [
        {"name": f"{variant}-hops{hops}", "variant": variant, "axes": {"hops": hops}, "profile": "period"}
        for variant, hops in VALUES
    ]
    described = {
        "format": "manet-experiment/1", "name": "crafted", "question": "Which?", "source": None, "figure": None,
        "published": None, "ns2": None, "quick": False, "axes": {"hops": [1, 2]}, "units": {}, "variants": [RENO, VEGAS],
        "seeds": 3, "cells": cells, "expect": {},
    }  # fmt: skip
    (tmp_path / "experiment.json").write_text(json.dumps(described))
    return tmp_path


def from_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def as_csv(frame: pl.DataFrame) -> list[dict[str, str]]:
    """The rows of a frame as the tables write them: six digits, empty for none."""

    def text(value: Any) -> str:
        return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)

    return [{key: text(value) for key, value in row.items()} for row in frame.iter_rows(named=True)]


def test_the_frames_are_the_tables_on_disk(folder: Path) -> None:
    results = Results.open(folder)
    assert as_csv(results.summary) == from_csv(folder / "summary.csv")
    on_disk = from_csv(folder / "table.csv")
    empty = [name for name in METRICS if all(row[name] == "" for row in on_disk)]
    assert len(on_disk) == 10 and len(empty) > 20
    assert as_csv(results.runs) == [{key: value for key, value in row.items() if key not in empty} for row in on_disk]


def test_the_columns_have_types_and_units(folder: Path) -> None:
    results = Results.open(folder)
    assert results.runs.schema["hops"] == pl.Int64() and results.runs.schema["acked_kbps"] == pl.Float64()
    assert (results.units["acked_kbps"], results.units["rtt_ms_mean"], results.units["loss"]) == ("kbit/s", "ms", "1")
    assert set(results.summary["unit"]) == {results.units[name] for name in results.summary["metric"]}


def test_void_and_failed_runs_are_in_the_table_and_in_no_mean(folder: Path) -> None:
    results = Results.open(folder)
    mean = results.of("acked_kbps").filter((pl.col("variant") == RENO) & (pl.col("hops") == 1)).row(0, named=True)
    # Student's t for one degree of freedom at 97.5 %; two values 40 apart have s / sqrt(2) = 20
    assert (mean["mean"], mean["n"], mean["void"]) == (620.0, 2, 1)
    assert mean["ci95"] == pytest.approx(12.7062 * 20, abs=0.01)
    assert set(results.runs.filter(pl.col("seed") == 3)["status"]) == {"complete", "failed"}
    assert results.verdict.startswith("failed (7 valid, 1 suspect, 1 void, 1 failed")
    assert repr(results).startswith("<Results crafted: 8 of 10 runs count, profile period, seeds 1 to 3, failed (")


def test_a_comparison_is_paired_by_seed_and_equal_to_the_file_of_pairs(folder: Path) -> None:
    results = Results.open(folder)
    found = results.compare(VEGAS, RENO, "acked_kbps")
    assert found.select("hops", "difference", "seeds", "outcome").rows() == [(1, 30.0, 2, "undecided"), (2, 0.0, 2, "undecided")]
    path = write_pairs(folder / "pairs.csv", pairs(collect_runs(folder, ("hops",)), ("hops",), "variant", RENO, ("acked_kbps",)))
    assert found["profile"].to_list() == ["period", "period"]
    ours = [{"where": row["hops"]} | row for row in as_csv(found)]
    assert [{name: row[name] for name in COLUMNS} for row in ours] == from_csv(path)


def test_two_seeds_have_an_interval_and_decide_nothing(folder: Path) -> None:
    hops = Results.open(folder).compare(2, 1, key="hops").row(0, named=True)
    # reno: 300 - 600 and 320 - 640, a difference of 20 between two seeds: 12.7062 * 10 beside the mean
    assert (hops["variant"], hops["difference"], hops["outcome"]) == (RENO, -310.0, "undecided")
    assert (hops["low"], hops["method"]) == (pytest.approx(-437.06, abs=0.01), "student-t, few pairs")


def test_one_seed_decides_nothing(tmp_path: Path, folder: Path) -> None:
    for path in folder.glob("*/seed-2/verdict.json"):
        path.write_text(json.dumps({"verdict": "void"}))
    (row,) = Results.open(folder).compare(VEGAS, RENO).filter(pl.col("hops") == 1).rows(named=True)
    assert (row["seeds"], row["low"], row["outcome"]) == (1, None, "undecided")


def test_the_mean_of_a_reader_is_that_of_the_tables() -> None:
    assert mean_and_interval([600.0, 640.0, None])["mean"] == 620.0
    assert mean_and_interval([5.0]) == {"mean": 5.0, "ci95": None, "n": 1}


@pytest.mark.cluster
def test_pandas_takes_the_frames(folder: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: ./setup.sh --cluster, whose Snakemake needs it")
    frame = Results.open(folder).runs.to_pandas()
    assert list(frame["seed"])[:3] == [1, 2, 3] and frame["acked_kbps"].max() == 9000


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda results: results.of("acked_kbs"), "metric='acked_kbs': there is no such metric; did you mean \"acked_kbps\"?"),
        (lambda results: results.compare("cubic", RENO), "variant 'cubic': no run has it; there are reno, vegas"),
        (lambda results: results.compare(1, 2, key="hop"), "key='hop': is no axis; give one of hops, variant"),
        (lambda results: results.heat_map("hops", "window"), "window: is no axis; give one of hops, variant"),
        (lambda results: results.figure("hv_fig99"), 'no such figure "hv_fig99"; there are be_per, '),
        (lambda results: results.run(hop=1), "hop=1: is no axis; give one of hops, variant"),
        (
            lambda results: results.run("all"),
            "no run of this cell; the cells are reno-hops1, reno-hops2, vegas-hops1, vegas-hops2",
        ),
        (lambda results: results.run(hops=1), "several cells have these values; name one of reno-hops1"),
        (lambda results: results.run("reno-hops1", seed=9), "no run with seed 9; this cell has 1, 2, 3"),
    ],
    ids=range(9),
)
def test_a_wrong_name_is_one_line_with_the_remedy(folder: Path, wrong: Any, text: str) -> None:
    with pytest.raises(WrongRequest) as refusal:
        wrong(Results.open(folder))
    assert text in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_run_is_found_by_cell_or_by_its_values(folder: Path) -> None:
    results = Results.open(folder)
    assert results.run("vegas-hops2", seed=2).directory == results.run(variant=VEGAS, hops=2, seed=2).directory
    run = results.run("vegas-hops2", seed=2)
    assert (run.variant, run.axes, run.seed, run.status, run.verdict, run.counts) == (
        VEGAS,
        {"hops": 2},
        2,
        "complete",
        "suspect",
        True,
    )
    assert [each.counts for each in results].count(False) == 2


def test_a_folder_without_results_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(WrongRequest, match=r"holds no experiment\.json; give a folder that `manet run` has made$"):
        Results.open(tmp_path)
    with pytest.raises(UnreadableResults, match=r"no run in it"):
        Run(tmp_path)


def test_a_damaged_run_is_left_out_and_a_damaged_experiment_is_one_line(folder: Path) -> None:
    (folder / "reno-hops1" / "seed-1" / "run.json").write_text("{")
    results = Results.open(folder)
    assert list(results.left_out) == ["reno-hops1/seed-1"] and "1 left out" in results.verdict
    assert (len(results), results.run("reno-hops1", seed=2).seed) == (9, 2)
    (folder / "experiment.json").write_text("{")
    with pytest.raises(WrongRequest, match=r"experiment\.json: is not JSON; run again with resume=True to rewrite it"):
        Results.open(folder)


def test_a_table_that_may_not_be_written_is_one_line(folder: Path) -> None:
    (folder / "table.csv").mkdir()
    with pytest.raises(MeshError, match=r"table\.csv: is a folder and no plain file; give another name$"):
        Results.open(folder)


def test_the_figure_object_draws_what_the_file_shows(folder: Path) -> None:
    results = Results.open(folder)
    figure = results.figure()
    before = sorted(path.name for path in folder.iterdir())
    with style.settings():
        figure.savefig(folder / "again.png", format="png")
    assert (folder / "again.png").read_bytes() == results.figures[0].read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == sorted([*before, "again.png"])
    assert panels(lambda: figure.savefig(folder / "again.png")) == panels(general.draw, folder)


def test_a_figure_shows_itself_in_a_notebook_and_leaves_no_file(folder: Path) -> None:
    results = Results.open(folder)
    before = sorted(folder.rglob("*"))
    assert results.figure()._repr_png_().startswith(b"\x89PNG")
    assert results.heat_map("hops", "variant")._repr_png_().startswith(b"\x89PNG")
    assert sorted(folder.rglob("*")) == before


def test_a_heat_map_names_mean_interval_and_runs_of_each_cell(folder: Path) -> None:
    figure = Results.open(folder).heat_map("hops", "variant")
    (axes,) = figure.axes
    texts = {(round(text.get_position()[0]), round(text.get_position()[1])): text.get_text() for text in axes.texts}
    assert texts == {(0, 0): "620 ± 254 (2)", (1, 0): "310 ± 127 (2)", (0, 1): "650 ± 381 (2)", (1, 1): "310 ± 127 (2)"}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2"]
    assert [label.get_text() for label in axes.get_yticklabels()] == [RENO, VEGAS]
    dashed = [patch for patch in axes.patches if patch.get_linestyle() == "--"]
    assert [round(patch.get_x()) for patch in dashed] == [1] and axes.get_title(loc="left").startswith(
        "acked kbps (kbit/s), profile"
    )
    assert "1 suspect" in figure.get_supxlabel()


def test_a_cell_without_a_run_that_counts_is_empty(folder: Path) -> None:
    for path in folder.glob("vegas-hops2/*/verdict.json"):
        path.write_text(json.dumps({"verdict": "void"}))
    (axes,) = Results.open(folder).heat_map("hops", "variant").axes
    assert "no run counts" in [text.get_text() for text in axes.texts]


def test_values_that_are_tables_are_found_by_their_value(folder: Path) -> None:
    """table.csv has them as JSON."""
    aodv, hello = {"protocol": "aodv"}, {"protocol": "aodv", "link": "hello"}
    for hops, routing in ((1, aodv), (2, hello)):
        for path in folder.glob(f"*-hops{hops}/seed-*/run.json"):
            path.write_text(json.dumps(json.loads(path.read_text()) | {"axes": {"routing": routing}}))
    description = json.loads((folder / "experiment.json").read_text()) | {"axes": {"routing": [aodv, hello]}}
    (folder / "experiment.json").write_text(json.dumps(description))
    for path in folder.glob("*/seed-*/metrics.json"):
        path.touch()
    results = Results.open(folder)
    assert results.run(variant=RENO, routing=hello, seed=2).directory == folder / "reno-hops2" / "seed-2"
    assert results.compare(hello, aodv, key="routing")["difference"].to_list() == [-310.0, -340.0]
    assert len(results.heat_map("variant", "variant", routing=hello).axes[0].texts) == 2


def test_a_figure_without_anything_to_draw_is_one_line(folder: Path) -> None:
    with pytest.raises(UnreadableResults, match=r"figure cwnd has nothing to draw in these runs$"):
        Results.open(folder).figure("cwnd")


def test_a_heat_map_of_one_of_several_axes_asks_for_the_others(folder: Path) -> None:
    results = Results.open(folder)
    with pytest.raises(UnreadableResults, match=r"a cell has several rows; give a value of variant"):
        results.heat_map("hops", "hops")
    (axes,) = results.heat_map("hops", "hops", variant=RENO).axes
    assert len(axes.texts) == 2
