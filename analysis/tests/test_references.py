"""Reference numbers: every table can be read, names its source, and has values for a cell."""

import csv
from pathlib import Path
from statistics import fmean

import pytest

from analysis.references import FOLDER, load_reference, same_value
from analysis.tables.results import mean_and_interval

RESULTS = FOLDER.parent / "docs" / "results"
TABLES = sorted(path for kind in ("published", "ns2", "peers") for path in (FOLDER / kind).glob("*.csv"))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_table_names_its_source_and_has_numbers(path: Path):
    reference = load_reference(path.parent.name, path.stem)
    assert len(reference.source) > 20
    assert reference.keys
    for row in reference.rows:
        numbers = [float(row[column]) for column in row if column not in reference.keys and row[column]]
        assert all(number >= 0 for number in numbers)  # 0: a second may be silent, a chain with many errors dead


def test_a_table_without_variants_holds_for_all():
    published = load_reference("published", "holland-vaidya_fig1")
    assert published.value("acked_kbps", {"hops": 6, "variant": "hv"}) == 205.2
    assert published.value("rtt_ms_mean", {"hops": 6, "variant": "hv"}) is None


def test_ns2_values_are_those_the_chain_is_held_to():
    """ns-2's numbers of hv-fig1's page, rounded; the table has two decimals."""
    ns2 = load_reference("ns2", "chain_static")
    for variant, expected in {
        "ns2": [1234, 619, 390, 289, 251, 231, 220, 213, 208, 206],
        "hv": [1436, 721, 482, 351, 263, 235, 217, 205, 202, 198],
        "hv-alt": [1457, 732, 489, 360, 271, 243, 227, 215, 204, 199],
    }.items():
        assert [round(ns2.value("acked_kbps", {"hops": hops, "variant": variant})) for hops in range(1, 11)] == expected
    assert ns2.value("acked_kbps", {"hops": 11, "variant": "ns2"}) is None
    assert ns2.value("acked_kbps", {"hops": 1, "variant": ""}) is None


def test_a_protocol_with_ns2s_settings_has_its_protocols_numbers():
    table = load_reference("ns2", "be_chain")
    cell = {"nodes": 4, "tcp": "newreno"}
    assert table.value("acked_kbps", {**cell, "routing": "aodv-ns2"}) == table.value("acked_kbps", {**cell, "routing": "aodv"})


def test_the_patterns_of_dsr_are_the_means_of_their_runs():
    """Each pattern counts once, whatever its number of runs."""
    runs: dict[str, dict[str, list[float]]] = {}
    for row in load_reference("ns2", "hv_patterns_runs").rows:
        runs.setdefault(row["variant"], {}).setdefault(row["pattern"], []).append(float(row["acked_kbps"]))
    assert [len(patterns) for patterns in runs.values()] == [10, 10, 10, 10]
    means = load_reference("ns2", "hv_patterns")
    for variant, patterns in runs.items():
        expected = fmean(fmean(of_pattern) for of_pattern in patterns.values())
        assert means.value("acked_kbps", {"variant": variant}) == pytest.approx(expected, abs=0.05), variant


def test_dsr_of_ns2_and_of_this_testbed_are_alike_on_the_ten_movements():
    """docs/results/hv-patterns: points of the expected throughput of ns-2's chains, paired by pattern."""
    theirs: dict[tuple[str, str], list[float]] = {}
    for row in load_reference("ns2", "hv_patterns_runs").rows:
        theirs.setdefault((row["variant"], row["pattern"]), []).append(float(row["acked_kbps"]))
    expected = {row["pattern"]: float(row["expected_kbps"]) for row in load_reference("ns2", "hv_patterns_switches").rows}
    rows = csv.DictReader((RESULTS / "hv-patterns" / "runs.csv").read_text().splitlines())
    ours = {(row["variant"], f"p{int(row['seed']):02d}"): float(row["acked_kbps"]) for row in rows}
    found = {}
    for variant in ("dsr-arp-2", "dsr-arp-10", "dsr-arp-20", "dsr-arp-30"):
        points = [
            (100 * ours[variant, name] / rate, 100 * fmean(theirs[variant, name]) / rate) for name, rate in expected.items()
        ]
        spread = mean_and_interval([one - other for one, other in points])
        mean = fmean(other for _, other in points)
        assert load_reference("ns2", "hv_patterns").value("percent", {"variant": variant}) == round(mean, 1)
        found[variant] = (round(mean), round(fmean(one for one, _ in points)), round(spread["mean"], 1), round(spread["ci95"], 1))
    assert found == {  # ns-2.35, this testbed, difference
        "dsr-arp-2": (74, 76, 2.3, 7.2),
        "dsr-arp-10": (51, 48, -2.3, 13.4),
        "dsr-arp-20": (45, 38, -7.2, 11.8),
        "dsr-arp-30": (39, 42, 3.1, 12.0),
    }


def test_the_switches_of_ns2_have_the_effects_of_the_page():
    """docs/results/hv-patterns: points of the expected throughput, paired by pattern and seed with the runs as they are; each
    pattern counts once."""
    runs = load_reference("ns2", "hv_patterns_runs").rows
    usual = {(row["variant"], row["pattern"], row["seed"]): float(row["acked_kbps"]) for row in runs}
    gains: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in load_reference("ns2", "hv_patterns_switches").rows:
        gain = float(row["acked_kbps"]) - usual[row["variant"], row["pattern"], row["seed"]]
        of_pattern = gains.setdefault((row["switch"], row["variant"]), {}).setdefault(row["pattern"], [])
        of_pattern.append(100 * gain / float(row["expected_kbps"]))
    found = {key: mean_and_interval([fmean(each) for each in patterns.values()]) for key, patterns in gains.items()}
    assert {key: (round(each["mean"], 1), round(each["ci95"], 1), each["n"]) for key, each in found.items()} == {
        ("addresses known", "dsr-arp-10"): (38.4, 15.4, 10),
        ("addresses known", "dsr-arp-20"): (37.2, 8.8, 10),
        ("addresses known", "dsr-arp-30"): (39.5, 14.0, 10),
        ("paths forgotten after 300 s", "dsr-arp-2"): (13.5, 10.0, 10),
        ("no flow state", "dsr-arp-30"): (6.3, 8.4, 10),
        ("released packets not spaced", "dsr-arp-30"): (10.7, 6.9, 10),
    }


@pytest.mark.parametrize(
    ("text", "value", "same"),
    [("5", 5.0, True), ("5", "5", True), ("hv", "hv", True), ("", None, True), ("5", 6, False), ("hv", 5, False)],
)
def test_axis_values_are_compared_as_values(text, value, same):
    assert same_value(text, value) is same
