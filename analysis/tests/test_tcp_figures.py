"""The figures about TCPs: chains beside ns-2, pacing, and all under one outage."""

import csv
import json
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.figures import bufferbloat, tcp_by_hops, tcp_chain, tcp_outage, tcpap_chain
from analysis.story.outage import Outage, outage_of, retransmissions_s
from analysis.story.story import Story, read_story
from analysis.tables.results import collect, write_tables
from analysis.tests.crafted_chain import BACKWARD, FORWARD, Chain
from analysis.tests.drawn import page, panels
from analysis.tests.test_tables import make_run
from record.errors import RunFileError

NS2 = {  # analysis/ns2/tcp_chain.csv, over one hop, two and three; tahoe's and sack's two are over AODV
    "tahoe": [1254.51, 629.59], "reno": [1233.64, 619.19, 390.46], "newreno": [1233.64, 619.19, 390.46],
    "sack": [1254.51, 629.59], "vegas": [1274.48, 638.9, 392.8],
}  # fmt: skip


def test_tcp_chain_draws_measured_and_ns2_values(tmp_path):
    for number, variant in enumerate(NS2):
        for hops in (1, 2, 3):
            make_run(tmp_path, variant, hops, 1, 1250.0 / hops + number)
    write_tables(collect(tmp_path, {"name": "tcp-chain", "axes": {"hops": [1, 2, 3]}, "ns2": "tcp_chain"}))
    top, ratios = panels(tcp_chain.draw, tmp_path)
    for number, (variant, simulated) in enumerate(NS2.items()):
        measured = [1250.0 / hops + number for hops in (1, 2, 3)]
        assert (top.of(variant).x, top.of(variant).y) == ([1, 2, 3], pytest.approx(measured, abs=1e-2))
        assert top.of(variant, filled=False).y == simulated
        expected = [rate / other for rate, other in zip(measured, simulated, strict=False)]
        assert ratios.of(variant).y == pytest.approx(expected, abs=1e-4)
    assert top.legend == ["NewReno", "Reno", "Reno with SACK", "Tahoe", "Vegas"]
    assert ([box.y for box in ratios.boxes], ratios.xticks) == ([(0.9, 1.1)], ["1", "2", "3"])
    rows = list(csv.DictReader((tmp_path / "summary.csv").open()))
    ns2 = {(row["variant"], row["hops"]): row["ns2"] for row in rows if row["metric"] == "acked_kbps"}
    assert float(ns2["vegas", "1"]) == 1274.48
    assert ns2["sack", "3"] == "", "over AODV it is the routes that are lost, which says nothing of static ones"


def loaded_run(
    folder: Path,
    queue: str,
    path: str,
    tcp: str,
    radio: str,
    kbps: float,
    p50: float | None,
    verdict: str = "valid",
    seed: int = 1,
) -> None:
    """A run of a bulk transfer beside a sparse flow with these delays, of which the 95th percentile is twice the median."""
    run = folder / f"{queue}-flows{path}-tcp{tcp}-radio{radio}" / f"seed-{seed}"
    run.mkdir(parents=True)
    axes = {"flows": path, "tcp": tcp, "radio": radio}
    sparse = {"traffic": "cbr", "latency_ms_p50": p50, "latency_ms_p95": p50 and 2 * p50}
    flows = {"flow1": sparse, "flow2": {"traffic": "bulk", "acked_bps": kbps * 1e3}}
    for name, content in {
        "run.json": {"format": "manet-run/1", "variant": queue, "axes": axes, "seed": seed, "status": "complete"},
        "scenario.json": {},
        "verdict.json": {"verdict": verdict},
        "metrics.json": {"format": "manet-metrics/1", "flows": flows, "checks": []},
    }.items():
        (run / name).write_text(json.dumps(content))


def test_bufferbloat_draws_delay_and_throughput_of_each_queue(tmp_path):
    for hops in (1, 2):
        for tcp, share in (("bbr", 1.0), ("cubic", 0.5)):  # without experiment.json in the order of their names
            loaded_run(tmp_path, "drop-tail-50", f"over-{hops}", tcp, "dot11n-ht20", 8000 * share / hops, 20 * share * hops)
            loaded_run(tmp_path, "fq-codel", f"over-{hops}", tcp, "dot11n-ht20", 7000 * share / hops, 2 * share * hops)
    loaded_run(tmp_path, "fq-codel", "over-1", "bbr", "ns2-dsss-2m", 1000, 30, verdict="suspect")
    axes = {"flows": ["over-1", "over-2"], "tcp": ["cubic", "bbr"], "radio": ["dot11n-ht20", "ns2-dsss-2m"]}
    variants = ["drop-tail-50", "fq-codel"]
    write_tables(collect(tmp_path, {"name": "bufferbloat", "axes": axes, "variants": variants}))
    delay, rate, slow_delay, slow_rate = panels(bufferbloat.draw, tmp_path)
    # four points over each number of hops, 0.08 apart: drop-tail's left of the middle
    full = delay.of("drop-tail-50")
    assert full.points == [(-0.12, 20), (0.88, 40)]
    assert delay.of("drop-tail-50", filled=False).points == [(-0.04, 10), (0.96, 20)]
    assert delay.of("fq-codel").points == [(0.04, 2), (1.04, 4)]
    bars = [one.points for one in delay.series if one.colour == full.colour and len(one.points) == 2 and one.x[0] == one.x[1]]
    assert bars == [[(-0.12, 20), (-0.12, 40)], [(0.88, 40), (0.88, 80)], [(-0.04, 10), (-0.04, 20)], [(0.96, 20), (0.96, 40)]]
    assert rate.of("fq-codel", filled=False).y == [3500, 1750]
    assert slow_delay.of("fq-codel").y == [30] and slow_rate.of("fq-codel").y == [1000]
    assert (delay.title, delay.xticks, rate.title) == (
        "dot11n-ht20: latency under load",
        ["1", "2"],
        "dot11n-ht20: bulk transfer",
    )


def test_tcps_by_hops_have_a_column_for_each_variant_and_a_row_for_each_metric(tmp_path):
    for hops in (1, 2):
        for tcp, share in (("sack", 1.0), ("vegas", 0.5)):
            loaded_run(tmp_path, "drop-tail", f"over-{hops}", tcp, "dot11n-ht20", 8000 * share / hops, 20 * share * hops)
    loaded_run(tmp_path, "fq-codel", "over-2", "vegas", "dot11n-ht20", 1000, 30, verdict="suspect")
    axes = {"flows": ["over-1", "over-2"], "tcp": ["sack", "vegas"], "radio": ["dot11n-ht20"]}
    write_tables(collect(tmp_path, {"name": "x", "axes": axes, "variants": ["drop-tail", "fq-codel"]}))
    drawn = page(tcp_by_hops.draw, tmp_path)
    assert "4 valid, 1 suspect; black rings: with suspect runs" in " ".join(drawn.words.split())
    rate, other_rate, delay, other_delay = drawn.panels
    assert (rate.rings, other_rate.rings) == ([], [(2, 1)])
    assert (rate.title, other_rate.title, delay.xticks) == ("drop-tail", "fq-codel", ["1", "2"])
    assert (rate.of("sack").points, rate.of("vegas").points) == ([(1, 8), (2, 4)], [(1, 4), (2, 2)])  # Mbit/s
    assert (delay.of("sack").points, delay.of("vegas").points) == ([(1, 20), (2, 40)], [(1, 10), (2, 20)])
    assert (other_rate.of("vegas").points, other_delay.of("vegas").points) == ([(2, 1)], [(2, 30)])


def test_the_line_of_origin_is_of_all_metrics_that_the_page_shows(tmp_path):
    """Throughput has close values of both seeds, delays have not; one delay is of one run."""
    for seed, p50 in ((1, 20.0), (2, 60.0)):
        loaded_run(tmp_path, "drop-tail", "over-1", "sack", "dot11n-ht20", 8000, p50, seed=seed)
    loaded_run(tmp_path, "drop-tail", "over-2", "sack", "dot11n-ht20", 8000, 20.0)
    loaded_run(tmp_path, "drop-tail", "over-2", "sack", "dot11n-ht20", 8010, None, seed=2)
    axes = {"flows": ["over-1", "over-2"], "tcp": ["sack"], "radio": ["dot11n-ht20"]}
    described = {"name": "x", "axes": axes, "variants": ["drop-tail"]}
    write_tables(collect(tmp_path, described))
    words = page(tcp_by_hops.draw, tmp_path).words
    origin = ": 1 to 2 runs per point (seeds 1 to 2); 4 valid; no interval of 2 or 3 runs that is wider than the mean 1 to 2"
    assert origin in " ".join(words.split())
    assert "\n1 to 2 runs per point\n" in words, "above the page"
    assert "no interval" in page(bufferbloat.draw, tmp_path).words
    (tmp_path / "experiment.json").write_text(json.dumps(described | {"shown": ["total_acked_kbps"]}))
    only_rates = page(tcp_by_hops.draw, tmp_path).words
    assert "2 runs per point (seeds 1 to 2); 4 valid" in only_rates and "no interval" not in only_rates


def tcpap_run(folder: Path, variant: str, seconds: list[int], seed: int = 1) -> None:
    make_run(folder, variant, 4, seed, 300.0)
    path = folder / f"{variant}-hops4" / f"seed-{seed}" / "metrics.json"
    metrics = json.loads(path.read_text())
    metrics["flows"]["flow1"] |= {
        "window_s": [2.0, 6.0],
        "acked_bps_by_second": seconds,
        "rtt_ms_mean": 80.0,
        "rtt_ms_p95": 150.0,
    }
    path.write_text(json.dumps(metrics))


def test_tcpap_chain_measures_how_uneven_the_throughput_is(tmp_path):
    tcpap_run(tmp_path, "newreno", [0, 0, 100, 300, 100, 300])  # the first two seconds are not measured
    tcpap_run(tmp_path, "tcpap", [0, 0, 200, 200, 200, 200])
    tcpap_run(tmp_path, "tcpap", [0, 0, 0, 0, 0, 0], seed=2)  # nothing came through: no coefficient
    write_tables(collect(tmp_path, {"name": "tcpap-chain", "axes": {"hops": [4]}}))
    found = tcpap_chain.unevenness(tmp_path)
    # mean 200, standard deviation 100
    assert found["newreno"][0]["mean"] == pytest.approx(0.5)
    assert (found["tcpap"][0]["mean"], found["tcpap"][0]["n"]) == (0, 1)
    rates, trips, variation = panels(tcpap_chain.draw, tmp_path)
    assert {name: (one.points, one.half_widths) for name, one in rates.named.items()} == {
        "NewReno": ([(4, 300)], None), "TCP-AP": ([(4, 300)], [0]),
    }  # fmt: skip
    assert [trips.of("tcpap", line=line).points for line in ("-", "--")] == [[(4, 80)], [(4, 150)]], "mean, 95th percentile"
    assert (variation.of("newreno").points, variation.of("tcpap").points) == ([(4, 0.5)], [(4, 0)])
    assert (variation.xlabel, variation.xticks, rates.ylabel) == ("hops", ["4"], "acknowledged (kbit/s)")


def outage_run(folder: Path, variant: str, probing: bool) -> Path:
    """sta2 is off from 1 s to 5 s; what sta1 sends again then dies on its radio, or is held and recorded in tcp.csv alone."""
    chain = Chain()
    chain.travel(chain.data(1), 900, FORWARD)
    chain.travel(chain.ack(1), 930, BACKWARD)
    chain.sample(950, cwnd=6, event="")
    chain.power(1, 2, False)
    chain.lose(chain.data(2), 1010, 1, 2)
    chain.sample(1030, event="notice", detail="unreachable seq=2001")
    if probing:
        chain.sample(1031, event="stand-by", detail="unreachable")
        for at_ms in (3031, 5031):
            chain.sample(at_ms, event="probe", detail="seq=2001")
        chain.sample(1500, event="timeout", detail="1")  # in the stand-by: nothing left
    else:
        chain.sample(1500, event="timeout", detail="1")
        chain.lose(chain.data(2), 1502, 1, 2)
        chain.sample(2300, event="timeout", detail="2")  # of this one the capture has nothing: routing held it
    chain.power(5, 2, True)
    chain.travel(chain.data(2), 5035, FORWARD)
    chain.travel(chain.ack(2), 5065, BACKWARD)
    if probing:
        chain.sample(5086, event="repair", detail="ack")
    chain.folder.scenario |= {"duration": 6.0}
    run_dir = chain.write(folder / variant / "seed-1")
    run = json.loads((run_dir / "run.json").read_text()) | {"variant": variant, "seed": 1}
    (run_dir / "run.json").write_text(json.dumps(run))
    return run_dir


def story_at(run_dir: Path) -> Story:
    run = RunDirectory(run_dir)
    return read_story(run, run.flows[0])


def test_a_retransmission_counts_once_whether_captured_or_reported(tmp_path):
    story = story_at(outage_run(tmp_path, "newreno", probing=False))
    assert [round(at_s, 3) for at_s in retransmissions_s(story, 1, 5)] == [1.5, 2.3]
    outage = outage_of(story)
    assert (outage.station, outage.intervals_s) == ("sta2", [pytest.approx(0.8)])
    assert outage.resumed_s == pytest.approx(0.055)  # sent at 5.035 s, two hops of 10 ms


def test_time_outs_in_a_stand_by_send_nothing(tmp_path):
    story = story_at(outage_run(tmp_path, "elfn", probing=True))
    assert [round(at_s, 3) for at_s in retransmissions_s(story, 1, 5)] == [3.031]
    assert len(outage_of(story).notices_s) == 1


def test_window_and_rto_are_read_before_the_outage_and_once_the_first_ack_was_processed(tmp_path):
    run_dir = outage_run(tmp_path, "newreno", probing=False)
    rows = (run_dir / "tcp.csv").read_text().splitlines()
    later = [row.split(",") for row in (rows[1], rows[1])]
    for fields, at_ms, una, cwnd in ((later[0], 5085, 1001, 1), (later[1], 5095, 2001, 2)):
        fields[0], fields[9], fields[10] = str(1_700_000_000_000_000_000 + at_ms * 1_000_000), str(una), str(cwnd)
    (run_dir / "tcp.csv").write_text("\n".join([*rows, *(",".join(fields) for fields in later)]) + "\n")
    outage = outage_of(story_at(run_dir))
    assert (outage.cwnd_before, outage.cwnd_after, outage.rto_before_ms) == (6, 2, 240.0)


def test_tcp_outage_draws_a_panel_a_tcp_and_writes_the_numbers(tmp_path):
    outage_run(tmp_path, "elfn", probing=True)
    outage_run(tmp_path, "newreno", probing=False)
    (tmp_path / "experiment.json").write_text(json.dumps({"variants": ["newreno", "elfn"]}))
    drawn = page(tcp_outage.draw, tmp_path)
    newreno, elfn = drawn.panels
    assert (newreno.title, elfn.title) == ("NewReno [0.05 s]", "ELFN, state unchanged [0.05 s]")
    # seconds since the outage began; segments counted from the last one acknowledged before
    before = {"data": [(-0.1, 0), (0.01, 1)], "ACKed": [(-0.05, 0), (4.085, 1)]}
    assert {name: one.points for name, one in newreno.named.items() if one.points and name != "notice"} == before | {
        "again": [(0.502, 1), (4.035, 1)], "again, held by routing": [(1.3, 1)],
    }  # fmt: skip
    assert {name: one.points for name, one in elfn.named.items() if one.points and name != "notice"} == before | {
        "probe": [(4.035, 1)], "probe, held by routing": [(2.031, 1)],
    }  # fmt: skip
    for panel in drawn.panels:
        assert panel.named["notice"].x == [0.03, 0.03]
        assert [box.x for box in panel.boxes] == [(0, 4)], "the outage"
    assert "again, held by routing" in drawn.legend
    rows = list(csv.DictReader((tmp_path / "outage.csv").open()))
    assert [(row["variant"], row["sent_s"], row["intervals_s"], row["resumed_s"]) for row in rows] == [
        ("newreno", "0.500 1.300", "0.800", "0.055"),
        ("elfn", "2.031", "", "0.055"),
    ]


def test_without_an_outage_or_a_run_there_is_one_line(tmp_path):
    with pytest.raises(RunFileError, match="run the experiment first"):
        tcp_outage.draw(tmp_path)
    chain = Chain()
    chain.travel(chain.data(1), 0, FORWARD)
    with pytest.raises(RunFileError, match="no station is switched off and on again"):
        outage_of(story_at(chain.write(tmp_path / "seed-1")))


def test_a_tcp_that_never_resumes_has_no_resume_time():
    outage = Outage(1.0, 5.0, "sta2", [1.5, 2.5, 4.5], [], None, 8, None, 200.0, None)
    assert outage.resumed_s is None and outage.intervals_s == [1.0, 2.0]
