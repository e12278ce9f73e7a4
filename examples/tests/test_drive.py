"""The program that moves a relay (docs/drive.md), beside the run that it drives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from record.events_file import read_events
from scenarios.definition import load_scenario
from testbed.programs import ROOT
from testbed.runs.by_hand import with_actions
from testbed.tests.running import Background, needs_runs
from testbed.view.tests.serving import view

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

FOLDER = ROOT / "examples" / "drive"


@pytest.mark.alone("drives a run under way, in real time")
def test_the_relay_follows_and_the_record_repeats_its_way(tmp_path: Path) -> None:
    scenario = load_scenario(FOLDER / "relay.toml")
    running = Background(scenario, tmp_path / "run", deadline_s=180).at("traffic")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with view(tmp_path / "run", "--control") as served:
        program = subprocess.run(
            [sys.executable, "-P", FOLDER / "relay.py", served.url], capture_output=True, text=True, timeout=180, env=environment,
            check=False,
        )  # fmt: skip
        assert (program.returncode, program.stderr) == (0, "")
        assert running.result().status == "complete"
    assert "sta1 -> sta2" in program.stdout and " dBm" in program.stdout
    moves = [row for row in read_events(tmp_path / "run") if row["event"] == "move"]
    assert len(moves) > 10 and {(row["station"], row["source"]) for row in moves} == {("sta2", "view")}
    # sta3 stops at 450 m: the relay ends half-way, 225 m from both, within the range of 250 m
    assert moves[-1]["detail"].split()[1:3] == ["225", "100"]
    repeated = with_actions(tmp_path / "run", scenario)
    assert len([event for event in repeated.scenario.events if event.move == "sta2"]) >= len(moves) - 1
