"""Measuring many runs in several processes."""

import subprocess
import sys

from testbed.campaigns import measuring
from testbed.campaigns.measuring import Processes, measure_runs
from testbed.programs import ROOT

PROGRAM = """
from pathlib import Path
from testbed.campaigns.measuring import measure_runs
for run, error in sorted(measure_runs([Path(f"none-{n}") for n in range(4)]).items()):
    print(run, bool(error))
"""


def test_each_run_is_measured_and_what_cannot_be_has_its_error(tmp_path):
    runs = [tmp_path / f"seed-{number}" for number in range(1, 5)]
    for run in runs:
        run.mkdir()
        (run / "run.json").write_text("{}")
    absent = tmp_path / "seed-9"
    errors = measure_runs([*runs, absent])
    assert list(errors) == [absent] and "\n" not in errors[absent]
    assert all((run / "metrics.json").exists() for run in runs)


def test_processes_stay_for_the_next_runs(tmp_path, monkeypatch):
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **named: started.append(popen(*words, **named)) or started[-1])
    monkeypatch.setattr(measuring, "usable_cores", lambda: 2)
    with Processes() as processes:
        for _ in range(2):
            assert len(measure_runs([tmp_path / f"none-{number}" for number in range(4)], processes)) == 4
        assert len(started) == 2 and all(process.poll() is None for process in started)
    assert [process.returncode for process in started] == [0, 0]


def test_a_process_that_was_killed_while_idle_measures_nothing_more():
    with Processes() as processes:
        killed = processes.take()
        processes.give_back(killed)
        killed.kill()
        killed.wait()
        following = processes.take()
        assert following.pid != killed.pid and following.poll() is None
        processes.give_back(following)


def test_a_program_without_a_guard_may_measure(tmp_path):
    (tmp_path / "script.py").write_text(PROGRAM)
    argv = [sys.executable, "-P", str(tmp_path / "script.py")]
    done = subprocess.run(
        argv, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["none-0", "True", "none-1", "True", "none-2", "True", "none-3", "True"], done.stderr
