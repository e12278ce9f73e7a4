"""The traffic kind `vbr`, in a run: sizes, the record of each datagram, and the metrics made of it."""

import csv
import json
from pathlib import Path
from statistics import fmean

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.metrics.analyse import analyse_run
from analysis.tables.results import collect
from testbed.programs import BUILT
from testbed.runs.run import run_scenario
from testbed.tests.running import chain, needs_runs

VBR = {"from": "sta1", "to": "sta2", "traffic": "vbr", "interval": 0.02, "mean": 400, "variance": 20_000, "min": 100, "max": 1400}


@pytest.mark.root
@needs_runs
def test_records_and_captures_agree_to_the_packet(tmp_path: Path) -> None:
    """Two flows over one hop in opposite directions; 2 s / 0.02 s are 100 packets of each."""
    back = VBR | {"from": "sta2", "to": "sta1"}
    result = run_scenario(chain(flows=[VBR, back]), 1, tmp_path / "all" / "seed-1", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    run_dir = tmp_path / "all" / "seed-1"
    metrics = analyse_run(run_dir)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    run = RunDirectory(run_dir)
    for flow in run.flows:
        sizes = [int(line) for line in (run_dir / "log" / f"{flow.name}-sizes.txt").read_text().split()]
        with (run_dir / "datagrams" / f"{flow.name}.csv").open() as file:
            records = list(csv.DictReader(file))
        assert (len(sizes), [int(row["number"]) for row in records]) == (100, list(range(100)))
        assert [int(row["bytes"]) for row in records] == sizes
        connection = run.connection(flow)
        sent = connection.forward(run.capture(flow.source))
        received = connection.forward(run.capture(flow.target))
        assert [int(row["sent_ns"]) for row in records] == sent["t_ns"].to_list()
        assert sent["ip_bytes"].to_list() == sizes
        assert sorted(int(row["received_ns"]) for row in records if row["received_ns"]) == received["t_ns"].to_list()
        measured = metrics["flows"][flow.name]
        window = [row for row in records if row["in_window"] == "1"]
        arrived = [float(row["latency_ms"]) for row in window if row["lost"] == "0"]
        assert (measured["sent"], measured["delivery"]) == (len(window), len(arrived) / len(window))
        assert measured["latency_ms_mean"] == pytest.approx(fmean(arrived), abs=1e-5)
        assert measured["latency_ms_max"] == pytest.approx(max(arrived), abs=1e-5)
        assert measured["latency_ms_p5"] <= measured["latency_ms_p50"] <= measured["latency_ms_p95"] <= measured["latency_ms_p99"]
        report = json.loads((run_dir / "traffic" / f"{flow.name}.json").read_text())
        assert report["end"]["sum_sent"]["bytes"] == sum(sizes) - 28 * 100
    one, other = (metrics["flows"][name]["goodput_bps"] for name in ("flow1", "flow2"))
    assert metrics["fairness"] == {"vbr": pytest.approx((one + other) ** 2 / (2 * (one**2 + other**2)))}
    (row,) = collect(tmp_path, {"name": "vbr"}).rows
    assert row["jain_vbr"] == metrics["fairness"]["vbr"] and row["jain_cbr"] is None
