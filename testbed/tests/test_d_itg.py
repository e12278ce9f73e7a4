"""The example of docs/traffic.md: D-ITG as a `command` flow."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.definition import load_scenario
from testbed.programs import BUILT, ROOT
from testbed.runs.run import run_scenario
from testbed.tests.running import captured, needs_runs

MISSING = [name for name in ("ITGSend", "ITGRecv", "ITGDec") if shutil.which(name) is None]
needs_d_itg = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} not installed (apt-get install d-itg)")
SIZES = [100, 700, 300, 900, 50, 1200]


def example(folder: Path) -> Path:
    """The scenario of the page, with its files in `folder`."""
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "traffic.md").read_text(), re.DOTALL)
    (block,) = [each for each in blocks if "ITGSend" in each]
    assert "/tmp/itg" in block
    path = folder / "itg.toml"
    path.write_text(block.replace("/tmp/itg", str(folder)))
    return path


def test_the_examples_of_the_page_are_scenarios(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "traffic.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        path = tmp_path / f"{number}.toml"
        path.write_text(block)
        assert load_scenario(path).flows


@needs_d_itg
@pytest.mark.root
@needs_runs
def test_d_itg_sends_the_sizes_of_a_file_in_a_run(tmp_path: Path) -> None:
    (tmp_path / "sizes").write_text("".join(f"{size}\n" for size in SIZES * 100))
    (tmp_path / "gaps").write_text("20\n" * 600)
    result = run_scenario(load_scenario(example(tmp_path)), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    flow = analyse_run(tmp_path / "run")["flows"]["flow1"]
    assert (flow["exit_status"], flow["ended_by_run"]) == (0, False)
    lines = captured(tmp_path / "run", "sta2", "udp dst port 5201 and dst host 10.0.0.2", "-q")
    sizes = [int(line.rsplit("length ", 1)[1]) for line in lines]
    assert len(sizes) > 100 and sizes == (SIZES * 100)[: len(sizes)]
    done = subprocess.run(["ITGDec", tmp_path / "received.log"], capture_output=True, text=True, check=True)
    total = re.search(r"Total packets\s+=\s+(\d+)", done.stdout)
    assert total is not None and int(total[1]) == len(sizes)


@needs_d_itg
@pytest.mark.root
@needs_runs
def test_d_itg_gives_up_without_a_path(tmp_path: Path) -> None:
    """Its connection for control is refused at once: there is no route."""
    text = example(tmp_path).read_text().replace("hops = 1\n", "")
    (tmp_path / "far.toml").write_text(f'topology = "positions"\npositions = [[0, 0], [2000, 0]]\nrouting = "none"\n{text}')
    (tmp_path / "sizes").write_text("500\n" * 100)
    (tmp_path / "gaps").write_text("20\n" * 100)
    result = run_scenario(load_scenario(tmp_path / "far.toml"), 1, tmp_path / "run", programs=BUILT)
    assert result.status == "complete"
    metrics = analyse_run(tmp_path / "run")
    assert metrics["flows"]["flow1"]["exit_status"] == 1
    assert "ended with status 1: ITGSend" in metrics["remarks"][0]
