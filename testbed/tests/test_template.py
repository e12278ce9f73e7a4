"""The template of runs: one process forks the keepers of all runs, and another one replaces it if it was killed."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.programs import ROOT
from testbed.runs.run import run_scenario
from testbed.runs.template import NAME, TEMPLATE
from testbed.tests.running import chain, needs_runs, state_of

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
command = ["python3", "-uc", "from time import process_time as used\\nwhile used() < {BUSY_S}: print(used())"]
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


# a worker has the path of `./manet` twice: its campaign puts it before its own
@pytest.mark.parametrize("python_path", [str(ROOT), f"{ROOT}:{ROOT}"], ids=["manet", "worker"])
def test_manet_forks_its_template_and_starts_another_one_if_that_is_killed(tmp_path: Path, python_path: str) -> None:
    (tmp_path / "e.toml").write_text(BUSY.replace("seeds = 1", "seeds = 2").replace(f"< {BUSY_S}", "< 1"))
    words = ["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]
    argv = [sys.executable, "-P", "-m", "testbed", *words]
    lines = []
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": python_path}) as manet:
        for seed in ("seed-1", "seed-2"):
            template = template_of(tmp_path / "out" / "all" / seed, manet)
            assert Path(f"/proc/{template}/comm").read_text() == f"{NAME}\n"
            lines.append(Path(f"/proc/{template}/cmdline").read_text())
            os.kill(template, signal.SIGKILL)
    assert manet.returncode == 0
    assert "\0run\0" in lines[0] and "testbed.runs.template" in lines[1]


def template_of(directory: Path, manet: subprocess.Popen[bytes]) -> int:
    """The parent of the keeper of a run, once that is recorded."""
    while manet.poll() is None:
        state = state_of(directory)
        if state is not None and state.keeper is not None:
            return int(Path(f"/proc/{state.keeper.pid}/stat").read_text().rpartition(")")[2].split()[1])
        time.sleep(0.05)
    raise AssertionError(f"manet ended with status {manet.returncode}")


def test_the_cpu_time_of_runs_counts_as_that_of_manet(tmp_path: Path) -> None:
    """The flow's program says what it has used until it ends or the run does."""
    (tmp_path / "e.toml").write_text(BUSY)
    argv = [sys.executable, "-P", "-m", "testbed", "run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "out"), "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = json.loads((tmp_path / "out" / "all" / "seed-1" / "run.json").read_text())["status"]
    assert ended == "complete"
    (log,) = (tmp_path / "out" / "all" / "seed-1").glob("*/flow1*.log")
    used_s = float(log.read_text().splitlines()[-2])  # the last line may be cut
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime > used_s > 0


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
