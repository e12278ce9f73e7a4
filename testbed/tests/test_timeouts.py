"""Timeouts of real TCP: after a loss they were needed, after a delay all are spurious. The kernel numbers its packets as
analysis/metrics/timeouts.py reads them."""

from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from testbed.programs import BUILT
from testbed.runs.run import run_scenario
from testbed.tests.running import chain, needs_runs

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]
BREAK_S, REPAIR_S = 4, 6  # longer than the RTO, which is a second at most before there is a sample (RFC 6298, 2.1)


def timeouts(folder: Path, host, **keys: object) -> tuple[int, int]:
    result = run_scenario(chain(hops=1, warmup=0, duration=9, **keys), 1, folder / "run", programs=BUILT)
    if result.verdict != "valid":
        host.void(f"the run is {result.verdict}: its flow may have begun after the break")
    assert (result.status, result.error) == ("complete", None)
    flow = analyse_run(folder / "run")["flows"]["flow1"]
    return flow["timeouts"], flow["spurious_timeouts"]


def test_timeouts_of_a_broken_link_were_needed(tmp_path, host):
    events = [{"at": at, "link": ["sta1", "sta2"], "error_rate": rate} for at, rate in ((BREAK_S, 1.0), (REPAIR_S, 0.0))]
    found, spurious = timeouts(tmp_path, host, events=events)
    assert found >= 1 and spurious == 0


@pytest.mark.parametrize("profile", ["period", "modern"])
def test_timeouts_of_a_wire_that_stalls_are_spurious(tmp_path, host, profile):
    """Its queue keeps the packets in their order, so the first copy arrives before the one that the timeout sent."""
    events = [{"at": at, "wire": ["sta2", "host1"], "stalled": stalled} for at, stalled in ((BREAK_S, True), (REPAIR_S, False))]
    ends = {"wires": [{"station": "sta2", "host": "host1"}], "flows": [{"from": "sta1", "to": "host1"}]}
    found, spurious = timeouts(tmp_path, host, events=events, **ends, profile=profile, window=8)
    assert found >= 1 and spurious == found
