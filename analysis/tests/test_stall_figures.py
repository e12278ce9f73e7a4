"""When a flow stood still, and the figures of it and of a pattern's profile (hv-fig5, hv-fig6, hv-fig10, hv-table1)."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.figures import be_per_grid, hv_packets, hv_profile, hv_trace
from analysis.references import load_reference
from analysis.story.stalls import longest_stall, packets_during
from analysis.story.story import read_story
from analysis.tables.results import collect, write_tables
from analysis.tests.crafted_chain import BACKWARD, FORWARD, Chain
from analysis.tests.drawn import page, panels
from analysis.tests.test_movement import EPOCH_NS, RADIO, TRACE
from analysis.tests.test_tables import make_run
from record.errors import RunFileError


@pytest.fixture
def campaign(tmp_path) -> Path:
    """One run of 10 s: segment 2 is lost at once, sent again in vain at 2.5 s, and comes through at 6 s."""
    chain = Chain()
    chain.travel(chain.data(1), 900, FORWARD)
    chain.travel(chain.ack(1), 930, BACKWARD)
    chain.lose(chain.data(2), 949, 1, 2)
    chain.lose(chain.data(2), 2500, 1, 2)
    for number, at_ms in ((2, 6000), (3, 6200), (4, 7500), (5, 9000)):
        chain.travel(chain.data(number), at_ms, FORWARD)
        chain.travel(chain.ack(number), at_ms + 30, BACKWARD)
    folder = chain.write(tmp_path / "reno" / "seed-1")
    run = json.loads((folder / "run.json").read_text()) | {"variant": "reno", "seed": 1, "axes": {}, "status": "complete"}
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "verdict.json").write_text(json.dumps({"verdict": "valid"}))
    return tmp_path


def story_of(campaign: Path):
    run = RunDirectory(campaign / "reno" / "seed-1")
    return read_story(run, run.flows[0])


def test_a_stall_lasts_from_the_last_new_ack_to_the_next(campaign):
    stall = longest_stall(story_of(campaign))
    assert stall.begin_s == pytest.approx(0.95, abs=0.03)  # the first ACK is back
    assert stall.end_s == pytest.approx(6.05, abs=0.03)


def test_packets_in_flight_at_the_begin_of_a_stall_belong_to_it(campaign):
    story = story_of(campaign)
    found = packets_during(story, longest_stall(story))
    assert [(one.segment, one.journey.received) for one in found][:3] == [(2, False), (2, False), (2, True)]


def test_hv_packets_draws_the_begin_of_the_longest_stall(campaign):
    drawn = page(hv_packets.draw, campaign)
    (panel,) = drawn.panels
    assert {name: one.points for name, one in panel.named.items()} == {
        "sent": [(0.9, 1), (0.949, 2)], "sent again": [(2.5, 2)], "received": [(0.92, 1)], "ACKed": [(0.95, 1)],
        "dropped: retry-short": [(0.957, 2), (2.508, 2)],
    }  # fmt: skip
    assert panel.texts == ["sta1", "sta1"], "who dropped them"
    # from 1.5 s before the stall (not before the traffic) to 5 s after its begin
    assert panel.xlim == (0, pytest.approx(5.95, abs=0.03))
    assert (panel.title, drawn.legend) == ("one run, flow1: sta1 to sta3, newreno", list(panel.named))


def test_hv_trace_writes_the_columns_of_the_published_table(campaign):
    (panel,) = panels(hv_trace.draw, campaign)
    assert panel.texts[0] == "one run of this testbed: sta1 to sta3, no new data from 0.9 to 6.0 s"
    assert panel.texts[1:19] == [
        "", "time (s)", "node", "seq", "packet", "reason",
        "s", "0.949", "sta1", "2", "tcp", "", "D", "0.957", "sta1", "2", "tcp", "retry-short",
    ]  # fmt: skip
    beside = panel.texts[panel.texts.index("Holland and Vaidya, table 1: 1 to 2") :]
    published = load_reference("published", "holland-vaidya_table1")
    assert len(beside) == 1 + 6 * (1 + len(published.rows))
    with (campaign / "hv_trace.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["event"], row["seq"], row["packet"]) for row in rows[:4]] == [
        ("send", "2", "tcp"), ("drop", "2", "tcp"), ("send", "2", "tcp"), ("drop", "2", "tcp"),
    ]  # fmt: skip
    assert (rows[1]["node"], rows[1]["reason"]) == ("sta1", "retry-short")


def test_without_a_run_that_counts_there_is_one_line(campaign):
    (campaign / "reno" / "seed-1" / "verdict.json").write_text(json.dumps({"verdict": "void"}))
    for figure in (hv_packets, hv_trace, hv_profile):
        with pytest.raises(RunFileError, match="no run that counts; run the experiment first"):
            figure.draw(campaign)


def test_hv_profile_has_a_panel_a_speed_over_the_hops_of_the_pattern(tmp_path):
    for speed, lasts_s in ((10, 60.0), (20, 30.0)):
        make_run(tmp_path, f"speed-{speed}", 1, 1, 500.0)
        folder = tmp_path / f"speed-{speed}-hops1" / "seed-1"
        flows = [{"from": "sta1", "to": "sta2", "traffic": "bulk", "start": 0.0}]
        times = {"speed": speed, "warmup": 0.0, "duration": lasts_s}
        scenario = {"mobility": {"model": "schedule", "speed": speed}, "flows": flows, **times}
        (folder / "scenario.json").write_text(json.dumps(scenario))
        (folder / "trace.csv").write_text(TRACE)
        (folder / "medium.json").write_text(json.dumps({"format": "manet-medium/1", "radio": str(RADIO)}))
        run = json.loads((folder / "run.json").read_text()) | {"axes": {}, "epoch_ns": EPOCH_NS, "traffic_ns": 0}
        (folder / "run.json").write_text(json.dumps(run))
        metrics = json.loads((folder / "metrics.json").read_text())
        metrics["flows"]["flow1"]["acked_bps_by_second"] = [500_000.0] * int(lasts_s)
        (folder / "metrics.json").write_text(json.dumps(metrics))
    assert [one.speed for one in hv_profile._runs(tmp_path)] == [10, 20]
    hops, slow, fast = panels(hv_profile.draw, tmp_path)
    # one hop for five sixths of the pattern, then two
    assert [one.points for one in hops.series] == [
        [(0, 1), (pytest.approx(5 / 6, abs=1e-3), 1)], [(pytest.approx(5 / 6, abs=1e-3), 2), (1, 2)],
        [(pytest.approx(5 / 6, abs=1e-3), 1), (pytest.approx(5 / 6, abs=1e-3), 2)],
    ]  # fmt: skip
    assert (hops.title, hops.xlabel, hops.ylabel) == ("sta1 to sta2", "part of the pattern", "hops")
    for panel, speed, lasts_s in ((slow, 10, 60), (fast, 20, 30)):
        assert panel.title == f"{speed} m/s, one run (500 kbit/s)"
        assert panel.series[0].points == [(second, 500) for second in range(lasts_s + 1)]
        assert (panel.series[0].steps, panel.xlim) == ("steps-post", (0, lasts_s)), "one place is one moment in all panels"
    shutil.rmtree(tmp_path / "speed-20-hops1")
    (tmp_path / "speed-10-hops1" / "seed-1" / "trace.csv").unlink()
    with pytest.raises(RunFileError, match="no movement that decides the path"):
        hv_profile.draw(tmp_path)


def test_be_per_grid_has_a_curve_a_grid(tmp_path):
    axis = "links.0.error_rate"
    for grid in ("16-nodes", "49-nodes"):
        for number, rate in enumerate((0, 0.015, 0.2), start=1):
            make_run(tmp_path, grid, number, 1, 600.0 - 1000 * rate)
            path = tmp_path / f"{grid}-hops{number}" / "seed-1" / "run.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"axes": {axis: rate}}))
    write_tables(collect(tmp_path, {"name": "be-per-grid", "axes": {axis: [0, 0.015, 0.2]}}))
    (panel,) = panels(be_per_grid.draw, tmp_path)
    curve = [(5e-4, 600), (0.015, 585), (0.2, 400)]
    assert {name: one.points for name, one in panel.named.items()} == {"16 nodes": curve, "49 nodes": curve}
    assert (panel.xticks, panel.ylabel) == (["0", "0.015", "0.2"], "acknowledged (kbit/s)")
