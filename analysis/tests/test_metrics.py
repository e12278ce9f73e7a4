"""One whole run directory to metrics.json: exact numbers, and the checks when a witness is wrong."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from analysis.captures.air import Matching
from analysis.captures.iperf import IperfReport
from analysis.metrics.analyse import analyse_run
from analysis.metrics.checks import LayersPart, air_capture, iperf_retransmissions
from analysis.metrics.datagrams import longest_silence_s, silence_s
from analysis.metrics.throughput import Segments, SenderView, Staircase
from analysis.tables.results import own_metrics
from analysis.tests import make_fixtures
from traffic import kind_named, kind_names
from traffic.bulk import Bulk
from traffic.shared.kind import Metric

FIXTURE = Path(__file__).parent / "fixtures" / "two-flows"


@pytest.fixture
def run_dir(tmp_path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "seed-1"))


def _failed(metrics: dict) -> dict[str, str]:
    return {check["name"]: check["detail"] for check in metrics["checks"] if not check["ok"]}


def test_the_stored_fixture_is_what_its_script_writes(tmp_path):
    make_fixtures.main(tmp_path)
    written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    stored = {path.relative_to(FIXTURE.parent): path.read_bytes() for path in FIXTURE.rglob("*") if path.is_file()}
    assert written == stored, "run `python -m analysis.tests.make_fixtures` and review the difference"


def test_tcp_flow_to_the_byte(run_dir):
    """Segment k leaves at 50 + 100 k ms and its ACK arrives 40 ms later; the window is [1 s, 5 s) after the SYN."""
    flow = analyse_run(run_dir)["flows"]["flow1"]
    # ACKs at 90 + 100 k ms: k = 10 (1090) .. 49 (4990); but 49's comes at 5030, so that 39 segments are acknowledged
    assert flow["acked_bps"] == 39 * 1000 * 8 / 4
    # arrivals at 70 + 100 k ms: k = 10 .. 49; the lost one, 20, is repeated within the window
    assert flow["delivered_bps"] == 40 * 1000 * 8 / 4
    # sent at 50 + 100 k ms: k = 10 .. 49, and one repetition
    assert (flow["segments"], flow["retransmissions"]) == (41, 1)
    # 39 segments acknowledged in the window less 20..23, whose ACK covers the repeated one: 35 samples, one of 100 ms
    assert flow["rtt_ms_mean"] == pytest.approx((34 * 40 + 100) / 35)
    assert flow["rtt_ms_p95"] == 40
    assert flow["goodput_bps"] == flow["delivered_bps"]  # the cookie came before the window
    assert flow["iperf3_bps"] == pytest.approx((60_000 - 37) * 8 / 6)
    assert flow["air_bps"] == flow["delivered_bps"]  # nothing arrived twice
    # in order at 1970 ms (segment 19) and at 2410 ms, when the repeated one fills the hole
    assert (flow["longest_silence_s"], flow["silence_s"]) == (0.44, 0)
    # row n of tcp.csv has the window from row n - 1 on: 5 for 190 ms, 6 for 300, 7 for 300, 8 for 600; 4, 5, 6, 7 for 400 each, 8
    segments_s = 5 * 0.19 + 6 * 0.3 + 7 * 0.3 + 8 * 0.6 + (4 + 5 + 6 + 7) * 0.4 + 8 * 1.01
    assert flow["cwnd_mean"] == pytest.approx(segments_s / 4)
    assert flow["start_ns"] == 1_700_000_000_000_000_000


def test_datagram_flow_to_the_byte(run_dir):
    """Datagram k leaves 50 k ms after the first; the window is [1 s, 5 s) after it, so k = 20 .. 99."""
    flow = analyse_run(run_dir)["flows"]["flow2"]
    assert flow["sent"] == 80
    assert flow["loss"] == 8 / 80  # 29, 39, ..., 99
    assert flow["delivered_bps"] == 72 * 500 * 8 / 4
    delays = [10 + k % 5 for k in range(20, 100) if k % 10 != 9]
    mean = sum(delays) / 72
    assert flow["latency_ms_mean"] == pytest.approx(mean)
    assert flow["jitter_ms"] == pytest.approx((sum((delay - mean) ** 2 for delay in delays) / 71) ** 0.5)
    assert flow["silence_s"] == 0  # what is lost leaves 0.1 s between two
    assert flow["longest_silence_s"] == 0.097  # 28 arrived after 13 ms, 29 is lost, 30 arrives after 10
    assert flow["delivery"] == 72 / 80
    # 10 to 13 ms 16 times each, 14 ms (k = 24, 34, ..., 94) 8 times: 0-based ranks 0.05 * 71 = 3.55, 35.5, 67.45 and 70.29
    assert [flow[f"latency_ms_{name}"] for name in ("p5", "p50", "p95", "p99", "max")] == [10, 12, 14, 14, 14]


def test_the_records_of_a_datagram_flow_agree_with_the_captures(run_dir):
    """120 datagrams of 500 + 28 bytes, of which 12 were lost; 80 left in the window."""
    flow = analyse_run(run_dir)["flows"]["flow2"]
    records = pl.read_csv(run_dir / "datagrams" / "flow2.csv")
    assert records.columns == ["number", "bytes", "written_ns", "sent_ns", "received_ns", "latency_ms", "lost", "in_window"]
    assert records["number"].to_list() == list(range(120))
    assert records["bytes"].unique().to_list() == [528]
    assert records["sent_ns"].to_list() == records["written_ns"].to_list()  # crafted so
    assert records.filter(pl.col("lost") == 1)["number"].to_list() == list(range(9, 120, 10))
    assert records["latency_ms"].to_list() == [None if k % 10 == 9 else 10 + k % 5 for k in range(120)]
    window = records.filter(pl.col("in_window") == 1)
    assert (len(window), window["lost"].sum() / len(window)) == (flow["sent"], flow["loss"])
    assert window["latency_ms"].mean() == pytest.approx(flow["latency_ms_mean"])
    assert not (run_dir / "datagrams" / "flow1.csv").exists()


def test_a_run_with_several_flows_of_a_kind_has_their_fairness(run_dir):
    """The fixture has one flow of each kind; a second entry of the same datagrams has the same rate."""
    assert "fairness" not in analyse_run(run_dir)
    scenario = json.loads((run_dir / "scenario.json").read_text())
    _lie(run_dir / "scenario.json", "flows", value=[*scenario["flows"], scenario["flows"][1]])
    shutil.copy(run_dir / "traffic" / "flow2.json", run_dir / "traffic" / "flow3.json")
    assert analyse_run(run_dir)["fairness"] == {"cbr": 1.0}


class Reported(Bulk):
    """A kind of which no connection is known."""

    transport = None
    measured = None
    own_metrics = (Metric("pages", "pages", "pages that were read"),)


def test_a_flow_without_a_connection_has_the_figures_of_its_report(run_dir, monkeypatch):
    monkeypatch.setattr("scenarios.flows.kinds.kind_named", {"bulk": Reported(), "cbr": kind_named("cbr")}.get)
    _lie(run_dir / "traffic" / "flow1.json", "pages", value=17)
    _lie(run_dir / "traffic" / "flow1.json", "manet", value={"first_try_s": 1_700_000_000.5, "connected": True})
    flow = analyse_run(run_dir)["flows"]["flow1"]
    assert list(flow) == ["traffic", "from", "to", "source_port", "destination_port", "start_ns", "window_s", "pages"]
    assert (flow["pages"], flow["start_ns"], flow["window_s"]) == (17, 1_700_000_000_500_000_000, [1.0, 5.0])
    assert own_metrics([Reported()]) == {"pages": ("pages", "pages", 1)}  # its column of table.csv


def test_a_flow_of_an_unknown_kind_is_named(run_dir):
    _lie(run_dir / "scenario.json", "flows", value=[{"from": "sta1", "to": "sta3", "traffic": "voice"}])
    metrics = analyse_run(run_dir)
    assert (metrics["flows"], list(_failed(metrics))) == ({}, ["scenario readable"])
    known = ", ".join(kind_names())
    assert f'flow1 is "voice", this version knows {known}' in _failed(metrics)["scenario readable"]


def test_a_flow_that_carried_nothing_is_a_remark(run_dir):
    assert "remarks" not in analyse_run(run_dir)
    tried = {"first_try_s": 1_700_000_000.5, "connected": False, "remark": "unable to connect to server: No route to host"}
    _lie(run_dir / "traffic" / "flow1.json", "manet", value=tried)
    _lie(run_dir / "traffic" / "flow2.json", "manet", value={"first_try_s": 1_700_000_000.5, "connected": False})
    metrics = analyse_run(run_dir)
    assert metrics["flows"]["flow1"]["acked_bps"] == metrics["flows"]["flow2"]["delivered_bps"] == 0
    assert metrics["remarks"] == [
        "flow1 from sta1 to sta2 never connected (unable to connect to server: No route to host); its rates are 0",
        "flow2 from sta3 to sta2 sent no datagram over its radio; its rates are 0",
    ]


def test_silence_is_the_sum_of_the_long_gaps_to_both_ends_of_the_window():
    assert longest_silence_s([0, 400_000_000, 1_200_000_000, 1_300_000_000]) == pytest.approx(0.8)
    assert silence_s([0, 400_000_000, 1_200_000_000, 1_300_000_000, 2_000_000_000]) == pytest.approx(0.8 + 0.7)


def test_the_air_by_station(run_dir):
    air = analyse_run(run_dir)["air"]
    assert air["window_s"] == 4.5  # from flow1's 1 s to flow2's 0.5 s + 5 s
    assert air["stations"]["sta1"]["drops"] == {"retry-short": 1}
    assert air["stations"]["sta1"]["fates"]["hidden"] == 7
    rows = [line.split(",") for line in (run_dir / "air.csv").read_text().splitlines()[1:]]
    # model time 0 is 2 s before the captures' T0, so that the window is [3 s, 7.5 s) there
    own = [row for row in rows if row[1:3] == ["sta3", "tx"] and 3e9 <= int(row[0]) < 7.5e9]
    assert air["stations"]["sta3"]["airtime_share"] == pytest.approx(sum(int(row[9]) for row in own) / 4.5e9)


def test_all_sources_of_the_fixture_agree_and_the_file_has_the_returned_value(run_dir):
    metrics = analyse_run(run_dir)
    assert _failed(metrics) == {}
    assert len(metrics["checks"]) == 12
    assert json.loads((run_dir / "metrics.json").read_text()) == metrics


def _lie(path: Path, *keys, value) -> None:
    content = json.loads(path.read_text())
    place = content
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("file", "keys", "value", "check"),
    [
        ("traffic/flow1.json", ("end", "sum_received", "bytes"), 59_964, "flow1 iperf3-capture"),  # one byte too many
        ("traffic/flow1.json", ("end", "sum_received", "bytes"), 58_962, "flow1 iperf3-capture"),  # a block and a byte short
        ("traffic/flow1.json", ("end", "sum_sent", "retransmits"), 3, "flow1 iperf3-retransmissions"),
        ("traffic/flow1.json", ("start", "test_start", "duration"), 4, "flow1 window-covered"),
        ("traffic/flow1.json", ("error",), "control socket has closed", "flow1 iperf3-report"),
        ("traffic/flow2.json", ("end", "sum_received", "bytes"), 53_500, "flow2 iperf3-capture"),
        ("counters.json", ("stations", "sta1", "retry_short"), 2, "air-counters"),
        ("counters.json", ("stations", "sta1", "tx_ba"), 1, "air-counters"),
        ("run.json", ("epoch_ns",), make_fixtures.EPOCH_NS + 10**10, "flow1 air-capture"),
    ],
)
def test_a_witness_that_disagrees_is_named(run_dir, file, keys, value, check):
    _lie(run_dir / file, *keys, value=value)
    assert check in _failed(analyse_run(run_dir))


@pytest.mark.parametrize(
    ("after_s", "events", "most"),
    [
        (1, ("stand-by", "repair"), 6),  # in 1 s up to 4 tries; 1 was captured, 1 may be a SYN
        (1, ("stand-by",), 14),  # it never ends, and iperf3 reports when the capture ends: 12 tries in its last 5.02 s
    ],
)
def test_retransmissions_kept_back_by_a_layer_are_no_disagreement(run_dir, after_s, events, most):
    """The kernel counts what the gate does not let out."""
    rows = (run_dir / "tcp.csv").read_text().splitlines()
    columns, sample = rows[0].split(","), rows[1].split(",")
    begin_ns = int(sample[0])
    for second, event in enumerate(events, after_s):
        row = dict(zip(columns, sample, strict=True)) | {
            "t_ns": str(begin_ns + second * 10**9), "event": event, "detail": "unreachable",
        }  # fmt: skip
        rows.append(",".join(row[name] for name in columns))
    (run_dir / "tcp.csv").write_text("\n".join(rows) + "\n")
    for counted, agrees in ((most, True), (most + 1, False)):
        _lie(run_dir / "traffic" / "flow1.json", "end", "sum_sent", "retransmits", value=counted)
        assert ("flow1 iperf3-retransmissions" not in _failed(analyse_run(run_dir))) == agrees


def test_retransmissions_are_kept_back_until_an_interrupted_client_counts_them(run_dir):
    """A sender in stand-by sends nothing more, so its capture ends before iperf3 gives up: 12 tries in the last 5.02 s that the
    capture covers, 31 in the 14.7 s until the count; 1 was captured, 1 may be a SYN."""
    rows = (run_dir / "tcp.csv").read_text().splitlines()
    columns, sample = rows[0].split(","), rows[1].split(",")
    row = dict(zip(columns, sample, strict=True)) | {
        "t_ns": str(int(sample[0]) + 10**9),
        "event": "stand-by",
        "detail": "unreachable",
    }
    (run_dir / "tcp.csv").write_text("\n".join([*rows, ",".join(row[name] for name in columns)]) + "\n")
    for counted_s, most in ((6.0, 14), (16.0, 33)):
        _lie(run_dir / "traffic" / "flow1.json", "end", "sum_sent", "seconds", value=counted_s)
        for counted, agrees in ((most, True), (most + 1, False)):
            _lie(run_dir / "traffic" / "flow1.json", "end", "sum_sent", "retransmits", value=counted)
            assert ("flow1 iperf3-retransmissions" not in _failed(analyse_run(run_dir))) == agrees


def test_a_server_whose_client_was_interrupted_has_read_what_arrived_in_its_seconds(run_dir):
    """3 s after the first segment 30 have arrived, of 1000 bytes each; a block has 1000, the cookie 37."""
    remark = {"first_try_s": None, "connected": True, "remark": "interrupt - the client has terminated"}
    for exchanged, read, agrees in ((remark, 28_963, True), (remark, 28_962, False), ({}, 28_963, False)):
        _lie(run_dir / "traffic" / "flow1.json", "manet", value=exchanged)
        _lie(run_dir / "traffic" / "flow1.json", "end", "sum_received", value={"bytes": read, "seconds": 3.0})
        assert ("flow1 iperf3-capture" not in _failed(analyse_run(run_dir))) == agrees


def test_copies_of_probes_by_the_routing_daemon_are_no_disagreement():
    """TCP sent segment 2 twice; the daemon sent the only probe three times. The kernel has no number for a probe's packet."""
    start, numbers = np.array([0, 1460, 1460, 1460, 1460, 1460]), np.array([5, 6, 7, 0, 0, 0])
    repeated = np.array([False, False, True, True, True, True])
    segments = Segments(np.arange(6), start, start + 1460, repeated, numbers == 0)
    sender = SenderView(segments, Staircase(), unseen_bytes=0, largest_flight_bytes=0, routing_resends=0)
    report = IperfReport(None, block_bytes=0, start_s=0, test_s=10, received_bytes=0, received_s=0, retransmissions=1, error=None)
    assert iperf_retransmissions("flow1", report, sender, layers=LayersPart(probes=1, stand_bys_s=(2.0,))).ok
    assert not iperf_retransmissions("flow1", report, sender).ok


def test_retransmissions_of_a_sender_that_was_switched_off_are_no_disagreement(run_dir):
    """In 1 s without a radio up to 6 tries, which no capture has. 1 was captured, 1 may be a SYN."""
    begin_s = int((run_dir / "tcp.csv").read_text().splitlines()[1].split(",")[0]) / 1e9 - make_fixtures.EPOCH_NS / 1e9
    rows = [f"{begin_s + 1:.6f},1,power,sta1,off", f"{begin_s + 2:.6f},2,power,sta1,on"]
    (run_dir / "events.csv").write_text("\n".join(["t_s,at_s,event,station,detail", *rows, ""]))
    for counted, agrees in ((8, True), (9, False)):
        _lie(run_dir / "traffic" / "flow1.json", "end", "sum_sent", "retransmits", value=counted)
        metrics = analyse_run(run_dir)
        assert ("flow1 iperf3-retransmissions" not in _failed(metrics)) == agrees
        assert metrics["remarks"] == ["events: sta1 off at 1 s; sta1 on at 2 s"]


def test_events_that_stop_stations_and_wires_are_one_remark(tmp_path):
    rows = [
        "1,1,wire,gw host1,stalled", "2,1.5,move,sta2,to 1 2", "3,2,link,sta1 sta2,error_rate 1", "4,2.5,wire,gw host1,goes on",
        '5,3,cut,sta2,"off, next hop of sta1 to sta4"',
    ]  # fmt: skip
    (tmp_path / "events.csv").write_text("\n".join(["t_s,at_s,event,station,detail", *rows, ""]))
    wire = "wire gw host1 stalled at 1 s; wire gw host1 goes on at 2.5 s"
    assert analyse_run(tmp_path)["remarks"] == [f"events: {wire}; cut: sta2 off, next hop of sta1 to sta4 at 3 s"]


def test_the_mean_rate_and_aggregate_are_those_of_the_data_frames_in_the_window(run_dir):
    path = run_dir / "air.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    data = [row for row in rows if (row["event"], row["frame"]) == ("tx", "data")]
    for number, row in enumerate(data):  # by turns an A-MPDU of two at 65 Mbit/s and two frames at 13 Mbit/s
        aggregate, row["rate_bps"] = [("1/2", 65_000_000), ("2/2", 65_000_000), ("", 13_000_000), ("", 13_000_000)][number % 4]
        row["aggregate"] = aggregate
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "aggregate"] if "aggregate" not in rows[0] else list(rows[0]), restval="")
        writer.writeheader()
        writer.writerows(rows)
    flow = analyse_run(run_dir)["flows"]["flow1"]
    begin_ns = flow["start_ns"] - json.loads((run_dir / "run.json").read_text())["epoch_ns"] + 10**9
    inside = [row for row in data if begin_ns <= int(row["t_ns"]) < begin_ns + 4 * 10**9 and row["station"] == "sta1"]
    assert len(inside) > 30
    assert flow["data_rate_bps"] == pytest.approx(sum(row["rate_bps"] for row in inside) / len(inside))
    assert flow["mpdus_per_ppdu"] == len(inside) / sum(row["aggregate"] != "2/2" for row in inside)


def test_without_aggregation_a_frame_has_one_mpdu(run_dir):
    assert analyse_run(run_dir)["flows"]["flow1"]["mpdus_per_ppdu"] == 1


def test_frames_missing_from_the_air_log_are_noticed(run_dir):
    lines = (run_dir / "air.csv").read_text().splitlines(keepends=True)
    gone = [number for number, line in enumerate(lines) if ",sta2,deliver," in line][60:65]
    (run_dir / "air.csv").write_text("".join(line for number, line in enumerate(lines) if number not in gone))
    failed = _failed(analyse_run(run_dir))
    assert "5 only captured" in failed["flow1 air-capture"]
    assert "sta2 delivered_up" in failed["air-counters"]


def test_a_frame_in_one_source_alone_is_a_difference():
    nothing = pl.DataFrame(schema={"lag_ns": pl.Int64})
    assert air_capture("flow1", "sta2", Matching(nothing, 0, 0)).ok
    assert not air_capture("flow1", "sta2", Matching(nothing, 1, 0)).ok
    assert not air_capture("flow1", "sta2", Matching(nothing, 0, 1)).ok


def test_a_truncated_capture_leaves_the_flow_unmeasured_and_is_named(run_dir):
    path = run_dir / "captures" / "sta2.pcap"
    path.write_bytes(path.read_bytes()[:-10])
    metrics = analyse_run(run_dir)
    assert metrics["flows"]["flow1"]["acked_bps"] is None
    assert "sta2.pcap: cut short" in _failed(metrics)["flow1 readable"]


def test_a_flow_that_never_started_is_named(run_dir):
    (run_dir / "captures" / "sta1.pcap").write_bytes((run_dir / "captures" / "sta1.pcap").read_bytes()[:24])
    assert "no packet of flow1" in _failed(analyse_run(run_dir))["flow1 readable"]


@pytest.mark.parametrize("name", ["traffic/flow1.json", "air.csv", "counters.json", "captures/sta1.pcap"])
def test_a_missing_file_is_named_and_the_rest_is_still_measured(run_dir, name):
    (run_dir / name).unlink()
    metrics = analyse_run(run_dir)
    assert any(Path(name).name in detail for detail in _failed(metrics).values())
    assert metrics["flows"]["flow2"]["delivered_bps"] == 72_000


def test_a_run_that_ended_at_once_is_analysed_to_nothing(tmp_path):
    (tmp_path / "run.json").write_text('{"format":"manet-run/1","epoch_ns":null,"status":"failed"}')
    metrics = analyse_run(tmp_path)
    assert metrics["flows"] == {}
    assert "scenario.json: missing" in _failed(metrics)["scenario readable"]


def test_a_run_without_its_medium_s_epoch_is_measured_from_the_captures(run_dir):
    _lie(run_dir / "run.json", "epoch_ns", value=None)
    metrics = analyse_run(run_dir)
    assert metrics["flows"]["flow1"]["acked_bps"] == 78_000
    assert "no epoch_ns" in _failed(metrics)["flow1 air-capture"]


def test_without_iperf3_s_report_the_connection_is_found_in_the_capture(run_dir):
    expected = analyse_run(run_dir)["flows"]["flow1"]["acked_bps"]
    (run_dir / "traffic" / "flow1.json").unlink()
    assert analyse_run(run_dir)["flows"]["flow1"]["acked_bps"] == expected


def test_a_failed_cross_check_makes_a_valid_run_suspect_until_the_sources_agree(run_dir):
    log = run_dir / "air.csv"
    whole = log.read_text()
    log.write_text("".join(line for line in whole.splitlines(keepends=True) if ",deliver," not in line))
    failed = _failed(analyse_run(run_dir))
    verdict = json.loads((run_dir / "verdict.json").read_text())
    assert verdict["verdict"] == "suspect" and verdict["checks"]["failed"] == list(failed)
    assert verdict["reasons"][0].startswith("the cross-check flow1 air-capture failed: sta2: 0 frames in both")
    analyse_run(run_dir)
    assert json.loads((run_dir / "verdict.json").read_text()) == verdict
    log.write_text(whole)
    analyse_run(run_dir)
    verdict = json.loads((run_dir / "verdict.json").read_text())
    assert verdict == {"format": "manet-verdict/1", "verdict": "valid", "reasons": []}
