"""batman-adv over the medium's radios, on kernels that have it: `manet test --guests` brings two."""

import json
import re
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.scenario import Scenario
from testbed.host.protocols import missing_requirement
from testbed.runs.routes import known_routes
from testbed.tests.running import Background, captured, chain, needs_runs, prompt

MISSING = missing_requirement("batman-adv")
pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    needs_runs,
    pytest.mark.skipif(MISSING is not None, reason=f"batman-adv: {MISSING and MISSING[0]}; ./manet test --guests boots kernels"),
]

QUICK = {"protocol": "batman-adv", "originator_interval": 0.2}
FAR_AWAY_M = 3000


def until_answered(station: str, target: str) -> str:
    """The prompt waits for no routes. (ping's own -w ends at "Destination Host Unreachable" too, and counts late answers.)"""
    return f"{station} for i in $(seq 60) ; do ping -n -c 1 -W 1 {target} && break ; done"


def best(printed: str, target: str) -> list[str]:
    """Over whom the best ways to the target lead, in the order in which stations were asked."""
    return re.findall(rf"^ +{re.escape(target)} +via ([0-9.]+) .* best", printed, re.MULTILINE)


@pytest.mark.parametrize("algorithm", ["BATMAN_IV", "BATMAN_V"])
def test_the_ends_of_three_hops_answer_and_a_relay_that_walks_away_is_replaced(tmp_path: Path, algorithm: str) -> None:
    places = [[0, 0], [200, 0], [400, 0], [600, 0], [200, FAR_AWAY_M]]
    routing = QUICK | {"algorithm": algorithm}
    scenario = Scenario.model_validate({"topology": "positions", "positions": places, "routing": routing})
    printed = prompt(
        scenario, tmp_path / "cli", until_answered("sta1", "sta4"), "routes sta1", "routes sta2", "move sta5 200 100",
        until_answered("sta1", "sta5"), f"move sta2 200 {FAR_AWAY_M}", until_answered("sta1", "sta4"), "routes sta1",
        "routes sta5", "exit",
    )  # fmt: skip
    assert printed.count("1 packets transmitted, 1 received") == 3, printed
    assert best(printed, "10.0.0.4") == ["10.0.0.2", "10.0.0.3", "10.0.0.5", "10.0.0.3"], printed


def test_the_ends_of_two_hops_answer_by_ipv6(tmp_path: Path) -> None:
    scenario = chain(hops=2, ipv6=True, routing=QUICK)
    printed = prompt(scenario, tmp_path / "cli", until_answered("sta1", "fd6d:616e:6574::3"), "map sta1 sta3", "exit")
    assert printed.count("1 packets transmitted, 1 received") == 1, printed
    assert "path1  sta1 > sta2 > sta3   2 hops" in printed, printed


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TCP over two hops, with full segments and halves of them."""
    folder = tmp_path_factory.mktemp("batman") / "run"
    result = Background(chain(hops=2, duration=3, warmup=0.5, routing=QUICK), folder).result()
    assert result.status == "complete", result.error
    return folder


def test_full_segments_go_in_one_frame_and_the_analysis_sees_them(run: Path) -> None:
    metrics = analyse_run(run)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    assert metrics["flows"]["flow1"]["acked_bps"] > 0
    # 14 of Ethernet, 10 of batman-adv's unicast, 14 of the station's own Ethernet, 1472 of IP (the MSS leaves room for headers)
    full = captured(run, "sta1", "ether proto 0x4305 and greater 1510")
    assert len(full) > 20, captured(run, "sta1", "ether proto 0x4305 and greater 1000")[:3]
    assert captured(run, "sta1", "ether proto 0x4305 and ether[14] = 0x41") == []  # BATADV_UNICAST_FRAG


def test_its_routes_are_kept_and_shown_like_those_of_our_daemons(run: Path) -> None:
    known = known_routes(run, "sta1")
    assert (known.when, list(known.stations)) == ("end", ["sta1"])
    status = known.stations["sta1"]
    assert (status["protocol"], status["address"]) == ("batman-adv", "10.0.0.1")
    assert [r["via"] for r in status["routes"] if (r["destination"], r["state"]) == ("10.0.0.3", "best")] == ["10.0.0.2"]
    assert [n["address"] for n in status["neighbours"]] == ["10.0.0.2"]
    assert status["counters"]["tx"] > 20
    assert json.loads((run / "run.json").read_text())["versions"]["batctl"]
