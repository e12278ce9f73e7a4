"""`manet run` as a child process (testbed/runs/child.py): its lines, its stop, and the end of its parent."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.programs import ROOT
from testbed.runs.child import INTERRUPTED, RunChild
from testbed.tests.running import needs_runs, state_of, wait_until

DEADLINE_S = 120.0
SCENARIO = """
topology = "chain"
nodes = 2
routing = "static"
duration = {duration}
seeds = 1
"""
PARENT = """
import sys
from pathlib import Path
from testbed.runs.child import RunChild
child = RunChild([sys.argv[1], "--out", sys.argv[2]], Path(sys.argv[3]))
print(child.pid, flush=True)
child.wait()
"""


def scenario(folder: Path, duration: int) -> Path:
    """A file whose run takes `duration` seconds, and some."""
    path = folder / "two.toml"
    path.write_text(SCENARIO.format(duration=duration))
    return path


@pytest.mark.root
@needs_runs
def test_a_run_ends_with_its_status_and_lines(tmp_path: Path) -> None:
    lines: list[str] = []
    child = RunChild([scenario(tmp_path, 1), "--out", tmp_path / "out", "--json"], tmp_path / "child", lines.append)
    assert child.wait(DEADLINE_S) == 0, child.last_lines()
    assert child.log.read_text().splitlines() == lines
    assert "[1/1]" in "\n".join(child.last_lines())
    assert child.output.read_text().startswith("{")
    assert (tmp_path / "out" / "all" / "seed-1" / "air.csv").is_file()


def test_a_wrong_file_is_the_last_line(tmp_path: Path) -> None:
    child = RunChild([tmp_path / "absent.toml"], tmp_path / "child")
    assert child.wait(DEADLINE_S) == 2
    (line,) = child.last_lines(1)
    assert line.startswith("manet run: ") and "there is no such file" in line


def test_a_child_that_cannot_be_started_is_refused_with_its_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "child" / "stderr").mkdir(parents=True)
    with pytest.raises(UsageError) as refused:
        RunChild(["chain5"], tmp_path / "child")
    assert str(refused.value) == f"{tmp_path}/child/stderr: Is a directory"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError) as refused:
        RunChild(["chain5"], tmp_path / "other")
    assert str(refused.value) == "setpriv: No such file or directory; apt-get install util-linux"


def test_a_reader_of_lines_that_fails_does_not_end_the_wait(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def reader(line: str) -> None:
        raise KeyError(line)

    child = RunChild([tmp_path / "absent.toml"], tmp_path / "child", reader)
    assert child.wait(DEADLINE_S) == 2
    assert "KeyError: 'manet run: " in capfd.readouterr().err


@pytest.mark.root
@needs_runs
def test_a_stopped_run_is_taken_down_in_order(tmp_path: Path) -> None:
    child = RunChild([scenario(tmp_path, 600), "--out", tmp_path / "out"], tmp_path / "child")
    run = tmp_path / "out" / "all" / "seed-1"
    wait_until((run / "air.csv").is_file, "the air log")
    child.stop()
    child.stop()
    assert child.wait(DEADLINE_S) == INTERRUPTED, child.last_lines()
    assert state_of(run) is None


@pytest.mark.root
@needs_runs
@pytest.mark.parametrize("ignored", [signal.SIG_IGN, signal.SIG_DFL])
def test_no_run_outlives_a_killed_parent(tmp_path: Path, ignored: signal.Handlers) -> None:
    """Also of a parent that a shell started in the background, with SIGINT ignored."""
    argv = [sys.executable, "-P", "-c", PARENT, scenario(tmp_path, 600), tmp_path / "out", tmp_path / "child"]
    before = signal.signal(signal.SIGINT, ignored)
    try:
        parent = subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    run = tmp_path / "out" / "all" / "seed-1"
    wait_until((run / "air.csv").is_file, "the air log")
    assert state_of(run) is not None
    parent.kill()
    parent.communicate()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the run")
    assert state_of(run) is None
