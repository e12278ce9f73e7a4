"""docs/extend.md, followed word for word: its daemon, its description and its scenario carry TCP over two hops."""

import re
import subprocess
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.definition import load_scenario
from testbed.programs import ROOT
from testbed.tests.running import Background, needs_runs

PAGE = ROOT / "docs" / "extend.md"


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


def replace(path: Path, old: str, new: str) -> None:
    """Replace a text that the file has."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


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


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_a_daemon_that_never_sets_onlink_works_with_a_prefix_route_which_is_no_route_to_a_station(tmp_path: Path) -> None:
    scenario = written_by(PAGE, tmp_path)
    replace(tmp_path / "my-daemon.py", ', "onlink"', "")
    (tmp_path / "my-daemon.toml").open("a").write("[radio]\nprefix_route = true\n")
    result = Background(load_scenario(scenario), tmp_path / "run").result()
    assert result.status == "complete", result.error
    assert analyse_run(result.directory)["flows"]["flow1"]["acked_bps"] > 450e3
    at_start = (result.directory / "routes" / "sta1.txt").read_text().split("# at the end")[0]
    assert "10.0.0.0/8 dev wlan0" in at_start and "10.0.0.3 via 10.0.0.2 dev wlan0" in at_start  # the traffic waited


WRONG = {
    "ends at once": (
        "while True:",
        "sys.exit('no radio')\nwhile True:",
        'my-daemon.py ended with status 1: "no radio"; the routes went',
    ),
    "has no socket": ("5555))\nnext_s", "5556))\nnext_s", "no socket on UDP port 5555 within 20 s; see "),
}


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@pytest.mark.parametrize("case", WRONG)
def test_a_daemon_that_does_not_work_ends_the_run_with_one_line(tmp_path: Path, case: str) -> None:
    scenario = written_by(PAGE, tmp_path)
    old, new, words = WRONG[case]
    replace(tmp_path / "my-daemon.py", old, new)
    result = Background(load_scenario(scenario), tmp_path / "run").result()
    assert result.status == "failed" and result.error is not None
    assert re.match(r"my-daemon-sta[123]: ", result.error) and words in result.error and "\n" not in result.error
