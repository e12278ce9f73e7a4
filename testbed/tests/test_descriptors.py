"""Open files: the limit of a run, that of its children, and the error for too many stations."""

import resource
import time
from contextlib import suppress
from pathlib import Path

import pytest

from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.host import cgroup, descriptors
from testbed.host.processes import Processes
from testbed.host.state import recorded_runs
from testbed.runs.preflight import check_open_files, open_files
from testbed.tests.running import chain, driven, needs_runs, run_json


@pytest.fixture
def low_soft_limit(monkeypatch):
    """The soft limit of this process is well below its hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard <= 900:
        pytest.skip(f"the hard limit of open files is {hard}; ulimit -Hn 1024")
    monkeypatch.setattr(descriptors, "_original_soft", None)
    resource.setrlimit(resource.RLIMIT_NOFILE, (800, hard))
    yield 800
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("many_files", [False, True])
def test_children_get_the_soft_limit_of_before_unless_they_need_many_files(tmp_path, low_soft_limit, many_files) -> None:
    descriptors.raise_limit()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == hard
    script = f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; ulimit -Sn; ulimit -Hn"
    with Processes(tmp_path) as children:
        child = children.start("app", ["sh", "-c", script], remedy="-", may_end=True, many_files=many_files)
        (tmp_path / "go").write_text("")
        children.watch(ended=[child], until=time.monotonic() + 30)
    assert child.printed().split() == [str(hard if many_files else low_soft_limit), str(hard)]


def test_stations_that_do_not_fit_are_refused_in_one_line_with_the_remedy() -> None:
    with pytest.raises(UsageError) as caught:
        check_open_files(chain(hops=300), hard=2484)
    # 301 stations of eight, 64 for the run, twelve for the flow, one for the captures
    assert "301 stations need up to 2485 open files, and the hard limit is 2484" in str(caught.value)
    assert "ulimit -Hn 2485" in str(caught.value) and "\n" not in str(caught.value)
    check_open_files(chain(hops=300), hard=2485)
    check_open_files(chain(hops=400), hard=resource.RLIM_INFINITY)


def test_a_routing_daemon_and_a_wire_count_too() -> None:
    plain = open_files(chain(hops=9))
    assert open_files(chain(hops=9, routing="aodv")) == plain + 10 * 3
    assert open_files(Scenario(topology="random", nodes=2000, area=(5000, 5000), routing="aodv")) < 20_000
    wired = chain(hops=9, wires=[{"station": "sta1", "host": "inet1"}])
    assert open_files(wired) == plain + 8


def test_with_tcpdump_each_captured_file_has_a_process() -> None:
    """Ten radios, both ends of the wire, and the packets of AODV of each station (testbed/stages/capture.py)."""
    keys = {"hops": 9, "routing": "aodv", "wires": [{"station": "sta1", "host": "inet1"}]}
    assert open_files(chain(**keys, capture_program="tcpdump")) == open_files(chain(**keys)) - 1 + 10 + 2 + 10


@pytest.mark.root
@needs_runs
def test_a_run_uses_the_hard_limit_of_open_files(tmp_path: Path) -> None:
    """A soft limit that the run's own process would exceed."""
    process = driven(chain(hops=5, routing="aodv"), tmp_path / "run", "prlimit", "--nofile=24:1024")
    process.communicate(timeout=120)
    record = run_json(tmp_path / "run")
    assert (record["status"], record["error"]) == ("complete", None)


@pytest.mark.root
@needs_runs
def test_a_run_has_no_more_files_open_than_it_is_said_to_need(tmp_path: Path) -> None:
    """By /proc, of all processes of the run but the medium and the capturing program, at each of its stages."""
    scenario = chain(hops=9, routing="aodv", wires=[{"station": "sta1", "host": "inet1"}])
    process, most = driven(scenario, tmp_path / "run"), 0
    assert process.stdout is not None
    for _line in process.stdout:
        group = next((Path(run.cgroup) for run in recorded_runs() if run.directory == str(tmp_path / "run")), None)
        for pid in cgroup.members(group) if group else ():
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().startswith("python"):
                    most = max(most, len(list(Path(f"/proc/{pid}/fd").iterdir())))
    assert process.wait() == 0 and open_files(scenario) / 2 < most <= open_files(scenario)
