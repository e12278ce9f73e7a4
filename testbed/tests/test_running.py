"""A run in the background of a test ends with the test, also with one that fails in the middle."""

import os
import subprocess
import sys

from testbed.programs import ROOT

# The run itself is replaced by one that makes no network: it goes on until it is cancelled, and says that it has ended.
TESTS = """
from pathlib import Path

import pytest

from testbed.tests import running


def run_until_cancelled(scenario, seed, directory, *, progress, cancel, **_options):
    progress("traffic", 0.5)
    assert cancel.wait(60)
    directory.with_suffix(".ended").touch()


running.run_scenario = run_until_cancelled


@pytest.fixture(scope="module")
def shared():
    run = running.Background(None, Path("shared")).at("traffic")
    yield run
    run.end_run()


def test_that_fails_in_the_middle(shared):
    running.Background(None, Path("left")).at("traffic")
    raise ZeroDivisionError


def test_the_next(shared):
    assert Path("left.ended").exists()
    assert shared.is_alive() and not Path("shared.ended").exists()
"""


def test_a_run_that_a_failing_test_leaves_is_ended_before_the_next_and_a_shared_one_is_not(tmp_path):
    (tmp_path / "test_inner.py").write_text(TESTS)
    options = ["-q", "-p", "conftest", "-p", "no:cacheprovider", "-n", "0", f"--rootdir={tmp_path}", "test_inner.py"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", *options], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout and "ZeroDivisionError" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "shared.ended").exists()
