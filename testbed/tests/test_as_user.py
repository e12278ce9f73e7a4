"""A run of the ordinary user who calls the tests, without sudo (docs/rootless.md). As root, test_rootless.py becomes one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.programs import ROOT
from testbed.tests.running import needs_runs

pytestmark = [
    pytest.mark.skipif(os.geteuid() == 0, reason="is for an ordinary user (docs/rootless.md); test_rootless.py becomes one"),
    needs_runs,
]


def test_a_run_is_complete_and_says_what_it_lacks(tmp_path: Path) -> None:
    keys = [word for key in ("hops=2", "duration=3", "warmup=0") for word in ("--set", key)]
    argv = [sys.executable, "-P", "-m", "testbed", "run", "chain5", *keys, "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
    run = json.loads((tmp_path / "out" / "all" / "seed-1" / "run.json").read_text())
    assert run["status"] == "complete", done.stderr
    assert run["without_root"]
