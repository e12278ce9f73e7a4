"""table.csv, summary.csv and the printed table, from run directories with metrics made up."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from analysis.reports.printed import flows_table, result_table
from analysis.tables.results import FLOW_METRICS, collect, mean_and_interval, read_summary, shown_metric, write_tables
from record.errors import RunFileError

EXPERIMENT = {"name": "hv-fig1", "axes": {"hops": [1, 2]}, "published": "holland-vaidya_fig1", "ns2": "chain_static"}


def make_run(
    out_dir: Path, variant: str, hops: int, seed: int, acked_kbps: float | None, verdict="valid", status="complete", **more
):
    """A run directory with metrics made up; `more` may hold further `flows` and `checks`."""
    folder = out_dir / f"{variant}-hops{hops}" / f"seed-{seed}"
    folder.mkdir(parents=True)
    run = {"format": "manet-run/1", "variant": variant, "axes": {"hops": hops}, "seed": seed, "status": status}
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "scenario.json").write_text(json.dumps({"hops": hops}))
    (folder / "verdict.json").write_text(json.dumps({"verdict": verdict}))
    if acked_kbps is not None:
        flow = dict.fromkeys(entry for _, entry, _ in FLOW_METRICS.values()) | {"acked_bps": acked_kbps * 1e3}
        flows = {"flow1": flow, **more.get("flows", {})}
        metrics = {"format": "manet-metrics/1", "flows": flows, "checks": more.get("checks", [])}
        (folder / "metrics.json").write_text(json.dumps(metrics))


@contextmanager
def metrics_of(run_dir: Path) -> Iterator[dict]:
    """The run's metrics, written back with what the block changes."""
    path = run_dir / "metrics.json"
    metrics = json.loads(path.read_text())
    yield metrics
    path.write_text(json.dumps(metrics))


def _summary(out_dir: Path, metric: str = "acked_kbps") -> dict[tuple, dict]:
    return {(row["variant"], row["hops"]): row for row in read_summary(out_dir) if row["metric"] == metric}


def test_mean_interval_and_references_are_in_one_row(tmp_path):
    for seed, value in enumerate((600.0, 620.0, 640.0), start=1):
        make_run(tmp_path, "ns2", 2, seed, value)
    write_tables(collect(tmp_path, EXPERIMENT))
    row = _summary(tmp_path)["ns2", 2.0]
    assert row["mean"] == 620
    # s = 20, n = 3, Student's t for 2 degrees of freedom at 97.5 %: 4.302653; 4.302653 * 20 / sqrt(3)
    assert row["ci95"] == pytest.approx(49.683, abs=1e-3)
    assert (row["n"], row["unit"]) == (3, "kbit/s")
    assert (row["published"], row["ns2"]) == (729.0, 619.19)
    assert (row["valid"], row["suspect"], row["void"]) == (3, 0, 0)


def test_figures_over_all_flows_of_a_kind_have_columns(tmp_path):
    """Service times of 10 and 14 s in two runs, and one session of the second finished; without ACKs they are shown."""
    for seed, service_s in ((1, 10.0), (2, 14.0)):
        make_run(tmp_path, "ns2", 2, seed, 0.0)
        sessions = {"service_s": service_s, "throughput_bps": None, "finished_sessions": seed - 1, "sessions": 2}
        with metrics_of(tmp_path / "ns2-hops2" / f"seed-{seed}") as metrics:
            metrics["flows"]["flow1"]["acked_bps"] = None
            metrics["kinds"] = {"web": sessions}
    write_tables(collect(tmp_path, EXPERIMENT))
    row = _summary(tmp_path, "web_service_s")["ns2", 2.0]
    assert (row["mean"], row["n"], row["unit"]) == (12.0, 2, "s")
    assert _summary(tmp_path, "web_finished_sessions")["ns2", 2.0]["mean"] == 0.5
    assert _summary(tmp_path, "web_throughput_bps") == {}
    assert shown_metric(read_summary(tmp_path)) == "web_service_s"


def profiled(out_dir: Path, variant: str, profile: str) -> None:
    for path in out_dir.glob(f"{variant}-*/seed-*/scenario.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"profile": profile}))


def test_the_tables_say_under_which_profile_a_tcp_ran(tmp_path):
    for variant, profile in (("ns2", "period"), ("hv", "modern")):
        make_run(tmp_path, variant, 1, 1, 1200.0)
        profiled(tmp_path, variant, profile)
    table, summary = write_tables(collect(tmp_path, EXPERIMENT))
    with table.open() as file:
        assert {row["variant"]: row["profile"] for row in csv.DictReader(file)} == {"ns2": "period", "hv": "modern"}
    with summary.open() as file:
        assert {row["variant"]: row["profile"] for row in csv.DictReader(file)} == {"ns2": "period", "hv": "modern"}
    words = _printed(result_table(collect(tmp_path, EXPERIMENT)))
    assert [word for word in words.split() if word in ("profile", "period", "modern")] == ["profile", "modern", "period"]


def test_a_profile_that_all_runs_share_is_in_the_title(tmp_path):
    make_run(tmp_path, "ns2", 1, 1, 1200.0)
    profiled(tmp_path, "ns2", "period")
    title = _printed(result_table(collect(tmp_path, EXPERIMENT))).splitlines()[0]
    assert title == "hv-fig1: acknowledged throughput, kbit/s, profile period"


def test_a_profile_that_is_an_axis_has_one_column(tmp_path):
    make_run(tmp_path, "ns2", 1, 1, 1200.0)
    profiled(tmp_path, "ns2", "modern")
    for path in write_tables(collect(tmp_path, EXPERIMENT | {"axes": {"profile": ["modern"]}})):
        with path.open() as file:
            rows = csv.reader(file)
            head, row = next(rows), next(rows)
            assert (head.count("profile"), row[head.index("profile")]) == (1, "modern")


def test_void_and_unfinished_runs_are_counted_and_enter_no_mean(tmp_path):
    make_run(tmp_path, "ns2", 1, 1, 1200.0)
    make_run(tmp_path, "ns2", 1, 2, 1300.0, verdict="suspect")
    make_run(tmp_path, "ns2", 1, 3, 9999.0, verdict="void")
    make_run(tmp_path, "ns2", 1, 4, 9999.0, status="interrupted")
    make_run(tmp_path, "ns2", 1, 5, None, status="failed")
    write_tables(collect(tmp_path, EXPERIMENT))
    row = _summary(tmp_path)["ns2", 1.0]
    assert (row["mean"], row["n"]) == (1250, 2)
    assert (row["valid"], row["suspect"], row["void"]) == (1, 1, 3)


def test_runs_put_aside_when_a_campaign_repeated_them_are_left_out(tmp_path):
    make_run(tmp_path, "ns2", 1, 1, 1200.0)
    make_run(tmp_path / "void", "ns2", 1, 1, 9999.0, verdict="void")
    write_tables(collect(tmp_path, EXPERIMENT))
    row = _summary(tmp_path)["ns2", 1.0]
    assert (row["mean"], row["n"], row["void"]) == (1200, 1, 0)


def test_a_cell_of_void_runs_keeps_its_row_without_a_mean(tmp_path):
    make_run(tmp_path, "hv", 1, 1, 1400.0, verdict="void")
    write_tables(collect(tmp_path, EXPERIMENT))
    row = _summary(tmp_path)["hv", 1.0]
    assert (row["mean"], row["ci95"], row["n"], row["void"]) == (None, None, 0, 1)


def test_table_has_a_row_per_run_with_its_verdict_and_failed_checks(tmp_path):
    make_run(tmp_path, "ns2", 10, 1, 200.0, checks=[{"name": "flow1 air-capture", "ok": False, "detail": ""}])
    make_run(tmp_path, "ns2", 2, 1, 600.0, checks=[{"name": "air-counters", "ok": True, "detail": ""}])
    make_run(tmp_path, "hv", 2, 1, None, status="failed")
    table, _ = write_tables(collect(tmp_path, EXPERIMENT))
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["variant"], row["hops"]) for row in rows] == [("hv", "2"), ("ns2", "2"), ("ns2", "10")]
    assert [row["checks"] for row in rows] == ["no metrics", "ok", "flow1:air-capture"]
    assert [row["acked_kbps"] for row in rows] == ["", "600", "200"]
    assert rows[2]["run_dir"] == "ns2-hops10/seed-1"


def test_totals_are_over_all_flows(tmp_path):
    make_run(tmp_path, "ns2", 1, 1, 500.0, flows={"flow2": {"acked_bps": 250_000.0}, "flow3": {"acked_bps": None}})
    write_tables(collect(tmp_path, EXPERIMENT))
    assert _summary(tmp_path, "total_acked_kbps")["ns2", 1.0]["mean"] == 750


def test_an_experiment_may_be_read_from_the_folder(tmp_path):
    make_run(tmp_path, "ns2", 1, 1, 1234.0)
    (tmp_path / "experiment.json").write_text(json.dumps(EXPERIMENT))
    write_tables(collect(tmp_path))
    assert _summary(tmp_path)["ns2", 1.0]["published"] == 1463


def test_a_folder_without_an_experiment_is_an_error(tmp_path):
    """Without the axes, all runs of a variant would be one row."""
    make_run(tmp_path, "ns2", 1, 1, 1234.0)
    with pytest.raises(RunFileError, match=r"experiment\.json: missing; pass the experiment"):
        collect(tmp_path)


def test_an_unknown_reference_is_an_error_that_lists_the_known_ones(tmp_path):
    with pytest.raises(RunFileError, match=r"nowhere\.csv: .*there are: .*holland-vaidya_fig1"):
        write_tables(collect(tmp_path, EXPERIMENT | {"published": "nowhere"}))


def test_a_single_run_has_no_interval():
    assert mean_and_interval([5.0, None]) == {"mean": 5.0, "ci95": None, "n": 1}
    assert mean_and_interval([]) == {"mean": None, "ci95": None, "n": 0}


def test_the_printed_table_has_measured_and_reference_values_and_the_ratio(tmp_path):
    make_run(tmp_path, "ns2", 1, 1, 1246.0, checks=[{"name": "air-counters", "ok": False, "detail": ""}])
    make_run(tmp_path, "ns2", 2, 1, 600.0, verdict="void")
    console = Console(file=io.StringIO(), width=120)
    console.print(result_table(collect(tmp_path, EXPERIMENT)))
    text = console.file.getvalue()
    rows = [line.replace("│", " ").split() for line in text.splitlines()]
    # 1246 / 1463 = 0.85; 1246 / 1233.64 = 1.01; one run has no interval
    assert ["1", "ns2", "1246", "1463", "0.85", "1234", "1.01", "1", "valid"] in rows
    assert "1 void" in text
    assert "ns2-hops1/seed-1: air-counters" in text


def _printed(table, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return console.file.getvalue()


def test_the_printed_table_fits_80_columns_and_no_heading_is_cut(tmp_path):
    for seed, verdict in enumerate(("valid", "valid", "suspect", "void"), start=1):
        make_run(tmp_path, "hv-alt", 1, seed, 1246.0 + seed, verdict=verdict)
    text = _printed(result_table(collect(tmp_path, EXPERIMENT)))
    assert "…" not in text
    for word in ("hops", "variant", "mean", "±95 %", "paper", "ns-2.35", "2 valid", "1 suspect", "1 void"):
        assert word in text
    wide = _printed(result_table(collect(tmp_path, EXPERIMENT)), width=200).splitlines()
    assert max(len(line.strip()) for line in wide) <= 80


def test_columns_that_are_empty_everywhere_are_not_printed(tmp_path):
    make_run(tmp_path, "", 1, 1, 1246.0)
    text = _printed(result_table(collect(tmp_path, {"name": "plain", "axes": {"hops": [1]}})))
    assert all(heading not in text for heading in ("±95 %", "paper", "ns-2", "variant"))
    assert "1 run; captures, iperf3, air log and counters agree" in " ".join(text.split())
    assert "1 runs" not in text


@pytest.mark.parametrize("acked_kbps", [None, 300.0], ids=["no metrics", "what it measured until then"])
def test_of_a_run_that_failed_no_agreement_is_claimed(tmp_path, acked_kbps):
    plain = {"name": "plain", "axes": {"hops": [1]}}
    make_run(tmp_path, "", 1, 1, acked_kbps, status="failed", verdict="void")
    text = " ".join(_printed(result_table(collect(tmp_path, plain))).split())
    assert "1 run; none complete, no cross-checks" in text and "agree" not in text
    make_run(tmp_path, "", 1, 2, 1246.0)
    text = " ".join(_printed(result_table(collect(tmp_path, plain))).split())
    assert "2 runs; captures, iperf3, air log and counters agree in 1; 1 not complete" in text


def test_each_of_several_flows_is_printed_and_the_title_identifies_flow_1(tmp_path):
    second = {"from": "sta3", "to": "sta1", "acked_bps": None, "delivered_bps": 50e3}
    make_run(tmp_path, "", 1, 1, 400.0, flows={"flow2": second})
    make_run(tmp_path, "", 1, 2, 420.0, flows={"flow2": second})
    make_run(tmp_path, "", 1, 3, 900.0, verdict="void", flows={"flow2": second})
    assert "acknowledged throughput, flow 1, kbit/s" in _printed(result_table(collect(tmp_path, EXPERIMENT)))
    rows = [line.replace("│", " ").split() for line in _printed(flows_table(collect(tmp_path, EXPERIMENT))).splitlines()]
    assert ["1", "flow2", "sta3", "to", "sta1", "delivered", "50"] in rows
    assert any(row[:2] == ["1", "flow1"] and row[-2:] == ["acked", "410"] for row in rows)


def test_without_a_rate_the_table_shows_the_metric_of_a_report():
    rows = [{"metric": "acked_kbps", "mean": None}, {"metric": "exit_status", "mean": 0.0}]
    assert shown_metric(rows) == "exit_status"
    assert shown_metric([*rows, {"metric": "delivered_kbps", "mean": 5.0}]) == "delivered_kbps"


def test_of_a_run_that_failed_no_metric_is_promised_and_no_empty_table_printed(tmp_path):
    make_run(tmp_path, "hv", 1, 1, None, status="failed")
    path = tmp_path / "hv-hops1" / "seed-1" / "metrics.json"
    web = {"traffic": "web", "from": "sta1", "to": "sta2"}
    path.write_text(json.dumps({"flows": {"flow1": web, "flow2": web}, "checks": []}))
    results = collect(tmp_path, {"name": "hv-fig1", "axes": {"hops": [1]}})
    assert _printed(result_table(results)).splitlines()[0] == "hv-fig1: no figures, as no run counts"
    assert "1 failed" in _printed(result_table(results))
    assert flows_table(results) is None


def test_a_single_flow_has_no_table_of_flows(tmp_path):
    make_run(tmp_path, "", 1, 1, 400.0)
    assert flows_table(collect(tmp_path, EXPERIMENT)) is None


def make_traffic(out_dir: Path, variant: str, flows: dict[str, dict], of_kinds: dict[str, dict] | None = None) -> None:
    """A run of these flows alone."""
    make_run(out_dir, variant, 1, 1, 0.0)
    with metrics_of(out_dir / f"{variant}-hops1" / "seed-1") as metrics:
        metrics |= {"flows": flows, "kinds": of_kinds or {}}


def words_of(out_dir: Path, **more: object) -> str:
    """Printed text in one line, without the lines of the tables."""
    text = _printed(result_table(collect(out_dir, {"name": "e", "axes": {"hops": [1]}, **more})))
    assert max(map(len, text.splitlines())) <= 80
    return " ".join("".join(" " if character in "│┃" else character for character in text).split())


def test_a_cbr_flow_prints_its_delivery_in_percent_latency_and_jitter(tmp_path):
    flow = {"traffic": "cbr", "delivered_bps": 1e5}
    make_traffic(tmp_path, "", {"flow1": flow}, {"cbr": {"delivery": 0.915, "latency_ms": 12.34, "jitter_ms": 4.0}})
    words = words_of(tmp_path)
    assert words.startswith("e: delivered; latency; jitter (cbr)")
    assert "delivered, % latency, ms jitter, ms" in words and "1 91.5 12.3 4 1 valid" in words


def test_the_silence_is_that_of_the_first_flow_of_datagrams_or_of_the_first_flow(tmp_path):
    stream, probe = {"traffic": "bulk", "silence_s": 7.0}, {"traffic": "cbr", "sent": 9, "silence_s": 2.0}
    make_traffic(tmp_path, "a", {"flow1": stream, "flow2": probe})
    make_traffic(tmp_path, "b", {"flow1": stream})
    assert [row["silence_s"] for row in collect(tmp_path, EXPERIMENT).rows] == [2.0, 7.0]


def test_a_transfer_prints_its_completion_time_and_that_it_finished(tmp_path):
    make_traffic(tmp_path, "", {"flow1": {"traffic": "transfer", "acked_bps": 1.3e5, "completion_s": 7.62, "finished": True}})
    words = words_of(tmp_path)
    assert words.startswith("e: completion time; finished (transfer)") and "1 7.62 100 1 valid" in words


def test_web_sessions_print_times_throughput_and_how_many_of_all_finished(tmp_path):
    figures = {"service_s": 0.695, "response_s": 0.05, "throughput_bps": 123e3, "finished_sessions": 1, "sessions": 2}
    make_traffic(tmp_path, "", {name: {"traffic": "web"} for name in ("flow1", "flow2")}, {"web": figures})
    words = words_of(tmp_path)
    assert words.startswith("e: service time; response time; throughput; finished (web, all flows)")
    assert "1 0.695 0.05 123 1 of 2 1 valid" in words


@pytest.mark.parametrize(
    ("flow", "title", "value"),
    [({"exit_status": 3, "ended_by_run": False}, "exit status; ended by the run (command)", "1 3 0 1 valid"),
     ({"exit_status": None, "ended_by_run": True}, "ended by the run, % of runs", "1 100 1 valid")],
)  # fmt: skip
def test_a_command_prints_its_exit_status_or_that_the_run_ended_it(tmp_path, flow, title, value):
    make_traffic(tmp_path, "", {"flow1": {"traffic": "command", **flow}})
    words = words_of(tmp_path)
    assert words.startswith(f"e: {title}") and value in words


def test_a_command_prints_the_rates_that_captures_have(tmp_path):
    own = {"traffic": "command", "exit_status": 0, "ended_by_run": False}
    upload = {"acked_bps": 4e5, "delivered_bps": 4.1e5, "back_delivered_bps": 0.0, "retransmissions": 3, "rtt_ms_mean": 25.0}
    make_traffic(tmp_path, "", {"flow1": own | upload})
    words = words_of(tmp_path)
    assert words.startswith("e: delivered; back; re-sent; RTT (command)")  # so many fit
    assert "1 410 0 3 25 1 valid" in words
    download = {"acked_bps": 0.0, "delivered_bps": 0.0, "back_delivered_bps": 3e5}
    bulk = {"traffic": "bulk", "acked_bps": 2e5, "delivered_bps": 2.1e5}
    make_traffic(tmp_path / "two", "", {"flow1": bulk, "flow2": own | download})
    words = words_of(tmp_path / "two")
    assert "e: exit status; ended by the run (command)" in words  # the columns of rates are flow 1's, which is no command
    text = _printed(flows_table(collect(tmp_path / "two", EXPERIMENT)))
    assert [line.split()[-2] for line in text.splitlines() if "flow" in line and "kbit" not in line] == ["200", "0", "300"]


def test_several_tcp_flows_print_their_sum_with_its_published_value(tmp_path):
    """Flow 1 carried nothing; the two together what the paper prints."""
    flows = {name: {"traffic": "bulk", "acked_bps": bps} for name, bps in (("flow1", 0.0), ("flow2", 536.01e3))}
    make_traffic(tmp_path, "", flows)
    run = tmp_path / "-hops1" / "seed-1" / "run.json"
    axes = {"flows": "one-upload", "tcp": "newreno"}
    run.write_text(json.dumps(json.loads(run.read_text()) | {"axes": axes}))
    words = words_of(tmp_path, axes={"flows": ["one-upload"], "tcp": ["newreno"]}, published="im_chain5")
    assert "sum of the flows, each over its own time (bulk)" in words and "0 536 536 1.00 1 valid" in words


def test_each_traffic_kind_has_a_table_over_the_cells_that_have_it(tmp_path):
    make_traffic(tmp_path, "a", {"flow1": {"traffic": "bulk", "acked_bps": 4e5}})
    make_traffic(tmp_path, "b", {"flow1": {"traffic": "command", "exit_status": 0, "ended_by_run": False}})
    make_run(tmp_path, "c", 1, 1, None, status="failed")
    bulk, command = words_of(tmp_path).split("exit status; ended by the run (command)")
    assert "1 a 400" in bulk and "1 b" not in bulk and "1 c 1 failed" in bulk
    assert "1 b 0 0" in command and "1 a" not in command and "1 c" not in command


def test_an_experiment_prints_the_metrics_that_it_names_before_those_of_its_traffic(tmp_path):
    for seed, changes in ((1, 2), (2, 4)):
        make_run(tmp_path, "", 1, seed, 400.0)
        with metrics_of(tmp_path / "-hops1" / f"seed-{seed}") as metrics:
            metrics["flows"]["flow1"]["hop_changes"] = changes
    words = words_of(tmp_path, shown=["hop_changes"])
    assert words.startswith("e: hop changes; acknowledged throughput (bulk)")
    assert "1 3 ±12.7 400 ±0 2 valid" in words  # 12.71 * sqrt(2) / sqrt(2)


def test_a_flow_without_a_rate_has_no_row_among_the_flows(tmp_path):
    command = {"traffic": "command", "exit_status": 0, "ended_by_run": False}
    make_traffic(tmp_path, "", {"flow1": {"traffic": "bulk", "acked_bps": 4e5}, "flow2": command})
    text = _printed(flows_table(collect(tmp_path, EXPERIMENT)))
    assert "flow1" in text and "flow2" not in text
    make_traffic(tmp_path, "b", {"flow1": command, "flow2": command})
    (tmp_path / "-hops1" / "seed-1" / "metrics.json").unlink()
    assert flows_table(collect(tmp_path, EXPERIMENT)) is None
