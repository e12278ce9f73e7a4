"""The worker of a campaign on this machine, with a script in its place."""

import os
import signal
import subprocess
import sys

import pytest

from testbed.campaigns import local
from testbed.errors import RunError

# takes batches as the worker does: notes its process and the batch, fails at batch 2
WORKER = """
import json, os, pathlib, sys
for line in sys.stdin:
    batch, done = map(pathlib.Path, json.loads(line))
    with open("order", "a") as order:
        print(batch.name, os.getpid(), file=order)
    if batch.name == "batch-2.json":
        sys.exit(3)
    done.write_text("{}")
    print("ended", flush=True)
pathlib.Path("closed").write_text(str(os.getpid()))
"""


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """`WORKER` in place of the worker; returns the batches that it got, with its process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "command", lambda _directory: [sys.executable, "-c", WORKER])
    return lambda: [line.split() for line in (tmp_path / "order").read_text().splitlines()]


def batches(folder, *numbers):
    folder.mkdir(exist_ok=True)
    for number in numbers:
        (folder / f"batch-{number}.json").write_text("{}")
    return folder


def test_batches_that_are_not_done_are_carried_out_in_turn_and_failed_ones_are_named(tmp_path, worker):
    """`done` of a batch is written when it has ended. Batch 10 comes after batch 3; batch 2 fails; batch 1 is done."""
    batches(tmp_path, 1, 2, 3, 10)
    (tmp_path / "batch-1.done.json").write_text("{}")
    with (
        pytest.raises(RunError, match=r"a batch did not end \(batch-2.json: status 3\)"),
        local.workflow(tmp_path, lambda: None) as carry_out,
    ):
        carry_out(tmp_path)
    assert [name for name, _ in worker()] == ["batch-2.json", "batch-3.json", "batch-10.json"]
    assert (tmp_path / "batch-10.done.json").exists()


def test_one_worker_carries_out_all_rounds_and_ends_with_the_campaign(tmp_path, worker):
    first, second = batches(tmp_path / "round-1", 1), batches(tmp_path / "round-2", 1, 3)
    with local.workflow(tmp_path, lambda: None) as carry_out:
        carry_out(first)
        carry_out(second)
    assert len({pid for _, pid in worker()}) == 1 and len(worker()) == 3
    assert (tmp_path / "closed").read_text() == worker()[0][1]


def test_after_a_worker_that_ended_the_next_batch_gets_another(tmp_path, worker):
    with local.workflow(tmp_path, lambda: None) as carry_out:
        with pytest.raises(RunError):
            carry_out(batches(tmp_path / "round-1", 2))
        carry_out(batches(tmp_path / "round-2", 1))
    assert len({pid for _, pid in worker()}) == 2


def test_ctrl_c_frees_the_folder_before_the_worker_is_waited_for(tmp_path, monkeypatch):
    """`end`: what the worker sees of a freed folder."""
    script = (
        "import os, sys, time\nsys.stdin.readline()\nos.kill(os.getppid(), 2)\nwhile not os.path.exists('end'): time.sleep(0.05)"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "command", lambda _directory: [sys.executable, "-c", script])
    batches(tmp_path, 1)
    with pytest.raises(KeyboardInterrupt), local.workflow(tmp_path, lambda: (tmp_path / "end").touch()) as carry_out:
        carry_out(tmp_path)
    assert (tmp_path / "end").exists()


def test_ctrl_c_while_a_worker_is_being_started_ends_it_in_order(tmp_path, monkeypatch):
    """It has a session of its own, so nobody else would end it. `end`: what the workers see of a freed folder."""

    class Popen(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    argv = ["sh", "-c", f"touch {tmp_path}/began; while ! test -e {tmp_path}/end; do sleep 0.05; done"]
    end = (tmp_path / "end").touch
    with (tmp_path / "log").open("wb") as log, pytest.raises(KeyboardInterrupt), local.process(argv, lambda _: end(), log):
        pass
    assert (tmp_path / "began").exists() and (tmp_path / "end").exists()
