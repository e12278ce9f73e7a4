"""babeld and BIRD's Babel in one chain (tests/interop/bird-and-babeld.toml): TCP both ways, over IPv4 and over IPv6."""

import shutil
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.definition import load_scenario
from testbed.programs import ROOT
from testbed.tests.running import Background, needs_runs

DESCRIPTION = ROOT / "tests" / "interop" / "bird-and-babeld.toml"
MISSING = [name for name in ("babeld", "bird") if shutil.which(name) is None]
LENGTH_S = 5  # of a flow


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)}: not found; apt-get install babeld bird2")
def test_babeld_and_bird_in_turn_carry_tcp_both_ways_over_both_versions(tmp_path: Path) -> None:
    """sta1 and sta3 run babeld, sta2 and sta4 BIRD: every hop is between the two. The flows follow each other."""
    ends = [("sta1", "sta4", 6), ("sta4", "sta1", 6), ("sta1", "sta4", 4), ("sta4", "sta1", 4)]
    starts_s = range(0, len(ends) * (LENGTH_S + 1), LENGTH_S + 1)
    flows = [
        f'{{ from = "{a}", to = "{b}", ip = {ip}, start = {start_s}, stop = {start_s + LENGTH_S} }}'
        for start_s, (a, b, ip) in zip(starts_s, ends, strict=True)
    ]
    routing = f'{{ protocol = "{DESCRIPTION}", hello_interval = 0.5, update_interval = 2 }}'
    text = f"hops = 3\nipv6 = true\nwarmup = 1\nduration = 4\nrouting = {routing}\nflows = [{', '.join(flows)}]\n"
    (tmp_path / "mixed.toml").write_text(text)
    result = Background(load_scenario(tmp_path / "mixed.toml", []), tmp_path / "run", deadline_s=120).result()
    assert result.status == "complete", result.error
    metrics = analyse_run(result.directory)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    # three hops carry 389 kbit/s over static routes (docs/results/tcp-chain)
    rates = [flow["acked_bps"] for flow in metrics["flows"].values()]
    assert len(rates) == 4 and min(rates) > 200e3, rates
    programs = {path.stem: path.read_text() for path in (result.directory / "log").glob("bird-and-babeld-sta*.log")}
    assert "<INFO> Started" in programs["bird-and-babeld-sta2"] and "<INFO>" not in programs["bird-and-babeld-sta3"]
