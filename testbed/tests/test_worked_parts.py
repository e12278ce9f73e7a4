"""docs/extend.md, followed word for word: parts of one's own outside the checkout, in a run or as far as no kernel is needed."""

import re
import subprocess
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.definition import load_scenario
from scenarios.scenario import Scenario
from testbed.campaigns.experiment import Experiment, load
from testbed.campaigns.figures import module_of
from testbed.campaigns.request import Request
from testbed.programs import BUILT, ROOT
from testbed.runs.run import run_scenario
from testbed.tests.running import needs_runs

PAGE = ROOT / "docs" / "extend.md"


def written_by(heading: str, folder: Path) -> Path:
    """Write the files of a section into the folder, by its own commands without those of `./manet`."""
    section = re.split(r"^##+ ", PAGE.read_text().split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    blocks = re.findall(r"^ *```\n(.*?)^ *```$", section, re.DOTALL | re.MULTILINE)
    assert blocks, heading
    lines = [line.removeprefix("   ") if block.startswith("   ") else line for block in blocks for line in block.splitlines()]
    script = "\n".join(line for line in lines if not line.startswith("./manet")).replace("/tmp/", f"{folder}/")
    subprocess.run(["sh", "-e", "-c", script], check=True, cwd=ROOT)
    return folder


def my_card(folder: Path) -> Scenario:
    return load_scenario(written_by("A radio profile of your own", folder) / "my-card-chain.toml")


def bursts(folder: Path) -> Scenario:
    return load_scenario(written_by("A traffic kind of your own", folder) / "bursts.toml")


def quick(path: Path) -> Experiment:
    return load(path, Request(quick=True))


def test_the_pages_profile_is_the_copied_one_with_another_power(tmp_path: Path) -> None:
    scenario = my_card(tmp_path)
    assert scenario.radio == str(tmp_path / "my-card.toml")
    here, theirs = (
        (path.read_text().splitlines()) for path in (tmp_path / "my-card.toml", ROOT / "medium/radios/dot11n-ht20.toml")
    )
    changed = [line for line, other in zip(here, theirs, strict=True) if line != other]
    assert changed == ['name = "my-card"', "tx_power_w = 0.05 # 17 dBm"]


def test_the_pages_kind_is_a_command_flow(tmp_path: Path) -> None:
    (flow,) = bursts(tmp_path).flows
    assert flow.command == (f"{tmp_path}/burst.py", "send", "{target}", "{port}", "5", "0.5")
    assert flow.server == (f"{tmp_path}/burst.py", "receive", "{port}")


def test_the_pages_column_is_an_experiment_whose_figure_has_its_width(tmp_path: Path) -> None:
    experiment = quick(written_by("For a paper's column", tmp_path) / "column.toml")
    assert experiment.plot is not None and (experiment.plot.width, experiment.plot.origin) == (3.5, False)
    assert set(experiment.plot.legend) == set(experiment.axes["tcp"])


def test_the_pages_figure_is_named_by_its_experiment(tmp_path: Path) -> None:
    experiment = quick(written_by("A figure module", tmp_path) / "share.toml")
    assert experiment.figure == str(tmp_path / "share.py")
    assert module_of(experiment.figure).AXES == ("hops",)


@pytest.mark.root
@needs_runs
def test_the_pages_profile_carries_tcp_and_the_run_keeps_it(tmp_path: Path) -> None:
    result = run_scenario(my_card(tmp_path).model_copy(update={"duration": 3.0}), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    kept = tmp_path / "run" / "radio.toml"
    assert kept.read_bytes() == (tmp_path / "my-card.toml").read_bytes()
    (tmp_path / "my-card.toml").unlink()
    assert '"radio": "radio.toml"' in (tmp_path / "run" / "medium.json").read_text()
    assert analyse_run(tmp_path / "run")["flows"]["flow1"]["acked_bps"] > 5e6


@pytest.mark.root
@needs_runs
def test_the_pages_bursts_arrive(tmp_path: Path) -> None:
    """From 0 s on, 5 datagrams of 484 bytes every 0.5 s: over 5 s 8 * 5 * 484 / 0.5 = 38.7 kbit/s, of one burst more or less."""
    result = run_scenario(bursts(tmp_path), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    assert analyse_run(tmp_path / "run")["flows"]["flow1"]["delivered_bps"] == pytest.approx(38_720, rel=0.11)
