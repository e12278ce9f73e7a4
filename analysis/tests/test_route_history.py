"""A flow's routes over time, from the notes of its end's daemon."""

import json
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.metrics.route_history import Taken, route_history, route_metrics
from analysis.tests.craft import flow

EPOCH_NS = 1_700_000_000_000_000_000
STATIONS = ("sta1", "gw1", "gw2")  # 10.0.0.1 to 10.0.0.3
UP = flow("flow1", "sta1", "host1", "bulk")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    places = [{"name": name, "at": [0, 0]} for name in STATIONS]
    wires = [{"station": name, "host": "host1"} for name in STATIONS[1:]]
    (tmp_path / "run.json").write_text(json.dumps({"format": "manet-run/1", "epoch_ns": EPOCH_NS}))
    (tmp_path / "scenario.json").write_text(json.dumps({"topology": "positions", "positions": places, "wires": wires}))
    (tmp_path / "routing").mkdir()
    return RunDirectory(tmp_path)


def write(run: RunDirectory, station: str, *notes: tuple) -> None:
    lines = [{"t_ns": at, "event": event, "about": about, "value": value, "via": via} for at, event, about, value, via in notes]
    (run.path / "routing" / f"{station}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_route_of_a_flow_to_a_wired_host_is_that_to_the_chosen_gateway(run: RunDirectory) -> None:
    write(
        run, "sta1",
        (10, "route", "10.0.0.2", 3, "10.0.0.9"), (11, "gateway", "10.0.0.2", 1, None),
        (20, "route", "10.0.0.3", 1, "10.0.0.3"),  # nearer, and not in use
        (30, "lost", "10.0.0.2", 0, None), (30, "gateway", "10.0.0.2", 0, None),
        (31, "gateway", "10.0.0.3", 1, None), (40, "lost", "10.0.0.3", 0, None),
        (50, "route", "10.0.0.7", 2, "10.0.0.9"),  # another destination
    )  # fmt: skip
    history = [Taken(10, 3, "10.0.0.9", "10.0.0.2"), Taken(30, 1, "10.0.0.3", "10.0.0.3"), Taken(40, None, None, None)]
    assert route_history(run, UP) == history
    assert route_history(run, flow("flow1", "host1", "sta1", "bulk")) == history


def test_another_gateway_at_the_same_distance_over_the_same_neighbour_is_another_route(run: RunDirectory) -> None:
    write(
        run, "sta1",
        (10, "route", "10.0.0.2", 2, "10.0.0.9"), (10, "gateway", "10.0.0.2", 1, None), (11, "route", "10.0.0.3", 2, "10.0.0.9"),
        (30, "lost", "10.0.0.2", 0, None), (30, "gateway", "10.0.0.2", 0, None), (30, "gateway", "10.0.0.3", 1, None),
    )  # fmt: skip
    assert route_history(run, UP) == [Taken(10, 2, "10.0.0.9", "10.0.0.2"), Taken(30, 2, "10.0.0.9", "10.0.0.3")]
    assert route_metrics(run, UP, EPOCH_NS + 15, EPOCH_NS + 50) == {"hop_changes": 0, "route_changes": 1}


def test_changes_count_from_the_first_route_on_and_in_the_window_only(run: RunDirectory) -> None:
    """Found (2 hops), lost, found again over another neighbour (2), shorter (1), and one more after the window."""
    write(
        run, "sta1",
        (10, "route", "10.0.0.3", 2, "10.0.0.8"), (20, "lost", "10.0.0.3", 0, None), (21, "route", "10.0.0.3", 2, "10.0.0.9"),
        (30, "route", "10.0.0.3", 1, "10.0.0.3"), (60, "route", "10.0.0.3", 2, "10.0.0.8"),
    )  # fmt: skip
    between = flow("flow1", "sta1", "gw2", "bulk")
    assert route_metrics(run, between, EPOCH_NS + 5, EPOCH_NS + 50) == {"hop_changes": 1, "route_changes": 2}
    assert route_metrics(run, between, EPOCH_NS + 25, EPOCH_NS + 50) == {"hop_changes": 1, "route_changes": 1}


def test_without_notes_nothing_is_known(run: RunDirectory) -> None:
    assert route_history(run, UP) is None
    assert route_metrics(run, UP, EPOCH_NS, EPOCH_NS + 50) == {}
