"""docs/own-routing-daemon.md, followed word for word: its daemon, its description and its scenario carry TCP over two hops."""

import re
import subprocess
from pathlib import Path

import pytest

from analysis.metrics import analyse_run
from scenarios.definition import load_scenario
from testbed.programs import ROOT
from testbed.tests.running import Background, needs_runs

PAGE = ROOT / "docs" / "own-routing-daemon.md"


def written_by(page: Path, folder: Path) -> Path:
    """Write the page's files into the folder, by its own commands; the scenario's path."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    script = "".join(blocks).replace("/tmp/", f"{folder}/").partition("./manet run")[0]
    subprocess.run(["sh", "-e", "-c", script], check=True)
    return folder / "my-scenario.toml"


def test_the_pages_scenario_is_complete_in_itself(tmp_path: Path) -> None:
    scenario = load_scenario(written_by(PAGE, tmp_path))
    (tmp_path / "my-daemon.toml").unlink()
    assert type(scenario).from_json(scenario.to_json()) == scenario
    routing = scenario.routing
    assert (routing.protocol, routing.options(), routing.settle, routing.udp_port) == ("my-daemon", {"period": 0.5}, 14, 5555)


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_the_pages_daemon_carries_tcp_over_two_hops(tmp_path: Path) -> None:
    result = Background(load_scenario(written_by(PAGE, tmp_path)), tmp_path / "run").result()
    assert result.status == "complete", result.error
    metrics = analyse_run(result.directory)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    assert 450e3 < metrics["flows"]["flow1"]["acked_bps"] < 700e3  # 619 to 631 kbit/s over static routes
    status = (result.directory / "routing" / "sta1.status.txt").read_text()
    assert "# at the start of the traffic\n# ip route show\n" in status and "# at the end of the traffic" in status
    assert status.count("10.0.0.3 via 10.0.0.2 dev wlan0") == 2
    assert (result.directory / "captures" / "sta1.routing.pcap").stat().st_size > 24  # bytes: more than the file's header
