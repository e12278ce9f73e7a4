"""The workers of a round on this machine, with a shell command in place of each."""

import os
import signal
import subprocess

import pytest

from testbed.campaigns import local
from testbed.errors import RunError


def test_batches_that_are_not_done_are_carried_out_in_turn_and_failed_ones_are_named(tmp_path, monkeypatch):
    """`done` of a batch is written when it has ended. Batch 10 comes after batch 3; batch 2 fails; batch 1 is done."""
    for number in (1, 2, 3, 10):
        (tmp_path / f"batch-{number}.json").write_text("{}")
    (tmp_path / "batch-1.done.json").write_text("{}")
    script = 'echo $(basename "$0") >>order; case $0 in *-2.json) exit 3;; esac; echo {} >"$1"'
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "command", lambda batch, done, _: ["sh", "-c", script, str(batch), str(done)])
    with pytest.raises(RunError, match=r"a batch did not end \(batch-2.json: status 3\)"):
        local.workflow(tmp_path, lambda: None)(tmp_path)
    assert (tmp_path / "order").read_text().split() == ["batch-2.json", "batch-3.json", "batch-10.json"]
    assert (tmp_path / "batch-10.done.json").exists()


def test_ctrl_c_while_a_worker_is_being_started_ends_it_in_order(tmp_path, monkeypatch):
    """It has a session of its own, so nobody else would end it. `end`: what the workers see of a freed folder."""

    class Popen(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    argv = ["sh", "-c", f"touch {tmp_path}/began; while ! test -e {tmp_path}/end; do sleep 0.05; done"]
    with pytest.raises(KeyboardInterrupt), local.process(argv, lambda _worker: (tmp_path / "end").touch()):
        pass
    assert (tmp_path / "began").exists() and (tmp_path / "end").exists()
