"""AODV-UU's daemon with its kernel module in a run, where the user has built both (docs/interop.md says for which kernel, and
where they are looked for):

    PATH=$PATH:FOLDER-OF-AODVD ./manet vm --cpus 1 -- test --interop tests/interop/test_aodv_uu_module.py -s
"""

from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from testbed.errors import UsageError
from testbed.host.protocols import missing_requirement
from testbed.host.requirements import require_radios
from testbed.runs.run import run_scenario
from testbed.tests.running import chain, needs_runs

MISSING = missing_requirement("aodv-uu")

pytestmark = [
    needs_runs,
    pytest.mark.skipif(MISSING is not None, reason=f"aodv-uu: {MISSING and MISSING[0]} (tests/interop/README.md)"),
]


@pytest.mark.parametrize("stations", ["tap", "hwsim"])
def test_two_hops_carry_tcp(tmp_path: Path, stations: str) -> None:
    """After the first seconds, in which a packet that waited for its route goes to the destination's own address."""
    try:
        require_radios(stations)
    except UsageError as lacking:
        pytest.skip(str(lacking))
    scenario = chain(hops=2, warmup=6, duration=6, stations=stations, routing="aodv-uu")
    result = run_scenario(scenario, 1, tmp_path / "run")
    assert (result.status, result.error) == ("complete", None)
    metrics = analyse_run(tmp_path / "run")
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    kbps = metrics["flows"]["flow1"]["acked_bps"] / 1e3
    print(f"interop: aodv-uu with its module: {stations}: {kbps:.0f} kbit/s")
    assert 450 < kbps < 700  # 619 to 631 over static routes
