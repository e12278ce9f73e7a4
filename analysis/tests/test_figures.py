"""Every figure of analysis/figures draws its data and has its caption as docstring."""

import csv
import importlib
import itertools
import json
import shutil
import tomllib
from pathlib import Path

import pytest

from analysis import figures
from analysis.decisions.rule import comparison
from analysis.drawing import paired, shared, style
from analysis.figures import (
    be_per,
    be_recompute,
    hv_elfn,
    hv_fig1,
    hv_fig3,
    hv_fig7,
    hv_load,
    hv_patterns,
    im_cwnd,
    im_routes,
    im_throughput,
    moving_chain,
    routing_chain,
    routing_reaction,
    rt_tables,
    wm_comparison,
)
from analysis.figures import cwnd as cwnd_figure
from analysis.metrics.analyse import analyse_run
from analysis.tables.kept_rows import rows_in
from analysis.tables.results import collect, write_tables
from analysis.tests.drawn import page, panels
from analysis.tests.test_tables import EXPERIMENT, make_run, metrics_of
from record.errors import RunFileError

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = Path(__file__).parent / "fixtures" / "two-flows"
NAMES = sorted(path.stem for path in Path(figures.__file__).parent.glob("*.py") if path.stem != "__init__")


@pytest.fixture
def campaign(tmp_path) -> Path:
    """Two variants, up to three hops, one of the cells all void."""
    for variant in ("ns2", "hv"):
        for hops, value in ((1, 1250.0), (2, 630.0), (3, 400.0)):
            for seed in (1, 2):
                make_run(tmp_path, variant, hops, seed, value + 10 * seed, verdict="void" if hops == 3 else "valid")
    write_tables(collect(tmp_path, EXPERIMENT))
    return tmp_path


@pytest.fixture
def run_dir(tmp_path) -> Path:
    folder = Path(shutil.copytree(FIXTURE, tmp_path / "hops2" / "seed-1"))
    analyse_run(folder)
    return folder


def near(values: list[float]):
    """As Series has them: rounded to four digits."""
    return pytest.approx(values, abs=1e-4)


# Of two runs 10 kbit/s apart: Student's t for one degree of freedom at 97.5 % times s / sqrt(2), 12.7062 * 5
HALF = 63.531


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_a_caption_and_a_draw_function(name):
    module = importlib.import_module(f"analysis.figures.{name}")
    assert len(module.__doc__) > 80
    assert callable(module.draw)


def test_a_figure_is_a_png_a_pdf_and_an_svg(campaign):
    png, pdf, svg = hv_fig1.draw(campaign)
    assert [png.name, pdf.name, svg.name] == ["hv_fig1.png", "hv_fig1.pdf", "hv_fig1.svg"]
    assert png.read_bytes().startswith(b"\x89PNG") and pdf.read_bytes().startswith(b"%PDF") and b"<svg" in svg.read_bytes()


def test_hv_fig1_draws_measured_ns2_published_and_peer_values(campaign):
    top, ratios = panels(hv_fig1.draw, campaign)
    for variant, theirs in (("ns2", [1233.64, 619.19]), ("hv", [1435.78, 721.16])):
        measured = top.of(variant)
        assert (measured.points, measured.half_widths) == ([(1, 1265), (2, 645)], near([HALF, HALF])), "the void cell is left out"
        assert top.of(variant, filled=False).points == [(1, theirs[0]), (2, theirs[1])]
        quotient = ratios.of(variant)
        assert quotient.y == near([1265 / theirs[0], 645 / theirs[1]])
        assert quotient.half_widths == near([HALF / theirs[0], HALF / theirs[1]])
    (paper,) = (one for one in top.series if one.marker == "x")
    assert len(paper.points) == 10 and paper.points[:2] == [(1, 1463.0), (2, 729.0)]
    (peer,) = (one for one in top.series if one.marker == "+")
    assert peer.points == [(1, 1691), (2, 889), (3, 598), (4, 446), (5, 354)]
    (share,) = (one for one in top.series if one.line == ":")
    assert share.points[0] == (1, 1691) and share.points[-1] == (10, 169.1)
    assert [box.y for box in ratios.boxes] == [(0.93, 1.07)]
    assert ratios.texts == ["grey: within 7 % of ns-2.35, the bound at full size"]
    assert top.legend == ["Holland and Vaidya 1999, figure 1", "Mininet-WiFi + wmediumd", "hv: all at 2 Mbit/s, 180 m",
                          "ns2: data at 2, control at 1 Mbit/s, 200 m"]  # fmt: skip
    assert (top.ylabel, ratios.xlabel) == ("TCP throughput, acknowledged (kbit/s)", "hops")


def test_hv_fig1_draws_the_references_after_a_campaign_of_void_runs(tmp_path):
    make_run(tmp_path, "ns2", 1, 1, 1.0, verdict="void")
    write_tables(collect(tmp_path, EXPERIMENT))
    top, ratios = panels(hv_fig1.draw, tmp_path)
    assert top.of("ns2").points == ratios.of("ns2").points == []
    assert len(next(one for one in top.series if one.marker == "x").points) == 10, "the paper's is there"


def test_hv_fig1_without_tables_names_the_first_command(tmp_path):
    with pytest.raises(RunFileError, match=r"summary\.csv: missing; make the tables first"):
        hv_fig1.draw(tmp_path)


def test_the_same_data_give_the_same_files(campaign):
    first = [path.read_bytes() for path in hv_fig1.draw(campaign)]
    assert [path.read_bytes() for path in hv_fig1.draw(campaign)] == first


def test_cwnd_draws_a_run_and_a_folder_of_runs(run_dir):
    (window, times), alike = panels(cwnd_figure.draw, run_dir), panels(cwnd_figure.draw, run_dir.parent.parent)
    assert repr([panel.series for panel in alike]) == repr([window.series, times.series]), "nan equals nothing"
    cwnds = window.named["congestion window"]
    # 60 samples, one each 0.1 s from 0.09 on; iperf3's control connection, which has others, is left out
    assert (len(cwnds.points), cwnds.points[0], cwnds.x[-1], cwnds.steps) == (61, (0.09, 2), 5.99, "steps-post")
    assert cwnds.y[:5] == [2, 2, 2, 3, 3]
    assert dict(cwnds.points)[2.29] == 8 and dict(cwnds.points)[2.39] == 4 == window.named["slow-start threshold"].y[-1]
    assert set(times.named["retransmission time-out"].y) == {0.24} and set(times.named["smoothed round trip"].y) == {0.04}
    assert [box.x for box in window.boxes] == [(0, 1), (5, 5.99)], "what the metrics do not count"
    assert (window.title, times.xlabel) == ("flow1: sta1 to sta2", "time since the flow's first packet (s)")


def test_cwnd_falls_at_a_timeout(run_dir):
    path = run_dir / "tcp.csv"
    head, *rows = path.read_text().splitlines()
    last = dict(zip(head.split(","), next(row for row in reversed(rows) if ",10.0.0.1,40000," in row).split(","), strict=True))
    for number, cwnd in ((1, 9), (2, 1)):
        at_ns = int(last["t_ns"]) + number * 10**9
        row = last | {"t_ns": str(at_ns), "snd_cwnd": str(cwnd), "event": "timeout", "detail": str(number)}
        rows.append(",".join(row.values()))
    path.write_text("\n".join([head, *rows]) + "\n")
    window = panels(cwnd_figure.draw, run_dir)[0].named["congestion window"]
    assert window.points[-2:] == [(6.99, 1), (7.99, 1)]


def test_cwnd_of_a_run_without_samples_is_an_error_with_the_remedy(run_dir):
    (run_dir / "tcp.csv").unlink()
    with pytest.raises(RunFileError, match=r"tcp\.csv: no TCP samples; .*manet doctor"):
        cwnd_figure.draw(run_dir)


def test_routing_chain_draws_measured_and_ns2_values(tmp_path):
    for variant in ("aodv", "dsr", "olsr"):  # of OLSR ns-2.35 has nothing
        for hops in (1, 2, 3):
            make_run(tmp_path, variant, hops, 1, 1250.0 / hops, verdict="suspect" if hops == 3 else "valid")
    write_tables(collect(tmp_path, {"name": "routing-chain", "axes": {"hops": [1, 2, 3]}, "ns2": "chain_routing"}))
    drawn = page(routing_chain.draw, tmp_path)
    top, ratios = drawn.panels
    for variant, theirs in (("aodv", [1254.85, 629.67, 353.58]), ("dsr", [1233.17, 619.04, 285.31]), ("olsr", [])):
        assert top.of(variant).points == [(1, 1250), (2, 625), (3, near(416.667))]
        assert top.of(variant, filled=False).y == theirs
        assert ratios.of(variant).y == near([1250 / hops / rate for hops, rate in enumerate(theirs, start=1)])
    assert top.rings == [(3, near(416.667))] * 3 and len(ratios.rings) == 2
    assert top.legend == ["AODV", "DSR", "OLSR", "with a suspect run"]
    assert "one run each\nopen: ns-2.35" in drawn.words
    assert [box.y for box in ratios.boxes] == [(0.85, 1.15)]


def test_routing_reaction_draws_quartiles_and_counts_runs_that_never_recovered(tmp_path):
    for variant, times in (("aodv", [0.1, 0.2, 0.3, 0.4, 0.5]), ("aodv-silence", [2.0, None, 3.0, None])):
        for seed, value in enumerate(times, start=1):
            make_run(tmp_path, variant, 2, seed, 1.0)
            path = tmp_path / f"{variant}-hops2" / f"seed-{seed}" / "metrics.json"
            metrics = json.loads(path.read_text())
            metrics["flows"]["flow1"]["reaction_s"] = value
            path.write_text(json.dumps(metrics))
    (panel,) = panels(routing_reaction.draw, tmp_path)
    assert panel.yticks == ["AODV, link feedback", "AODV, no feedback"]
    # of 2, 3, never, never: quartiles between 2 and 3 and among the never
    assert panel.texts == [
        "0.3 s (0.2 to 0.4), n = 5", "inf s (2.75 to inf), n = 4, 2 never", "median (quartiles), runs",
    ]  # fmt: skip
    assert panel.title == "Time without deliveries after the relay in use dies"
    dots = [one.x for one in panel.series if one.marker == "o"]
    assert dots == [[0.1, 0.2, 0.3, 0.4, 0.5], [2, 3]]
    assert [box.x for box in panel.boxes] == [(0.2, 0.4), (2.75, 6)], "quartiles; never is at the edge, twice the longest"
    assert [one.x for one in panel.series if one.marker == "None"] == [[0.3, 0.3], [6, 6]], "medians"
    assert (tmp_path / "reaction.csv").read_text().splitlines()[1] == "aodv,5,0,0.3000,0.2000,0.4000,0.1000,0.5000"


def test_routing_reaction_has_a_median_if_one_of_three_runs_never_recovered():
    row = routing_reaction.statistics("dsdv", [3.0, None, 2.0])
    assert (row["quartile1_s"], row["median_s"], row["quartile3_s"]) == (2.5, 3.0, float("inf"))
    assert routing_reaction.statistics("dsdv", [None, None])["median_s"] == float("inf")


def test_routing_reaction_names_no_quartiles_of_one_run():
    assert routing_reaction._words(routing_reaction.statistics("aodv", [0.0953])) == "0.0953 s, n = 1"


def test_moving_chain_draws_throughput_and_silence_in_the_experiments_order(tmp_path):
    for variant, silences in (("aodv", [0.0, 1.0, 9.0]), ("batman-adv", [8.0, 9.0])):
        for seed, value in enumerate(silences, start=1):
            make_run(tmp_path, variant, 2, seed, 100.0 * seed, verdict="void" if seed == 3 else "valid")
            path = tmp_path / f"{variant}-hops2" / f"seed-{seed}" / "metrics.json"
            metrics = json.loads(path.read_text())
            metrics["flows"]["flow1"]["silence_s"] = value
            path.write_text(json.dumps(metrics))
    (tmp_path / "experiment.json").write_text(json.dumps({"variants": ["batman-adv", "aodv"]}))
    for panel, dots, texts in zip(
        panels(moving_chain.draw, tmp_path),
        ([[100, 200], [100, 200]], [[8, 9], [0, 1]]),
        (["150 kbit/s, n = 2"] * 2, ["8.5 s, n = 2", "0.5 s, n = 2"]), strict=True,
    ):  # fmt: skip
        assert panel.yticks == ["batman-adv", "AODV"]
        assert [one.x for one in panel.series if one.marker == "o"] == dots, "the void run is left out"
        assert panel.texts == texts
        means = [one.x for one in panel.series if one.marker == "None"]
        assert means == [[sum(values) / 2] * 2 for values in dots]


def make_patterns(folder: Path, name: str, gains: dict[str, float]) -> None:
    """Three patterns at 10 m/s with 1000 kbit/s expected; the third is void for the first variant."""
    for number, (variant, gain) in enumerate(gains.items()):
        for seed, value in ((1, 300.0), (2, 700.0), (3, 500.0)):
            make_run(folder, variant, 1, seed, value + gain + seed, verdict="void" if (seed, number) == (3, 0) else "valid")
    for path in folder.rglob("run.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"axes": {"speed": 10}}))
        with metrics_of(path.parent) as metrics:
            flow = metrics["flows"]["flow1"]
            flow["percent_of_expected"] = 100 * flow["acked_bps"] / 1e6
    write_tables(collect(folder, {"name": name, "axes": {"speed": [10]}}))


def mean_of(panel, variant: str) -> list[float]:
    """The line of a variant, not its dots."""
    (line,) = (one for one in panel.series if one.colour == style.of_variant(variant).colour and one.line == "-")
    return line.y


def test_hv_elfn_compares_each_variant_with_plain_reno(tmp_path):
    make_patterns(tmp_path, "hv-fig12", {"reno": 0.0, "elfn-2s": 50.0, "elfn-30s": -40.0})
    found = paired.gains(rows_in(tmp_path, ("speed",)), (), "reno", "acked_kbps", ["elfn-2s", "elfn-30s"])
    assert {(pair.compared, pair.where): pair.by_seed for pair in found} == {
        ("elfn-2s", "10"): pytest.approx((50, 50)), ("elfn-30s", "10"): pytest.approx((-40, -40)),
    }  # fmt: skip
    means, gains = panels(hv_elfn.draw, tmp_path)
    # 301 and 702 of plain Reno, whose third run is void; 351, 752 and 553, 40 less than 301, 702 and 503; of 1000 expected
    assert [means.named[style.of_variant(name).name].y for name in ("reno", "elfn-2s", "elfn-30s")] == [[50.15], [55.2], [46.2]]
    (patterns,) = (one for one in means.series if one.colour == style.of_variant("reno").colour and one.line == "None")
    assert (patterns.y, means.ylabel) == (near([30.1, 70.2]), "% of the expected")
    for name, gain in (("elfn-2s", 50), ("elfn-30s", -40)):
        (dots,) = (one for one in gains.series if one.colour == style.of_variant(name).colour and one.line == "None")
        (mean,) = (one for one in gains.series if one.colour == style.of_variant(name).colour and one.line == "-")
        known = comparison((gain, gain), (-702, 702 + gain))  # as if one of both cells fell to zero beside the other's 702
        assert (dots.y, mean.y) == ([gain] * 2, [gain])
        assert mean.half_widths == near([(known.high - known.low) / 2])
    assert (gains.xlabel, gains.ylabel, gains.xticks) == ("mean speed (m/s)", "minus plain Reno (kbit/s)", ["10"])


def test_rt_tables_has_a_table_per_protocol_with_colours_for_cells_with_a_reference(tmp_path):
    axes = {"routing": ["aodv", "olsr"], "tcp": ["newreno", "vegas"], "hops": [1, 2]}
    for number, (routing, tcp, hops) in enumerate(itertools.product(*axes.values())):
        make_run(tmp_path, f"{routing}-{tcp}", hops, 1, 700.0 / hops + number)
        path = tmp_path / f"{routing}-{tcp}-hops{hops}" / "seed-1" / "run.json"
        there = {"axes": {"routing": routing, "tcp": tcp, "hops": hops}, "variant": ""}
        path.write_text(json.dumps(json.loads(path.read_text()) | there))
    write_tables(collect(tmp_path, {"name": "rt-static", "axes": axes, "ns2": "rt_static", "published": "rt_static"}))
    tables = {panel.title: panel for panel in panels(rt_tables.draw, tmp_path)}
    aodv, olsr = tables["AODV (colour: beside ns-2.35)"], tables["OLSR (colour: beside the paper)"]
    # above the number, below it its ratio to the published one (analysis/published/rt_static.csv: 752.62 and 378.20, 508.45 ...)
    assert aodv.texts[::2] == ["700", "351", "702", "353"] and olsr.texts[::2] == ["704", "355", "706", "357"]
    assert aodv.texts[1::2] == ["0.93", "0.93", "1.38", "1.38"]
    assert (aodv.xticks, aodv.yticks, aodv.xlabel) == (["1", "2"], ["newreno", "vegas"], "hops")
    assert [(box.x, box.y) for box in aodv.boxes] == [((x - 0.5, x + 0.5), (y - 0.5, y + 0.5)) for y in (0, 1) for x in (0, 1)]
    blue, red = aodv.boxes[0].colour, olsr.boxes[2].colour
    assert blue[2] > blue[0] and red[0] > red[2], "700 of ns-2's 747 is blue, 706 of the published 508 red"


def test_a_table_that_ns2_has_in_part_is_coloured_beside_the_paper(tmp_path):
    """Cells of one table with two references would show no order: ns-2 has NewReno over DSDV, and not Tahoe."""
    axes = {"routing": ["dsdv"], "tcp": ["tahoe", "newreno"], "nodes": [4]}
    for tcp in axes["tcp"]:
        make_run(tmp_path, tcp, 4, 1, 412.0)
        path = tmp_path / f"{tcp}-hops4" / "seed-1" / "run.json"
        there = {"axes": {"routing": "dsdv", "tcp": tcp, "nodes": 4}, "variant": ""}
        path.write_text(json.dumps(json.loads(path.read_text()) | there))
    write_tables(collect(tmp_path, {"name": "be-chain", "axes": axes, "ns2": "be_chain", "published": "be_chain"}))
    (table,) = panels(rt_tables.draw, tmp_path)
    assert table.title == "DSDV (colour: beside the paper)"
    assert len({box.colour for box in table.boxes}) == 1, "412 is a third of both published values"


@pytest.mark.parametrize(("ci95", "n", "drawn"), [(None, 1, False), (4.0, 2, True), (6.0, 3, False), (6.0, 4, True)])
def test_an_interval_of_two_or_three_runs_that_is_wider_than_the_mean_is_not_drawn(ci95, n, drawn):
    assert shared.has_interval({"mean": 10.0, "ci95": ci95, "n": n}) == drawn
    assert shared.half_widths([{"mean": 10.0, "ci95": ci95, "n": n}]) == ([ci95] if drawn else None)


def test_be_per_draws_measured_ns2_and_published_points(tmp_path):
    for rate, value in (("0", 350.0), ("0.015", 300.0), ("0.2", 20.0)):
        make_run(tmp_path, f"frame-{rate}", 3, 1, value)
    for path in tmp_path.rglob("run.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"axes": {"nodes": 4}}))
    write_tables(collect(tmp_path, {"name": "be-per", "axes": {"nodes": [4]}, "ns2": "be_per", "published": "be_per"}))
    (panel,) = panels(be_per.draw, tmp_path)
    assert panel.named["4 nodes"].points == [(5e-4, 350), (0.015, 300), (0.2, 20)]
    assert panel.named["ns-2.35"].points == [(5e-4, 347.05), (0.015, 304.32), (0.2, 43.37)]
    assert panel.named["published"].points == [(0.015, 29.66)]
    assert (panel.xticks, panel.xlabel, panel.ylabel) == (["0", "0.015", "0.2"], "error rate per frame", "acknowledged (kbit/s)")


def test_be_per_of_other_variants_is_one_line(tmp_path):
    make_run(tmp_path, "ns2", 3, 1, 300.0)
    write_tables(collect(tmp_path, {"name": "odd", "axes": {"nodes": [4]}}))
    with pytest.raises(RunFileError, match="no variant is called frame-RATE"):
        be_per.draw(tmp_path)


def expect(folder: Path, expected_kbps: float) -> None:
    """Gives every run below `folder` an expected throughput."""
    for path in folder.rglob("metrics.json"):
        document = json.loads(path.read_text())
        flow = document["flows"]["flow1"]
        flow |= {"expected_bps": expected_kbps * 1e3, "percent_of_expected": flow["acked_bps"] / expected_kbps / 10}
        path.write_text(json.dumps(document))


def test_hv_fig3_compares_each_pattern_with_its_expected_throughput(tmp_path):
    make_patterns(tmp_path, "hv-fig3", {"reno": 0.0, "elfn-2s": 50.0})
    expect(tmp_path, 800.0)
    write_tables(collect(tmp_path, {"name": "hv-fig3", "axes": {"speed": [10]}}))
    percent, rates, ordered, patterns = panels(hv_fig3.draw, tmp_path)
    assert {name: one.y for name, one in percent.named.items()} == {"ELFN, probes every 2 s": [69], "Reno": [near(62.6875)]}
    assert percent.named["Reno"].half_widths is None, "of two runs, and ten times as wide as the mean"
    assert {name: one.y for name, one in rates.named.items()} == {
        "expected": [800], "ELFN, probes every 2 s": [552], "Reno": [501.5],
    }  # fmt: skip
    assert ordered.named["Reno, 10 m/s"].points == [(1, 301), (2, 702)], "figure 3(b) is plain Reno's, whatever sorts first"
    assert [line.label for line in ordered.series] == ["Reno, 10 m/s"]
    assert patterns.of("elfn-2s").points == [(800, 351), (800, 752), (800, 553)]
    assert patterns.of("reno").points == [(800, 301), (800, 702)]
    assert patterns.series[0].points == [(0, 0), (800, 800)], "what the movement allows"
    assert (percent.ylabel, patterns.title, patterns.xlabel) == ("% of the expected", "10 m/s", "expected (kbit/s)")


def test_hv_patterns_draws_measured_and_ns2_values(tmp_path):
    for variant in ("aodv-10", "aodv-30", "dsr-30", "dsr-arp-30"):
        make_run(tmp_path, variant, 1, 1, 500.0)
    for path in tmp_path.rglob("run.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"axes": {}}))
    expect(tmp_path, 700.0)
    write_tables(collect(tmp_path, {"name": "hv-patterns", "axes": {}, "ns2": "hv_patterns"}))
    (panel,) = panels(hv_patterns.draw, tmp_path)
    assert panel.named["AODV"].points == [(10, near(100 * 500 / 700)), (30, near(100 * 500 / 700))]
    assert panel.named["DSR"].points == [(30, near(100 * 500 / 700))]
    theirs = panel.named["AODV, ns-2.35"]
    assert (theirs.x, theirs.y[1]) == ([2.4, 10.4, 20.4, 30.4], near(100 * 603.2 / 741.1))
    assert panel.named["DSR with ARP"].points == [(30, near(100 * 500 / 700))]
    assert panel.named["DSR with ARP, ns-2.35"].y == [73.9, 50.8, 45, 39], "the mean of the patterns' percents, as here"
    assert "DSR, ns-2.35" not in panel.named, "ns-2's DSR has ARP under it"
    assert panel.ylabel == "% of the expected throughput"


def test_hv_patterns_of_other_variants_is_one_line(tmp_path):
    with pytest.raises(RunFileError, match='variant "reno" is not PROTOCOL-SPEED'):
        hv_patterns.by_protocol([{"variant": "reno"}])


def test_hv_load_has_a_panel_a_load(tmp_path):
    make_patterns(tmp_path, "hv-fig15", {"reno-5pps": 0.0, "elfn-5pps": 50.0, "reno-five": 10.0, "elfn-five": 20.0})
    few, gain_of_few, many, gain_of_many = panels(hv_load.draw, tmp_path)
    assert (few.title, gain_of_few.title, many.title) == ("5 packets/s", "minus Reno", "five connections")
    assert [mean_of(panel, kind) for panel in (few, many) for kind in ("reno", "elfn")] == [[501.5], [552], [512], [522]]
    assert [mean_of(panel, "elfn") for panel in (gain_of_few, gain_of_many)] == [[50], [10]]
    assert (many.xlabel, gain_of_many.xticks) == ("mean speed (m/s)", ["10"])


def test_hv_load_keeps_the_points_of_a_single_speed_off_its_edges(tmp_path):
    make_patterns(tmp_path, "hv-fig15", {"reno-5pps": 0.0, "elfn-5pps": 50.0})
    assert panels(hv_load.draw, tmp_path)[0].xlim == (8, 12)  # of 10 m/s


def test_hv_fig7_pairs_the_patterns(tmp_path):
    make_patterns(tmp_path, "hv-fig7", {"cache-replies": 0.0, "no-cache-replies": 50.0})
    found = paired.gains(rows_in(tmp_path, ("speed",)), (), "cache-replies", "acked_kbps", ["no-cache-replies"])
    assert [pair.by_seed for pair in found] == [pytest.approx((50, 50))]
    means, gains = panels(hv_fig7.draw, tmp_path)
    assert (mean_of(means, "cache-replies"), mean_of(means, "no-cache-replies")) == ([501.5], [552])
    (dots,) = (one for one in gains.series if one.line == "None")
    assert (dots.y, gains.of("no-cache-replies").y, gains.ylabel) == ([50, 50], [50], "without minus with (kbit/s)")


RECOMPUTE = ROOT / "experiments" / "be-recompute.toml"


def recompute(variant: str) -> dict:
    """The scenario.json of a variant."""
    raw = tomllib.loads(RECOMPUTE.read_text())
    changed = next(entry for entry in raw["variants"] if entry["name"] == variant).get("set", {})
    scenario = raw["scenario"] | changed
    places = [{"name": None, "at": at} for at in scenario["positions"]]
    return scenario | {"positions": places, "flows": [{**flow, "start": flow["start"]} for flow in scenario["flows"]]}


def test_be_recompute_knows_when_there_is_no_path():
    assert be_recompute.gaps(recompute("as-printed")) == []
    # ns-2's movement: out of range at 12.5 s, the other in range at 18.0 s
    assert be_recompute.gaps(recompute("rearranged")) == [(pytest.approx(12.5, abs=0.2), pytest.approx(18.0, abs=0.1))]


def test_be_recompute_draws_runs_and_ns2(tmp_path):
    for variant in ("as-printed", "rearranged"):
        make_run(tmp_path, variant, 3, 1, 400.0)
        folder = tmp_path / f"{variant}-hops3" / "seed-1"
        (folder / "scenario.json").write_text(json.dumps(recompute(variant)))
        metrics = json.loads((folder / "metrics.json").read_text())
        metrics["flows"]["flow1"] |= {
            "start_ns": 10**18 + 9 * 10**9,
            "acked_bps_by_second": [400_000] * 8 + [0] * 8 + [400_000] * 9,
        }
        (folder / "metrics.json").write_text(json.dumps(metrics))
        run = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps(run | {"epoch_ns": 10**18}))
        (folder / "events.csv").write_text("t_s,at_s,event,station,detail\n14.0,10,move,sta4,to 599 599 at 30\n")
    printed, rearranged = panels(be_recompute.draw, tmp_path)
    assert (printed.title, rearranged.title) == ("positions as printed", "rearranged")
    measured = rearranged.named["this testbed"]
    assert (measured.x[0], measured.y[:9], measured.steps) == (5, [400] * 8 + [0], "steps-post")
    assert len(measured.points) == 26, "25 seconds and the end of the last"
    for panel in (printed, rearranged):
        assert [len(one.points) for one in panel.series if one.line == "--"] == [200] * 3, "ns-2's three seeds"
        assert [one.x for one in panel.series if one.line == ":"] == [[10, 10]], "the station sets off"
    assert [box.x for box in rearranged.boxes] == [(12.5, 18)] and printed.boxes == []
    run = be_recompute._runs(tmp_path)[0]
    assert be_recompute._begin_s(run, recompute("as-printed")) == 5  # model time 9, traffic from 4 on


def test_be_recompute_without_runs_names_the_first_command(tmp_path):
    with pytest.raises(RunFileError, match="run the experiment first"):
        be_recompute.draw(tmp_path)


def test_variants_differ_in_colour_and_in_marker():
    named = [style.of_variant(variant) for variant in ("ns2", "hv", "hv-alt")] + [
        style.of_variant("new", 0),
        style.of_variant("newer", 1),
    ]
    assert len({mark.colour for mark in named}) == len({mark.marker for mark in named}) == 5


def test_hv_fig1_promises_intervals_only_for_several_runs(campaign, tmp_path_factory):
    assert "mean of 2 runs, 95 % intervals" in page(hv_fig1.draw, campaign).words
    single = tmp_path_factory.mktemp("single")
    make_run(single, "ns2", 1, 1, 1250.0)
    write_tables(collect(single, EXPERIMENT))
    drawn = page(hv_fig1.draw, single)
    assert "this testbed, one run each" in drawn.words
    assert "95 %" not in drawn.words
    assert drawn.panels[0].of("ns2").half_widths is None


def test_hv_fig1_states_its_runs_and_marks_the_suspect(tmp_path):
    make_run(tmp_path, "ns2", 1, 1, 1250.0)
    write_tables(collect(tmp_path, EXPERIMENT))
    assert "suspect" not in page(hv_fig1.draw, tmp_path).words
    make_run(tmp_path, "ns2", 2, 1, 630.0, verdict="suspect")
    for scenario in tmp_path.rglob("scenario.json"):
        scenario.write_text(json.dumps({"duration": 12.0}))
    (tmp_path / "experiment.json").write_text(json.dumps({"name": "hv-fig1", "quick": True}))
    write_tables(collect(tmp_path, EXPERIMENT))
    drawn = page(hv_fig1.draw, tmp_path)
    assert "hv-fig1 quick: 1 run of 12 s per point (seed 1); 1 valid, 1 suspect" in drawn.words
    assert "with a suspect run" in drawn.panels[0].legend
    assert [panel.rings for panel in drawn.panels] == [[(2, 630)], [(2, near(630 / 619.19))]]


def test_a_figure_of_one_or_two_runs_says_so_in_its_title(tmp_path):
    def title() -> str:
        write_tables(collect(tmp_path, EXPERIMENT))
        with style.kept() as drawn:
            hv_fig1.draw(tmp_path)
        return drawn[0].get_suptitle()

    make_run(tmp_path, "ns2", 1, 1, 1250.0)
    make_run(tmp_path, "ns2", 2, 1, 630.0)
    assert title() == "1 run per point"
    make_run(tmp_path, "ns2", 2, 2, 640.0)
    assert title() == "1 to 2 runs per point"
    make_run(tmp_path, "ns2", 2, 3, 640.0)
    assert title() == "1 of 2 points is of 2 runs at most"
    make_run(tmp_path, "ns2", 1, 2, 1250.0)
    make_run(tmp_path, "ns2", 1, 3, 1250.0)
    assert title() == ""


def make_upload(out_dir: Path, flows: str, tcp: str, seed: int, acked_kbps: float, variant: str = "fast") -> None:
    """A run of an experiment with the axes `flows` and `tcp`, made up."""
    make_run(out_dir, variant, 1, seed, acked_kbps)
    made = out_dir / f"{variant}-hops1" / f"seed-{seed}"
    place = out_dir / f"{variant}-flows{flows}-tcp{tcp}" / f"seed-{seed}"
    shutil.move(made, place)
    run = json.loads((place / "run.json").read_text())
    (place / "run.json").write_text(json.dumps(run | {"axes": {"flows": flows, "tcp": tcp}}))


UPLOADS = {"name": "im-chain5", "axes": {"flows": ["one-upload"], "tcp": ["newreno", "tcpap"]}, "variants": ["fast", "slow"]}


def test_im_throughput_draws_the_tcps_of_each_uplink_and_their_differences(tmp_path):
    for variant, factor in (("fast", 1.0), ("slow", 0.5)):
        for seed in (1, 2):
            make_upload(tmp_path, "one-upload", "newreno", seed, 600.0 + 10 * seed, variant)
            make_upload(tmp_path, "one-upload", "tcpap", seed, (400.0 + 10 * seed) * factor, variant)
    (tmp_path / "experiment.json").write_text(json.dumps(UPLOADS))
    write_tables(collect(tmp_path, UPLOADS))
    (panel,) = panels(im_throughput.draw, tmp_path)
    drawn = {series.label: [y for _, y in series.points] for series in panel.series if series.label}
    assert drawn == {"NewReno": [615, 615], "TCP-AP": near([415, 207.5])}
    rows = list(csv.DictReader((tmp_path / "pairs.csv").open()))
    total = {(row["where"], row["compared"]): float(row["difference"]) for row in rows if row["metric"] == "total_acked_kbps"}
    assert total["one-upload fast", "tcpap"] == -200
    assert total["one-upload tcpap", "slow"] == -207.5


def test_im_throughput_of_one_network_names_the_tcps_below_their_points(tmp_path):
    for tcp, value in (("newreno", 600.0), ("tcpap", 400.0)):
        make_upload(tmp_path, "one-upload", tcp, 1, value)
    described = UPLOADS | {"variants": ["fast"]}
    (tmp_path / "experiment.json").write_text(json.dumps(described))
    write_tables(collect(tmp_path, described))
    (panel,) = panels(im_throughput.draw, tmp_path)
    assert panel.xticks == ["NewReno", "TCP-AP"]


def test_im_throughput_says_where_the_flows_of_a_sum_have_different_times(tmp_path):
    ends = {"from": "sta1", "to": "sta2"}
    together, apart = [{**ends, "start": 0}, {**ends, "start": 0}], [{**ends, "start": 0, "stop": 40}, {**ends, "start": 20}]
    for pattern, flows in (("two-uploads", together), ("two-overlapping", apart)):
        make_upload(tmp_path, pattern, "newreno", 1, 600.0)
        (tmp_path / f"fast-flows{pattern}-tcpnewreno" / "seed-1" / "scenario.json").write_text(json.dumps({"flows": flows}))
    described = UPLOADS | {"axes": {"flows": ["two-uploads", "two-overlapping"], "tcp": ["newreno"]}}
    (tmp_path / "experiment.json").write_text(json.dumps(described))
    write_tables(collect(tmp_path, described))
    drawn = page(im_throughput.draw, tmp_path)
    assert [panel.title for panel in drawn.panels] == ["two uploads", "two overlapping, each flow over its own time"]
    assert "sum of the flows (kbit/s)" in drawn.words


def test_wm_comparison_draws_each_metric_that_the_runs_have(tmp_path):
    for variant, service_s in (("aodv-ns2", 30.0), ("adv-30-30", 20.0)):
        for seed in (1, 2):
            make_upload(tmp_path, "sessions", "reno", seed, 100.0, variant)
            path = tmp_path / f"{variant}-flowssessions-tcpreno" / f"seed-{seed}" / "metrics.json"
            kinds = {"web": {"service_s": service_s + seed}, "vbr": {"delivery": 0.5}}
            path.write_text(json.dumps(json.loads(path.read_text()) | {"kinds": kinds}))
    described = {"name": "wm", "axes": {"flows": ["sessions"], "tcp": ["reno"]}, "variants": ["aodv-ns2", "adv-30-30"]}
    (tmp_path / "experiment.json").write_text(json.dumps(described))
    write_tables(collect(tmp_path, described))
    transfers, service, delivery = panels(wm_comparison.draw, tmp_path)
    assert {y for series in transfers.series for _, y in series.points} == {100}
    assert [(x > 0.5, y) for series in service.series for x, y in sorted(series.points)] == [(False, 31.5), (True, 21.5)]
    assert [y for series in delivery.series for _, y in series.points] == [0.5, 0.5]
    (row,) = (row for row in csv.DictReader((tmp_path / "pairs.csv").open()) if row["metric"] == "web_service_s")
    assert (row["compared"], row["with"], row["difference"]) == ("adv-30-30", "aodv-ns2", "-10")


def test_im_cwnd_draws_the_window_of_each_tcp_and_its_mean(tmp_path):
    """The fixture's window is 2 from its first ACK at 90 ms on, and 6.6325 in the mean (test_metrics.py)."""
    for tcp in ("newreno", "vegas"):
        run = tmp_path / f"chain5-flowsone-upload-tcp{tcp}" / "seed-1"
        shutil.copytree(FIXTURE, run)
        made = json.loads((run / "run.json").read_text())
        cell = {"cell": run.parent.name, "variant": "chain5", "axes": {"flows": "one-upload", "tcp": tcp}}
        (run / "run.json").write_text(json.dumps(made | cell))
        analyse_run(run)
    described = {"name": "im-cwnd", "axes": {"flows": ["one-upload"], "tcp": ["newreno", "vegas"]}, "variants": ["chain5"]}
    (tmp_path / "experiment.json").write_text(json.dumps(described))
    write_tables(collect(tmp_path, described))
    (panel,) = panels(im_cwnd.draw, tmp_path)
    assert panel.title == "chain5: mean NewReno 6.63, Vegas 6.63"
    newreno, vegas = (series for series in panel.series if series.label in ("NewReno", "Vegas"))
    assert newreno.points[0] == (near(0.09), 2) and len(newreno.points) == len(vegas.points) > 60
    (row,) = (row for row in csv.DictReader((tmp_path / "pairs.csv").open()) if row["metric"] == "cwnd_mean")
    assert (row["compared"], row["with"], row["difference"]) == ("vegas", "newreno", "0")


def test_im_routes_draws_the_hops_as_the_daemon_reported_them(tmp_path):
    make_upload(tmp_path, "one-upload", "newreno", 1, 600.0)
    run = tmp_path / "fast-flowsone-upload-tcpnewreno" / "seed-1"
    more = {"format": "manet-run/1", "epoch_ns": 0, "traffic_ns": 30_000_000_000}
    (run / "run.json").write_text(json.dumps(json.loads((run / "run.json").read_text()) | more))
    flow = {"from": "sta1", "to": "sta2", "start": 20}
    (run / "scenario.json").write_text(json.dumps({"topology": "chain", "hops": 1, "flows": [flow], "warmup": 0, "duration": 80}))
    stations = [{"name": f"sta{n}", "mac": f"02:00:00:00:00:0{n}"} for n in (1, 2)]
    (run / "medium.json").write_text(json.dumps({"format": "manet-medium/1", "stations": stations}))
    (run / "routing").mkdir()
    notes = [("route", 50.3, 2, "10.0.0.9"), ("lost", 60.0, 0, None), ("route", 61.0, 1, "10.0.0.2")]
    lines = [{"t_ns": at * 1e9, "event": event, "about": "10.0.0.2", "value": hops, "via": via} for event, at, hops, via in notes]
    (run / "routing" / "sta1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    described = {"name": "im-routes", "axes": {"flows": ["one-upload"], "tcp": ["newreno"]}}
    (tmp_path / "experiment.json").write_text(json.dumps(described))
    write_tables(collect(tmp_path, described))
    (panel,) = panels(im_routes.draw, tmp_path)
    steps = next(series for series in panel.series if series.steps == "post" or len(series.points) >= 3)
    hops = [point for point in steps.points if point[1] == point[1]]
    assert [y for _, y in hops] == [2, 1, 1]
    assert [x for x, _ in hops] == near([20.3, 31, 100])
    assert "table 2 of the paper (Vegas)" in panel.named
    assert "(paper: 26 hop counts)" in panel.title
