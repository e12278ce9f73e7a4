"""Batches: their file, how runs are cut into them, and who may work on one."""

import io
import json
import socket
import threading
from pathlib import Path

import pytest

from testbed.campaigns.batch import Batch, claimed, renew, split
from testbed.campaigns.campaign import tasks_of
from testbed.campaigns.experiment import load
from testbed.campaigns.rounds import DONE as DONE_NAME
from testbed.errors import UsageError
from testbed.workers.worker import MAX_SHARE, found_share

TEXT = 'question = "?"\n[scenario]\nhops = 1\nduration = 50\n[axes]\nhops = [1, 2]\n[full]\nseeds = 30\n'


@pytest.fixture
def tasks(tmp_path):
    (tmp_path / "e.toml").write_text(TEXT)
    return tasks_of(load(tmp_path / "e.toml"), tmp_path / "out" / "e")


def test_a_batch_is_read_as_it_was_written(tmp_path, tasks):
    folder = tmp_path / "out" / "batches"
    folder.mkdir(parents=True)
    batch = Batch(tuple(tasks), 4, "first", "6.12", True)
    batch.write(folder / "batch-1.json")
    read = Batch.read(folder / "batch-1.json")
    assert [(task.name, task.directory) for task in read.tasks] == [(task.name, task.directory) for task in tasks]
    assert [task.cell.scenario for task in read.tasks] == [task.cell.scenario for task in tasks]
    assert (read.jobs, read.captures, read.kernel, read.allow_internet) == (4, "first", "6.12", True)


def test_a_campaign_that_was_moved_finds_its_runs(tmp_path, tasks):
    folder = tmp_path / "out" / "batches"
    folder.mkdir(parents=True)
    Batch(tuple(tasks)).write(folder / "batch-1.json")
    (tmp_path / "out").rename(tmp_path / "moved")
    first = Batch.read(tmp_path / "moved" / "batches" / "batch-1.json").tasks[0]
    assert first.directory == tmp_path / "moved" / "e" / "hops1" / "seed-1"


def test_batches_last_about_as_long_as_asked_and_keep_the_order(tasks):
    cut = split(tasks, jobs=2, target_s=600)  # 60 runs of 60 s, two side by side: 20 in ten minutes
    assert [len(part) for part in cut] == [20, 20, 20]
    assert [task for part in cut for task in part] == tasks
    assert [len(part) for part in split(tasks[:3], jobs=1, target_s=1)] == [1, 1, 1]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "manet-batch/1"}', '{"format": "manet-batch/2", "runs": []}', "nul"]
)
def test_a_file_that_is_no_batch_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "batch-1.json").write_text(text)
    with pytest.raises(UsageError, match=r"batch-1\.json: is no batch"):
        Batch.read(tmp_path / "batch-1.json")


def test_a_scenario_of_another_version_is_refused(tmp_path, tasks):
    path = tmp_path / "batch-1.json"
    Batch(tuple(tasks[:1])).write(path)
    content = json.loads(path.read_text())
    content["runs"][0]["scenario"]["unheard_of"] = 1
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError, match="start the campaign again"):
        Batch.read(path)


def test_a_second_worker_waits_for_the_first(tmp_path):
    path = tmp_path / "batch-1.json"
    path.write_text("{}")
    said, entered = io.StringIO(), threading.Event()

    def second(file: Path) -> None:
        with claimed(file, said.write):
            entered.set()

    with claimed(path, said.write):
        thread = threading.Thread(target=second, args=(path,))
        thread.start()
        assert not entered.wait(0.3)
    thread.join(10)
    assert entered.is_set() and "waiting" in said.getvalue()


def test_a_batch_gets_other_options_unless_a_worker_has_it(tmp_path):
    """The worker's lock is on the file: a new file in its place would let a second one in."""
    path = tmp_path / "batch-1.json"
    Batch((), jobs=4).write(path)
    with claimed(path, io.StringIO().write):
        renew(path, 5, "none")
        assert Batch.read(path) == Batch((), jobs=4)
    renew(path, 5, "none")
    assert Batch.read(path) == Batch((), jobs=5, captures="none")


def test_a_worker_begins_with_what_its_last_batch_found(tmp_path):
    """24 runs where the default was 16: half as many again."""

    def record(number, found, host):
        folder = tmp_path / "batches" / f"round-{number}"
        folder.mkdir(parents=True)
        content = {"host": host, "default_jobs": 16, "found_jobs": found}
        (folder / f"batch-1{DONE_NAME}").write_text(json.dumps(content))
        return folder

    assert found_share(tmp_path / "batches" / "round-1" / "batch-1.json") == 1.0
    record(1, 8, socket.gethostname())
    record(2, 24, socket.gethostname())
    record(3, None, socket.gethostname())  # too short to find a number
    folder = record(4, 64, "elsewhere")
    assert found_share(folder / "batch-2.json") == 1.5
    record(5, 64, socket.gethostname())
    assert found_share(folder / "batch-2.json") == MAX_SHARE
