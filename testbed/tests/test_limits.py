"""Control groups of containers: where each controller is, and what is left of them."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.host import cgroup, limits
from testbed.host.run_queue import RunQueue

pytestmark = pytest.mark.root
V1 = """31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""


@pytest.fixture
def run() -> Iterator[Path]:
    """The group of a run, with a process in it."""
    if os.geteuid() != 0 or cgroup.cgroup2_mount() is None:
        pytest.skip("needs root and cgroup version 2; sudo ./manet test")
    group = cgroup.create(f"run-test-{os.getpid()}")
    with subprocess.Popen(["sleep", "1000"]) as process:
        (group / "cgroup.procs").write_text(str(process.pid))
        yield group
        process.kill()
    cgroup.remove(group)


def controller_of_version_2() -> str:
    mount = cgroup.cgroup2_mount()
    here = (mount / "cgroup.controllers").read_text().split() if mount else []
    if not here:
        pytest.skip("cgroup version 2 has no controller on this machine")
    return here[0]


def test_each_controller_of_version_1_is_found_by_its_mount(tmp_path):
    (tmp_path / "mountinfo").write_text(V1)
    mounts = cgroup.version_1_mounts(tmp_path / "mountinfo")
    assert mounts["memory"] == Path("/sys/fs/cgroup/memory")
    assert mounts["cpu"] == mounts["cpuacct"] == Path("/sys/fs/cgroup/cpu,cpuacct")
    assert cgroup.cgroup2_mount(tmp_path / "mountinfo") == Path("/sys/fs/cgroup/unified")


def test_a_run_with_processes_hands_a_controller_down_to_its_containers(run):
    """cgroups(7), "no internal processes": the run's own processes move beside them, and stay members of the run."""
    controller = controller_of_version_2()
    pids = cgroup.members(run)
    limits._hand_down(run, [controller])
    (run / "sta1").mkdir()
    assert (run / "sta1/cgroup.controllers").read_text().split() == [controller]
    assert (run / limits.PROGRAMS / "cgroup.procs").read_text().split() == [str(pid) for pid in pids]
    assert cgroup.members(run) == pids


def test_a_controller_that_no_hierarchy_has_is_refused(run):
    with pytest.raises(UsageError, match="no controller nosuch; boot a kernel with it, or remove the limit"):
        limits._hand_down(run, ["nosuch"])


def test_the_limits_are_the_kernels_and_go_with_the_run(run):
    group = limits.LimitedGroup.create(run, "sta1", {"memory": 64 << 20, "cpu": 0.5, "pids": 7})
    kept = {path.name: path.read_text().split() for folder in group.folders for path in folder.iterdir() if path.name in FILES}
    assert kept in (
        {"memory.limit_in_bytes": ["67108864"], "cpu.cfs_quota_us": ["50000"], "pids.max": ["7"]},
        {"memory.max": ["67108864"], "cpu.max": ["50000", "100000"], "pids.max": ["7"]},
    )
    counts = group.counts()
    assert (counts.oom_kills, counts.refused_forks, counts.throttled_s) == (0, 0, 0)
    for pid in cgroup.members(run):
        os.kill(pid, 9)
    assert cgroup.remove(run)
    assert [folder for folder in group.folders if folder.exists()] == []


FILES = {"memory.limit_in_bytes", "cpu.cfs_quota_us", "pids.max", "memory.max", "cpu.max"}


def test_the_tasks_of_a_limited_group_are_no_waiting_programs(run):
    group = limits.LimitedGroup.create(run, "sta1", {})
    with subprocess.Popen(["sleep", "1000"]) as process:
        (group.folder / "cgroup.procs").write_text(str(process.pid))
        assert process.pid in RunQueue(run).read()
        assert process.pid not in RunQueue(run, without=[group.folder]).read()
        process.kill()
