"""AODV-UU's daemon with its kernel module in a run, where the user has built both (docs/interop.md says for which kernel, and
where they are looked for):

    PATH=$PATH:FOLDER-OF-AODVD ./manet vm --cpus 1 -- test --interop tests/interop/test_aodv_uu_module.py -s
"""

import csv
import json
from pathlib import Path

import pytest

from analysis.metrics import analyse_run
from testbed.errors import UsageError
from testbed.host.protocols import missing_requirement
from testbed.host.radios import require_radios
from testbed.runs.run import run_scenario
from testbed.tests.running import chain, needs_runs

MISSING = missing_requirement("aodv-uu")

pytestmark = [needs_runs, pytest.mark.skipif(MISSING is not None, reason=f"aodv-uu: {MISSING and MISSING[0]}")]


def first_segment_s(run: Path) -> float:
    """The time from the traffic's begin to the arrival of a full segment."""
    with (run / "air.csv").open() as file:
        rows = (row for row in csv.DictReader(file) if (row["station"], row["event"]) == ("sta3", "deliver"))
        first_ns = next(int(row["t_ns"]) for row in rows if int(row["bytes"] or 0) > 1000)
    traffic_ns: int = json.loads((run / "run.json").read_text())["traffic_ns"]
    return (first_ns - traffic_ns) / 1e9


@pytest.mark.parametrize("stations", ["tap", "hwsim"])
def test_two_hops_carry_tcp_and_a_route_is_used_within_two_seconds(tmp_path: Path, stations: str) -> None:
    """The first packet waits for a route, and is lost when that is found; TCP sends its SYN again after a second (RFC 6298)."""
    try:
        require_radios(stations)
    except UsageError as lacking:
        pytest.skip(str(lacking))
    scenario = chain(hops=2, warmup=0.5, duration=8, stations=stations, routing="aodv-uu")
    result = run_scenario(scenario, 1, tmp_path / "run")
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    first_s = first_segment_s(tmp_path / "run")
    kbps = metrics["flows"]["flow1"]["acked_bps"] / 1e3
    print(f"interop: aodv-uu with its module: {stations}: {kbps:.0f} kbit/s, first data after {first_s:.1f} s")
    assert first_s < 2
    assert 450 < kbps < 700  # 619 to 631 over static routes
