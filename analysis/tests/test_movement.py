"""A flow's hops and expected throughput from a run's own files."""

import json
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.metrics.movement import expectation, movement_metrics, profile_of, read_curve
from analysis.tests.craft import flow

RADIO = Path(__file__).resolve().parents[2] / "medium" / "radios" / "ns2-dsss-2m.toml"
EPOCH_NS = 1_700_000_000_000_000_000
FLOW = flow("flow1", "sta1", "sta2", "bulk")
# sta2 stands 100 m from sta1 and walks away at 10 m/s from second 10 on: out of range (250 m) at second 25, and
# with sta3 at 200 m between them two hops until it is 450 m away, at second 45.
TRACE = """# manet-trace/1
time_s,station,x_m,y_m,z_m,speed_mps
0,sta1,0,0,0,0
0,sta3,200,0,0,0
0,sta2,100,0,0,0
10,sta2,1100,0,0,10
"""


@pytest.fixture
def run(tmp_path) -> RunDirectory:
    folder = tmp_path / "cell" / "seed-1"
    folder.mkdir(parents=True)
    (folder / "trace.csv").write_text(TRACE)
    (folder / "run.json").write_text(json.dumps({"format": "manet-run/1", "epoch_ns": EPOCH_NS}))
    (folder / "scenario.json").write_text(json.dumps({"mobility": {"model": "schedule"}}))
    (folder / "medium.json").write_text(json.dumps({"format": "manet-medium/1", "radio": str(RADIO)}))
    (tmp_path / "cell" / "curve.json").write_text(json.dumps({"values": {"1": 1200, "2": 600, "3": 400}}))
    return RunDirectory(folder)


def at(second: float) -> int:
    return EPOCH_NS + round(second * 1e9)


def test_the_expected_throughput_is_the_mean_of_the_curve_over_time(run):
    found = movement_metrics(run, FLOW, at(5), at(65), 300e3)
    # 20 s of one hop, 20 s of two, 20 s of none: (20 x 1200 + 20 x 600) / 60 = 600 kbit/s
    assert found["expected_bps"] == pytest.approx(600e3, rel=1e-3)
    assert found["percent_of_expected"] == pytest.approx(50, rel=1e-3)
    assert found["partitioned"] == pytest.approx(1 / 3, rel=1e-3)
    assert (found["mean_hops"], found["path_changes"]) == (pytest.approx(1.5, rel=1e-3), 2)


def test_without_a_curve_there_are_hops_and_no_expectation(run):
    (run.path.parent / "curve.json").unlink()
    assert set(movement_metrics(run, FLOW, at(5), at(65), 300e3)) == {"partitioned", "mean_hops", "path_changes"}


def test_a_flow_without_any_path_has_no_mean_of_hops(run):
    found = movement_metrics(run, FLOW, at(50), at(60), 0.0)
    assert (found["partitioned"], found["mean_hops"], found["expected_bps"]) == (1.0, None, 0.0)
    assert "percent_of_expected" not in found


def test_after_moves_by_events_the_trace_gives_no_expectation(run):
    (run.path / "events.csv").write_text("t_s,at_s,event,station,detail\n5,5,power,sta3,off\n")
    assert profile_of(run, FLOW, at(5), at(65)) is None


def test_a_damaged_curve_is_an_error_that_names_the_file(run):
    (run.path.parent / "curve.json").write_text("{}")
    with pytest.raises(Exception, match=r"curve\.json: not a chain curve"):
        read_curve(run.path.parent / "curve.json")


def test_of_stations_moved_by_hand_the_log_of_the_medium_counts(run):
    """sta2 is fetched back to sta1 at second 15: one hop all the time."""
    moved = TRACE + "15,sta2,100,0,0,inf\n15,sta2,100,0,0,0\n"
    (run.path / "moved.csv").write_text(moved)
    (run.path / "events.csv").write_text("t_s,at_s,event,station,detail\n15,10,move,sta2,to 100 0\n")
    found = movement_metrics(run, FLOW, at(5), at(65), 300e3)
    assert (found["expected_bps"], found["partitioned"], found["mean_hops"]) == (pytest.approx(1200e3), 0, 1)
    assert expectation(run, FLOW) is None


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("5,5,power,sta3,off", "power of sta3 at 5 s"),
        ("5,5,cut,sta3,off, next hop of sta1 to sta2", "cut of sta3 at 5 s"),
        ("5,5,link,sta1 sta2,error_rate 1", "link of sta1 sta2 at 5 s"),
        ("5,5,move,sta3,to 0 0", "sta3 was moved at 5 s (events.csv), and there is no moved.csv"),
    ],
)
def test_links_undetermined_by_positions_give_a_reason_instead_of_a_number(run, row, why):
    (run.path / "events.csv").write_text(f"t_s,at_s,event,station,detail\n{row}\n")
    assert movement_metrics(run, FLOW, at(5), at(65), 300e3) == {}
    check = expectation(run, FLOW)
    assert check is not None and not check.ok and f"no expected throughput: {why}" in check.detail
    (run.path.parent / "curve.json").unlink()
    assert expectation(run, FLOW) is None
