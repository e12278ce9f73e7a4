"""The figure of the way from 1999 to today, from kept rows made up."""

import csv
import json
from pathlib import Path

import pytest
from matplotlib.colors import to_rgba

from analysis.decisions.answers import answers_in
from analysis.decisions.rule import collapses, comparison
from analysis.drawing import style
from analysis.figures import hv_eras
from analysis.tables.kept_rows import KEPT, KeptRow, merged, rows_in, write
from analysis.tests.drawn import Box, Page, Panel, page
from analysis.tests.test_tables import make_run
from record.errors import RunFileError

GAINS = {"1999": 0.0, "no-arp": 200.0, "ack": -60.0, "today": 0.0}  # of each station over the one before, kbit/s
NAMES = [
    "reno-1999",
    "reno-no-arp",
    "reno-ack",
    "reno-today",
    "elfn-1999",
    "elfn-icmp",
    "elfn-no-arp",
    "elfn-today",
    "reno-no-learning",
]
SEEDS = range(1, 41)
QUESTION = {
    "question": "?",
    "claim": "more",
    "metric": "acked_kbps",
    "compared": "reno-no-arp",
    "with": "reno-1999",
    "matters": 20.0,
}


def level_kbps(variant: str) -> float:
    """Without the pattern's part: 300 kbit/s in 1999, 500 without ARP, 440 with link breaks by acknowledgements, and so on."""
    tcp, _, station = variant.partition("-")
    path = list(GAINS)
    reached = path[: path.index(station) + 1] if station in path else path[:1]
    return 300.0 + sum(GAINS[each] for each in reached) + 50.0 * (tcp == "elfn")


def kbps(variant: str, seed: int) -> float:
    """Patterns differ by far more than variants; a pair by 8 kbit/s at most, in turn either way, except where nothing changes."""
    moved = 0.0 if variant.endswith("-today") else 4.0 * (-1) ** (seed + NAMES.index(variant))
    return level_kbps(variant) + 2.0 * (seed % 20) + moved


def make(folder: Path, seeds: range = SEEDS, left_out: tuple[str, ...] = (), **more: object) -> Path:
    """A folder of results with kept rows only, without those of `left_out`."""
    cells = [{"name": f"{name}-speed10", "variant": name, "axes": {"speed": 10}, "identity": f"of-{name}"} for name in NAMES]
    description = {"name": "hv-eras", "quick": True, "axes": {"speed": [10]}, "variants": NAMES, "cells": cells, "looks": [4, 50]}
    (folder / "experiment.json").write_text(json.dumps(description | more))
    rows = [
        KeptRow(f"of-{name}", seed, "valid", {"variant": name, "speed": "10"}, {"acked_kbps": kbps(name, seed)})
        for name in NAMES
        if name not in left_out
        for seed in seeds
    ]
    write(folder / KEPT, merged(rows))
    return folder


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> tuple[Page, Path]:
    """The figure of 40 seeds of each variant, and its folder."""
    folder = make(tmp_path_factory.mktemp("eras"))
    return page(hv_eras.draw, folder), folder


def differences(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    with (folder / "pairs.csv").open() as file:
        return {(row["compared"], row["with"]): row for row in csv.DictReader(file)}


def line(panel: Panel, label: str) -> Box:
    """The bar at a line of the panel."""
    at = panel.yticks.index(label)
    (only,) = (box for box in panel.boxes if box.y[0] < at < box.y[1])
    return only


def test_shares_add_up_to_the_whole_way_and_bars_meet(drawn):
    reno, elfn, _ = drawn[0].panels
    found = differences(drawn[1])
    for tcp, path in (("reno", NAMES[:4]), ("elfn", NAMES[4:8])):
        steps = [float(found[step]["difference"]) for step in zip(path[1:], path, strict=False)]
        assert sum(steps) == pytest.approx(float(found[f"{tcp}-today", f"{tcp}-1999"]["difference"]), abs=1e-3)
    # 1 to 40 modulo 20 have the mean 9.5, twice: 319 in 1999, and 519, 459, 459 after it
    assert [line(reno, label).x for label in ("1999", "no ARP", "DSR: link breaks by its ACKs", "today")] == [
        (0, 319), (319, 519), (519, 459), (0, 459),
    ]  # fmt: skip
    assert line(reno, "the whole way").x == (319, 459)
    assert (reno.title, elfn.title) == ("Reno at 10 m/s", "ELFN at 10 m/s")


def test_an_interval_is_the_one_of_the_pair_everywhere(drawn):
    """In the figure, in pairs.csv, and by the rule over the same rows."""
    reno = drawn[0].panels[0]
    values = [(kbps("reno-ack", seed), kbps("reno-no-arp", seed)) for seed in SEEDS]
    known = comparison([one - other for one, other in values], collapses(values))
    row = differences(drawn[1])["reno-ack", "reno-no-arp"]
    assert (row["low"], row["high"], row["outcome"]) == (f"{known.low:.6g}", f"{known.high:.6g}", "less")
    at = reno.yticks.index("DSR: link breaks by its ACKs")
    (drawn,) = (one for one in reno.series if one.y == [at, at])
    assert drawn.x == pytest.approx([519 + known.low, 519 + known.high], abs=1e-3)
    assert f"-60 [{known.low:+.0f}, {known.high:+.0f}]" in reno.texts


def test_a_difference_that_a_question_asks_for_has_the_answers_pairs(tmp_path):
    """The question is decided before the last seed; its bar has the mean of its own pairs."""
    page(hv_eras.draw, make(tmp_path, questions=[QUESTION]))
    (asked,) = answers_in(tmp_path)
    row = differences(tmp_path)["reno-no-arp", "reno-1999"]
    assert (int(row["seeds"]), row["outcome"]) == (asked.answer.pairs, "more") and asked.answer.pairs < len(SEEDS)
    assert float(row["low"]) == pytest.approx(asked.answer.low, rel=1e-5)


def test_undecided_differences_are_pale_and_others_have_the_colour_of_their_sign(drawn):
    reno = drawn[0].panels[0]
    colours = {"no ARP": style.BLUE, "DSR: link breaks by its ACKs": style.VERMILION, "Linux as shipped, CUBIC": "white"}
    assert {label: line(reno, label).colour for label in colours} == {label: to_rgba(one) for label, one in colours.items()}
    assert differences(drawn[1])["reno-today", "reno-ack"]["outcome"] == "undecided"
    assert drawn[0].legend == ["mean", "more", "less", "undecided"]


def test_settings_turned_stand_beside_1999(drawn):
    reno = drawn[0].panels[0]
    row = differences(drawn[1])["reno-no-learning", "reno-1999"]
    assert float(row["difference"]) == pytest.approx(line(reno, "1999, but no routes from data packets").x[0] - 319, abs=1e-3)
    assert [each for each in differences(drawn[1]) if "reno-no-learning" in each] == [("reno-no-learning", "reno-1999")]


def test_elfn_is_compared_with_reno_at_the_stations_of_both(drawn):
    gain = drawn[0].panels[2]
    assert (gain.title, gain.yticks) == ("ELFN minus Reno at 10 m/s", ["1999", "no ARP", "Linux as shipped, CUBIC"])
    assert [one.points for one in gain.series if one.marker == "o"] == [[(50, 0)], [(50, 1)], [(50, 2)]]
    assert {("elfn-1999", "reno-1999"), ("elfn-today", "reno-today")} <= differences(drawn[1]).keys()


def test_a_variant_without_runs_is_named_and_nothing_stands_for_it(tmp_path):
    """Neither its share nor that of the next switch is known; the whole way is."""
    reno = page(hv_eras.draw, make(tmp_path, left_out=("reno-no-arp",))).panels[0]
    assert [text for text in reno.texts if text == "no runs"] == ["no runs"] * 2
    assert not any(0.5 < box.y[0] < 2 for box in reno.boxes)
    assert line(reno, "the whole way").x == (319, 459)


def test_one_run_of_each_variant_decides_nothing(tmp_path):
    drawn = page(hv_eras.draw, make(tmp_path, range(1, 2)))
    assert {row["outcome"] for row in differences(tmp_path).values()} == {"undecided"}
    assert drawn.legend == ["mean", "undecided"]
    assert "hv-eras quick: 1 pair per difference; runs: 9 valid" in drawn.words
    assert "±" not in drawn.words and "[" not in drawn.words
    for panel in drawn.panels[:2]:
        assert panel.xlim[0] == 0 and panel.xlim[1] > max(max(box.x) for box in panel.boxes), "no bar at the edge"


def test_runs_of_the_folder_and_kept_rows_are_one(tmp_path):
    """Seed 41 of three variants ran here."""
    make(tmp_path)
    for name in NAMES[:3]:
        make_run(tmp_path, name, 1, 41, 1000.0)
        run = tmp_path / f"{name}-hops1" / "seed-41" / "run.json"
        run.write_text(json.dumps(json.loads(run.read_text()) | {"axes": {"speed": 10}}))
        (tmp_path / f"{name}-hops1").rename(tmp_path / f"{name}-speed10")
    drawn = page(hv_eras.draw, tmp_path)
    assert len(rows_in(tmp_path, ("speed",))) == 9 * 40 + 3
    assert "40 to 41 pairs per difference; runs: 363 valid" in drawn.words
    assert differences(tmp_path)["reno-no-arp", "reno-1999"]["seeds"] == "41"


def test_a_folder_without_runs_is_an_error_with_the_command(tmp_path):
    make(tmp_path, range(0))
    with pytest.raises(RunFileError, match="no run that counts; run the experiment first"):
        hv_eras.draw(tmp_path)
