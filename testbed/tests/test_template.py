"""The template of runs: one process forks the keepers of all runs, and another one replaces it if it was killed."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.programs import ROOT
from testbed.runs.run import run_scenario
from testbed.runs.template import TEMPLATE
from testbed.tests.running import chain, needs_runs

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]
BUSY_S = 4
BUSY = f"""question = "?"
[scenario]
hops = 1
warmup = 0
duration = 8
[[scenario.flows]]
from = "sta1"
to = "sta2"
traffic = "command"
command = ["python3", "-c", "while __import__('time').process_time() < {BUSY_S}: pass"]
[full]
seeds = 1
"""
SHORT = {"hops": 1, "warmup": 0, "duration": 1}


def test_runs_share_a_template_and_a_killed_one_is_replaced(tmp_path: Path) -> None:
    templates = []
    for seed in (1, 2, 3):
        assert run_scenario(chain(**SHORT), seed, tmp_path / str(seed)).status == "complete"
        templates.append(TEMPLATE._process.pid)
        if seed == 2:
            TEMPLATE._process.kill()
            TEMPLATE._process.wait()
    assert templates[0] == templates[1] != templates[2]


def test_the_cpu_time_of_runs_counts_as_that_of_manet(tmp_path: Path) -> None:
    """The flow's program works for BUSY_S of CPU; all else in such a run takes less."""
    (tmp_path / "e.toml").write_text(BUSY)
    argv = [sys.executable, "-P", "-m", "testbed", "run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "out"), "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = json.loads((tmp_path / "out" / "all" / "seed-1" / "run.json").read_text())["status"]
    assert ended == "complete"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime > BUSY_S


def test_a_run_has_the_environment_and_the_folder_of_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_scenario(chain(**SHORT), 1, tmp_path / "before").status == "complete"
    monkeypatch.setenv("MANET_OF_A_TEST", "later")
    monkeypatch.chdir(tmp_path)
    words = ["sh", "-c", "echo $MANET_OF_A_TEST $PWD"]
    flow = {"from": "sta1", "to": "sta2", "traffic": "command", "command": words}
    result = run_scenario(chain(**SHORT, flows=[flow]), 1, tmp_path / "after")
    assert (result.status, result.error) == ("complete", None)
    logs = [path.read_text() for folder in ("log", "traffic") for path in (tmp_path / "after" / folder).glob("flow1*")]
    assert any(f"later {tmp_path}" in log for log in logs), logs
