"""ns-2's stored tables and how they are made."""

import shutil

import pytest

from testbed.errors import UsageError
from testbed.validate import ns2


def test_every_run_of_the_reference_has_its_row():
    tables = {run.table for run in ns2.runs()}
    assert tables == {"ns2_saturation", "ns2_near_far", "ns2_hidden", "ns2_udp_chain", "ns2_tcp_chain"}
    for table in tables:
        stored = ns2.read(table)
        wanted = [{k: str(v) for k, v in run.columns.items()} for run in ns2.runs() if run.table == table]
        assert [{k: row[k] for k in wanted[0]} for row in stored] == wanted


def test_summary_is_mean_and_sample_deviation():
    rows = [{"n": "2", "throughput_kbps": value} for value in ("1.0", "2.0", "3.0")]
    assert ns2.summarise(rows, n=2) == ns2.Summary(2.0, 1.0, 3)


def test_a_missing_row_is_an_error_with_the_remedy():
    with pytest.raises(UsageError, match="--rerun-ns2"):
        ns2.summarise(ns2.read("ns2_saturation"), senders=3, rts="on")


def test_without_ns2_a_rerun_names_the_package(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(UsageError, match="apt-get install ns2"):
        ns2.rerun(lambda done, total: None)


def test_frames_are_counted_inside_the_window_only(tmp_path):
    trace = tmp_path / "trace"
    trace.write_text(
        "s 4.900000000 _1_ MAC  --- 0 RTS 44 [1b36 0 2 0] \n"
        "s 5.000000000 _1_ MAC  --- 0 RTS 44 [1b36 0 2 0] \n"
        "s 5.100000000 _2_ MAC  --- 0 RTS 44 [1b36 0 2 0] \n"
        "s 5.200000000 _0_ MAC  --- 0 ACK 38 [0 1 0 0] \n"
        "r 5.200000000 _1_ MAC  --- 0 ACK 38 [0 1 0 0] \n"
        "D 5.300000000 _1_ MAC  RET 7 cbr 1552 [13a 0 1 800] ------- [1:0 0:0 32 0] [74] 0 0\n"
        "D 5.300000000 _1_ IFQ  --- 7 cbr 1500 [0 0 1 800] ------- [1:0 0:0 32 0] [74] 0 0\n"
        "s 35.000000000 _1_ MAC  --- 0 RTS 44 [1b36 0 2 0] \n"
    )
    assert ns2._count_frames(trace, 5.0, 35.0) == {
        "rts_sent": "2",
        "data_sent": "0",
        "ack_sent": "1",
        "retry_drops": "1",
        "failed_attempts": "0.5000",
    }


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed (apt-get install ns2)")
@pytest.mark.parametrize("table", ["ns2_saturation", "ns2_near_far", "ns2_hidden", "ns2_udp_chain", "ns2_tcp_chain"])
def test_ns2_gives_the_stored_row_again(table):
    run = next(run for run in reversed(ns2.runs()) if run.table == table)
    stored = next(row for row in ns2.read(table) if all(row[name] == str(value) for name, value in run.columns.items()))
    assert ns2._run(run) == stored


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed (apt-get install ns2)")
def test_a_scenario_refuses_an_unknown_key(tmp_path):
    with pytest.raises(Exception, match="colour: unknown key"):
        ns2.call_ns("one_hop", {"colour": "blue"}, str(tmp_path))
