"""The testbed's record of its runs, and `clean`, which touches nothing else."""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from record.run_file import RunFile
from testbed.host import cgroup, clean, state
from testbed.host.state import Process, RunState

root_only = pytest.mark.skipif(
    os.geteuid() != 0 or cgroup.cgroup2_mount() is None, reason="needs root and cgroup2; sudo ./manet test"
)
GONE = Process(pid=os.getpid(), start=1)  # this pid, but of a process started at boot: not this one


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """State files of this test only."""
    for module in (state, clean):
        monkeypatch.setattr(module, "STATE_FOLDER", tmp_path)
    monkeypatch.setattr(cgroup, "PARENT", f"manet-test-{os.getpid()}")
    return tmp_path


def test_a_process_is_known_by_pid_and_start_time(sleeper: subprocess.Popen) -> None:
    process = Process.of(sleeper.pid)
    assert process is not None and process.alive()
    assert not Process(sleeper.pid, process.start + 1).alive()
    sleeper.kill()
    sleeper.wait()
    assert not process.alive()


def test_a_process_named_like_a_stat_line_is_read_correctly(tmp_path: Path) -> None:
    program = tmp_path / "x) R 1 1 (y"
    program.symlink_to("/bin/sleep")
    child = subprocess.Popen([str(program), "30"])
    try:
        process = Process.of(child.pid)
        this_process = Process.of(os.getpid())
        assert process is not None and this_process is not None and process.start >= this_process.start
    finally:
        child.kill()
        child.wait()


def recorded(folder: Path, owner: Process, keeper: Process | None) -> RunState:
    run = RunState("run-test", str(folder / "results"), str(cgroup.require_mount() / cgroup.PARENT / "run-test"), owner, keeper)
    run.save()
    return run


@root_only
def test_leftovers_are_ended_and_removed_and_a_second_clean_finds_nothing(
    folder: Path, sleeper: subprocess.Popen, monkeypatch
) -> None:
    monkeypatch.setattr(clean, "END_DEADLINE_S", 0.2)  # the sleeper never ends by itself
    run = recorded(folder, GONE, None)
    group = cgroup.create("run-test")
    (group / "cgroup.procs").write_text(str(sleeper.pid))
    first = clean.clean()
    assert sleeper.wait(10) == -signal.SIGKILL
    assert [str(folder / "results") in line for line in first.removed] == [True]
    assert not group.exists() and not group.parent.exists() and not run.path.exists()
    assert clean.clean() == clean.Cleaned()


@root_only
def test_a_run_whose_owner_lives_is_left_alone(folder: Path, sleeper: subprocess.Popen) -> None:
    owner = Process.of(os.getpid())
    assert owner is not None
    run = recorded(folder, owner, Process.of(sleeper.pid))
    cleaned = clean.clean()
    assert sleeper.poll() is None and run.path.exists()
    assert len(cleaned.still_running) == 1 and not cleaned.removed


@root_only
def test_pids_of_another_pid_namespace_mean_nothing_here(folder: Path) -> None:
    run = recorded(folder, GONE, None)
    run.pid_namespace = "pid:[1]"
    run.save()
    assert len(clean.clean().still_running) == 1 and run.path.exists()


@root_only
def test_a_recorded_pid_that_now_belongs_to_another_is_left_alone(folder: Path, sleeper: subprocess.Popen) -> None:
    run = recorded(folder, GONE, Process(sleeper.pid, 1))
    clean.clean()
    assert sleeper.poll() is None and not run.path.exists()


@root_only
def test_a_state_file_cannot_point_clean_at_a_foreign_cgroup(folder: Path, sleeper: subprocess.Popen, monkeypatch) -> None:
    monkeypatch.setattr(clean, "END_DEADLINE_S", 0.2)
    foreign = cgroup.require_mount() / f"foreign-{os.getpid()}"
    foreign.mkdir()
    try:
        (foreign / "cgroup.procs").write_text(str(sleeper.pid))
        RunState("run-test", str(folder), str(foreign), GONE).save()
        cleaned = clean.clean()
        assert sleeper.poll() is None and foreign.exists()
        assert len(cleaned.could_not) == 1
    finally:
        sleeper.kill()
        sleeper.wait()
        assert cgroup.remove(foreign)


@root_only
def test_an_empty_cgroup_without_a_record_is_removed_once_it_is_old(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one may be a run in a container that is just starting."""
    group = cgroup.create("run-stray")
    assert clean.clean() == clean.Cleaned() and group.exists()
    monkeypatch.setattr(clean, "STRAY_AGE_S", -1.0)
    assert len(clean.clean().removed) == 1 and not group.exists()


@root_only
def test_broken_state_files_are_removed_once_they_are_old(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one may be a record that another `manet` is writing."""
    (folder / "run-x.json").write_text("{")
    (folder / "run-y.new").write_text("")
    assert clean.clean() == clean.Cleaned() and len(list(folder.iterdir())) == 2
    monkeypatch.setattr(clean, "STRAY_AGE_S", -1.0)
    assert len(clean.clean().removed) == 2
    assert not list(folder.iterdir())


@root_only
def test_parallel_runs_do_not_remove_the_parent_group(folder: Path) -> None:
    problems: list[Exception] = []

    def start_and_end(name: str) -> None:
        try:
            for number in range(100):
                assert cgroup.remove(cgroup.create(f"{name}-{number}"))
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=start_and_end, args=(name,)) for name in ("one", "two", "three")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_run_json_is_valid_json_at_every_moment_and_shrinks_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    record = RunFile.create(path, stations=3, seed=1)
    assert json.loads(path.read_text())["status"] == "interrupted"
    reserved = path.stat().st_size
    record.update(sysctls={"sta1": {"net.ipv4.ip_forward": "1"}})
    assert path.stat().st_size == reserved
    again = RunFile.open(path)
    again.update(status="complete", error=None)
    again.close()
    assert json.loads(path.read_text())["status"] == "complete"
    assert path.stat().st_size < 400


def test_the_cgroup2_mount_is_found_if_version_1_is_mounted_too(tmp_path: Path) -> None:
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(
        "30 23 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n"
        "42 32 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
    )
    assert cgroup.cgroup2_mount(mountinfo) == Path("/sys/fs/cgroup/unified")
    mountinfo.write_text("30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n")
    assert cgroup.cgroup2_mount(mountinfo) is None
