"""The figure of an experiment that names none: the metric against the first axis, a line for each combination of the others."""

import itertools
import json
from pathlib import Path

import pytest

from analysis.drawing import style
from analysis.figures import general
from analysis.tables import shown
from analysis.tables.results import collect, write_tables
from analysis.tests.drawn import panels
from analysis.tests.test_tables import make_run
from record.errors import RunFileError

# Student's t for one degree of freedom at 97.5 %; two values 20 apart have s / sqrt(2) = 10
HALF_OF_20_APART = 12.7062 * 10


def campaign(folder: Path, axes: dict[str, list], variants: tuple[str, ...] = ("",), units: dict | None = None) -> Path:
    """Two runs of each cell: 1000, 1100, 1200 ... kbit/s in the order of the cells, and 20 more."""
    values = itertools.count(1000, 100)
    for number, (variant, *cell) in enumerate(itertools.product(variants, *axes.values())):
        value = next(values)
        for seed in (1, 2):
            make_run(folder, f"cell{number}", 1, seed, value + 20.0 * (seed - 1))
            path = folder / f"cell{number}-hops1" / f"seed-{seed}" / "run.json"
            there = {"variant": variant, "axes": dict(zip(axes, cell, strict=True))}
            path.write_text(json.dumps(json.loads(path.read_text()) | there))
    described = {"name": "odd", "axes": axes, "variants": list(variants), "units": units or {}, "quick": False}
    (folder / "experiment.json").write_text(json.dumps(described))
    write_tables(collect(folder))
    return folder


def test_a_line_for_each_value_of_the_other_axes_with_intervals_at_the_points(tmp_path):
    axes = {"spacing": [200, 150], "window": [4, 32]}
    campaign(tmp_path, axes, units={"spacing": "m", "window": "segments"})
    (panel,) = panels(general.draw, tmp_path)
    assert {name: one.points for name, one in panel.named.items()} == {
        "window 4 segments": [(150, 1210), (200, 1010)],
        "window 32 segments": [(150, 1310), (200, 1110)],
    }
    assert panel.named["window 4 segments"].half_widths == [pytest.approx(HALF_OF_20_APART, abs=0.01)] * 2
    assert (panel.xlabel, panel.ylabel) == ("spacing (m)", "acknowledged throughput (kbit/s)")
    assert panel.ylim[0] == 0
    looks = {(one.colour, one.marker) for one in panel.series}
    assert len(looks) == 2


def test_points_at_words_stand_side_by_side_and_nothing_joins_them(tmp_path):
    campaign(tmp_path, {"tcp": ["newreno", "elfn(newreno, probe=2s)"]}, variants=("aodv", "mine"))
    (panel,) = panels(general.draw, tmp_path)
    assert {name: one.points for name, one in panel.named.items()} == {
        "AODV": [(-0.15, 1010), (0.85, 1110)], "mine": [(0.15, 1210), (1.15, 1310)],
    }  # fmt: skip
    assert (panel.xlabel, panel.xticks) == ("tcp", ["newreno", "elfn(newreno, probe=2s)"])
    assert {one.line for one in panel.series} == {"None"}


def test_variants_alone_are_places_on_the_axis(tmp_path):
    campaign(tmp_path, {}, variants=("aodv", "dsr"))
    (panel,) = panels(general.draw, tmp_path)
    assert [one.points for one in panel.series] == [[(0, 1010), (1, 1110)]]
    assert panel.xticks == ["AODV", "DSR"]


def test_a_key_of_a_table_is_readable(tmp_path):
    campaign(tmp_path, {"links.0.error_rate": [0, 0.1]})
    (panel,) = panels(general.draw, tmp_path)
    assert panel.xlabel == "links.0 error rate"


def test_the_experiment_selects_metric_words_and_size_for_a_papers_column(tmp_path):
    campaign(tmp_path, {"tcp": ["newreno", "cubic"], "window": [4, 32]}, variants=("aodv", "mine"), units={"window": "segments"})
    for metrics in tmp_path.glob("*/seed-*/metrics.json"):
        content = json.loads(metrics.read_text())
        content["flows"]["flow1"]["rtt_ms_mean"] = 25.0
        metrics.write_text(json.dumps(content))
    write_tables(collect(tmp_path))
    path = tmp_path / "experiment.json"
    plot = {
        "metric": "rtt_ms_mean", "x_label": "algorithm", "y_label": "RTT (ms)", "width": 3.5, "height": 2.2, "origin": False,
        "legend": {"newreno": "NewReno", "32": "W = 32", "mine": "our daemon"},
    }  # fmt: skip
    path.write_text(json.dumps(json.loads(path.read_text()) | {"plot": plot}))
    with style.kept() as pages:
        general.draw(tmp_path)
    (page,) = pages
    assert list(page.get_size_inches()) == [3.5, 2.2]
    assert page._supxlabel is None and page.get_suptitle() == "", "no line of origin"
    (panel,) = panels(general.draw, tmp_path)
    assert (panel.xlabel, panel.ylabel, panel.xticks) == ("algorithm", "RTT (ms)", ["NewReno", "cubic"])
    assert {y for one in panel.series for y in one.y} == {25}
    assert set(panel.named) == {
        "window 4 segments, AODV", "W = 32, AODV", "window 4 segments, our daemon", "W = 32, our daemon",
    }  # fmt: skip


def test_the_line_of_origin_fits_a_narrow_page(tmp_path):
    campaign(tmp_path, {"window": [4, 32]})
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"plot": {"width": 2.0}}))
    with style.kept() as pages:
        general.draw(tmp_path)
    lines = pages[0]._supxlabel.get_text().splitlines()
    assert " ".join(lines) == "odd full: 2 runs per point (seeds 1 to 2); 4 valid"
    assert max(map(len, lines)) <= 40 and len(lines) == 2
    assert pages[0].get_suptitle() == "2 runs per point"


def test_a_metric_without_words_of_its_own_is_named_without_its_unit():
    metrics = ("silence_s", "rtt_ms_mean", "total_acked_kbps", "segments", "loss")
    assert [shown.plain(metric).label for metric in metrics] == ["silence", "rtt mean", "total acked", "segments", "loss"]


def test_without_a_mean_there_is_one_line(tmp_path):
    make_run(tmp_path, "a", 1, 1, 5.0, verdict="void")
    write_tables(collect(tmp_path, {"name": "e", "axes": {"hops": [1]}}))
    with pytest.raises(RunFileError, match="no run that counts"):
        general.draw(tmp_path)


def test_few_runs_are_named_above_the_legend(tmp_path):
    campaign(tmp_path, {"window": [4, 32], "hops": [1, 2]})
    with style.kept() as pages:
        general.draw(tmp_path)
    (page,) = pages
    assert page.legends[0].get_title().get_text() == "2 runs per point" and page.get_suptitle() == ""
