"""The scenario chain5plus1: the walk and its distance to the gateway, compared with the paper's, and a short run."""

import csv
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from mobility import connectivity
from mobility.trace import Trace
from scenarios.definition import load_scenario
from scenarios.scenario import Scenario
from testbed.programs import BUILT, ROOT
from testbed.runs.run import run_scenario
from testbed.stages.movement import trace_of
from testbed.tests.running import needs_runs

PATH = ROOT / "experiments" / "scenarios" / "chain5plus1.toml"
HOPS = ROOT / "analysis" / "published" / "internet-manet_hops_vegas.csv"
RANGE_M = 250.0
TO_GATEWAY = {"sta1": 3, "sta2": 2, "gw": 1, "sta4": 2, "sta5": 3}  # hops of the walker over each of the static stations
LATE_S = 1.2  # from the break of a route to the next one; the paper's latest is 1.1 s after it, at 188.6 s


def published() -> list[tuple[float, int]]:
    with HOPS.open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [(float(row["time_s"]), int(row["hops"])) for row in rows]


def walk() -> tuple[Scenario, Trace, float]:
    """The scenario, its movement with the static stations, and the instant at which the paper's clock is 0."""
    scenario = load_scenario(PATH)
    moving = trace_of(scenario, 1)
    assert scenario.traffic_at is not None
    return scenario, moving, scenario.traffic_at


def contacts() -> list[connectivity.Contact]:
    """The times, on the paper's clock, in which the walker is in range of each static station."""
    scenario, moving, begin_s = walk()
    assert all(moving.position(p.name, 0) == (p.x_m, p.y_m, p.z_m) for p in scenario.positions(1))
    found = connectivity.links(moving, RANGE_M, begin_s, begin_s + 900)
    return [
        connectivity.Contact((near, "sta6"), contact.begin_s - begin_s, contact.end_s - begin_s)
        for contact in found.contacts
        for near in set(contact.ends) - {"sta6"}
        if "sta6" in contact.ends
    ]


def test_the_walker_is_at_an_end_of_the_line_at_the_arrivals_of_the_table() -> None:
    """Arrivals of table 1, to its hundredth of a second at the speed of each leg."""
    _, moving, begin_s = walk()
    arrivals = [(50, 800), (81.67, 0), (170, 800), (210, 0), (380, 800), (420, 0), (443.33, 800), (983.33, 0)]
    for arrival_s, end_m in arrivals:
        assert moving.position("sta6", begin_s + arrival_s)[:2] == pytest.approx((end_m, 200), abs=0.6)
    for leaves_s, end_m in ((10, 0), (55, 800), (90, 0), (170, 800), (220, 0), (400, 800), (430, 0), (450, 800)):
        assert moving.position("sta6", begin_s + leaves_s)[:2] == pytest.approx((end_m, 200), abs=1e-6)


def test_the_shortest_path_has_at_most_the_hops_of_the_paper() -> None:
    """A reactive protocol stays on a longer path until it breaks: the shortest is never longer. Hops are one to three."""
    near = contacts()
    found = set()
    for time_s, hops in published():
        shortest = min(TO_GATEWAY[c.ends[0]] for c in near if c.begin_s <= time_s <= c.end_s)
        assert shortest <= hops, time_s
        found.add(hops)
    assert found == set(TO_GATEWAY.values()) == {1, 2, 3}


def test_a_route_that_is_kept_until_it_breaks_changes_at_the_times_of_the_paper() -> None:
    near, rows = contacts(), published()
    now_s, changes = 20.0, []  # the flow's start
    while now_s < 880:
        used = min((c for c in near if c.begin_s <= now_s < c.end_s), key=lambda c: TO_GATEWAY[c.ends[0]])
        changes.append((now_s, TO_GATEWAY[used.ends[0]]))
        now_s = used.end_s
    first, changes = changes[0], changes[1:]
    assert first[0] < rows[0][0] < first[0] + LATE_S
    assert [hops for _, hops in changes] == [hops for _, hops in rows[1:]]
    for (model_s, _), (paper_s, hops) in zip(changes, rows[1:], strict=True):
        assert 0 <= paper_s - model_s < LATE_S, (model_s, paper_s, hops)


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_a_run_of_ten_seconds_is_valid(host, tmp_path: Path) -> None:
    """From 0 to 10 s the walker stands at the end of the line, three hops from the gateway."""
    scenario = load_scenario(PATH, ["duration=10", "flows.0.start=0"])
    result = run_scenario(scenario, 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    if result.verdict != "valid":
        host.void(f"the run is {result.verdict}")
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    # three hops carry 484 kbit/s in analysis/published/holland-vaidya_fig1.csv; half of that allows for the route discovery
    assert 240e3 < metrics["flows"]["flow1"]["acked_bps"] < 600e3
