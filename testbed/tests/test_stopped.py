"""A program of a run that is stopped or traced is named, however short the stop was."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.host.processes import Processes
from testbed.runs.stopped import THIS_PROCESS, StoppedPrograms, StopSummary, own_turns_s
from traffic.programs.iperf_client import CLOSING

CHILD = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
PARENT = [
    sys.executable, "-I", "-S", "-c",
    "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print(p.pid, flush=True); p.wait()",
    *CHILD,
]  # fmt: skip


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Run:
    """The children of a run, their control group's listing, and what looks at them."""

    def __init__(self, folder: Path, processes: Processes) -> None:
        self.folder, self.processes, self.clock = folder, processes, Clock()
        self.turns_s = 0.0  # the time for which this process ran or waited for a processor, of the fake clock
        self.stopped = StoppedPrograms(folder, processes, without=["sta1"], clock=self.clock, turns=lambda: self.turns_s)

    def start(self, name: str, argv: list[str]) -> int:
        """Start a child and wait until it sleeps; its process id."""
        pid = self.processes.start(name, list(argv), remedy="run it again").pid
        reaches(pid, "S")
        return pid

    def start_below(self, name: str, argv: list[str]) -> int:
        """Start a child that starts another program; that one's process id."""
        self.start(name, argv)
        child = list(self.processes.children)[-1]
        while not child.printed():
            time.sleep(0.001)
        below = int(child.printed())
        reaches(below, "S")
        return below

    def begin(self, *below: int) -> None:
        pids = [*(child.pid for child in self.processes.children), *below]
        (self.folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
        self.stopped.begin()

    def look(self, after_s: float = 0.5) -> None:
        self.clock.now_s += after_s
        self.stopped.tick()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Processes(tmp_path / "log") as processes:
        one = Run(tmp_path, processes)
        yield one
        one.stopped.end()


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    reaches(pid, "T")


def go_on(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)
    reaches(pid, "S")


def reaches(pid: int, state: str) -> None:
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != state:
        time.sleep(0.001)


def test_an_undisturbed_run_is_valid(run: Run) -> None:
    run.start("flow1-sender", CHILD)
    run.begin()
    for _ in range(10):
        run.look()
    assert run.stopped.end().judgement() == ("valid", [])
    assert run.stopped.summary.report() == {}


def test_a_stop_shorter_than_the_time_between_two_looks_is_reported(run: Run) -> None:
    pid = run.start("aodv-sta2", CHILD)
    run.begin()
    stop(pid)
    go_on(pid)
    run.look()
    verdict, reasons = run.stopped.end().judgement()
    assert verdict == "suspect"
    assert reasons == ["aodv-sta2 was stopped by a signal, a tracer or a frozen control group: run it again"]


def test_a_long_stop_is_void_and_its_length_is_reported(run: Run) -> None:
    pid = run.start("flow1-sender", CHILD)
    run.begin()
    stop(pid)
    run.look()
    run.look(4.0)
    go_on(pid)
    run.look()
    assert run.stopped.end().judgement()[0] == "void"
    assert run.stopped.summary.report() == {"flow1-sender": 4.5}


def test_a_stop_that_lasts_until_the_end_counts(run: Run) -> None:
    pid = run.start("medium", CHILD)
    run.begin()
    stop(pid)
    run.look()
    run.clock.now_s += 2.0
    assert run.stopped.end().report() == {"medium": 2.0}
    os.kill(pid, signal.SIGCONT)


def test_a_stop_before_the_traffic_counts(run: Run) -> None:
    pid = run.start("aodv-sta1", CHILD)
    stop(pid)
    go_on(pid)
    run.begin()
    assert run.stopped.end().judgement()[0] == "suspect"


@pytest.mark.parametrize("capture", ["captures", "tcpdump-sta1"])
def test_a_stopped_capture_costs_no_throughput(run: Run, capture: str) -> None:
    pid = run.start(capture, CHILD)
    run.begin()
    stop(pid)
    run.look()
    run.look(4.0)
    go_on(pid)
    assert run.stopped.end().judgement()[0] == "suspect"


def test_a_program_below_a_child_is_named_with_the_child(run: Run) -> None:
    below = run.start_below("flow1-sender", PARENT)
    parent = list(run.processes.children)[-1].pid
    run.begin(below)
    stop(below)
    run.look()
    go_on(below)
    run.look()
    assert list(run.stopped.end().report()) == [f"flow1-sender ({Path(f'/proc/{parent}/comm').read_text().strip()})"]
    os.kill(below, signal.SIGKILL)


def test_a_client_may_pause_what_closes(run: Run) -> None:
    """iperf3's client pauses iperf3 while it closes, also before the end of the other flows."""
    naming = f"open('/proc/self/comm', 'w').write('{CLOSING}'); "
    below = run.start_below(
        "flow1-sender", [word.replace("import subprocess, sys; ", f"import subprocess, sys; {naming}") for word in PARENT]
    )
    run.begin(below)
    stop(below)
    run.look()
    go_on(below)
    assert run.stopped.end().report() == {}
    os.kill(below, signal.SIGKILL)


def test_a_command_of_an_event_may_stop(run: Run) -> None:
    pid = run.start("event-upload", CHILD)
    run.begin()
    stop(pid)
    run.look()
    go_on(pid)
    assert run.stopped.end().report() == {}


@pytest.mark.root
def test_a_program_in_a_frozen_control_group_is_named(run: Run) -> None:
    group = Path("/sys/fs/cgroup/freezer") / f"manet-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as problem:
        pytest.skip(f"this machine has no freezer of cgroup version 1: {problem.strerror}")
    pid = run.start("flow1-sender", CHILD)
    run.begin()
    try:
        (group / "cgroup.procs").write_text(str(pid))
        (group / "freezer.state").write_text("FROZEN")
        while (group / "freezer.state").read_text().strip() != "FROZEN":
            time.sleep(0.001)
        run.look(2.0)
        run.look(0.5)
        run.look(3.5)
        (group / "freezer.state").write_text("THAWED")
        run.look(2.0)
        assert run.stopped.end().report() == {"flow1-sender": 6.0}
    finally:
        (group / "freezer.state").write_text("THAWED")
        os.kill(pid, signal.SIGKILL)
        list(run.processes.children)[-1].popen.wait()
        group.rmdir()


def test_a_shell_of_a_station_may_stop(run: Run) -> None:
    pid = run.start("sta1", CHILD)
    run.begin()
    stop(pid)
    run.look()
    go_on(pid)
    assert run.stopped.end().report() == {}


def test_a_traced_program_is_found_within_a_round(run: Run) -> None:
    """Its tracer alone is told of the stop: PTRACE_SEIZE and PTRACE_INTERRUPT, as a debugger that attaches."""
    pids = [run.start(f"aodv-sta{number}", CHILD) for number in range(1, 20)]
    run.begin()
    words = f"libc = ctypes.CDLL(None); libc.ptrace(0x4206, {pids[-1]}, 0, 0); libc.ptrace(0x4207, {pids[-1]}, 0, 0)"
    argv = [sys.executable, "-I", "-S", "-c", f"import ctypes, time; {words}; print(1, flush=True); time.sleep(60)"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as tracer:
        try:
            assert tracer.stdout is not None
            tracer.stdout.readline()
            reaches(pids[-1], "t")
            for _ in range(5):  # 19 children, 6 each two seconds
                run.look(2.0)
        finally:
            tracer.kill()
    assert list(run.stopped.end().report()) == ["aodv-sta19"]


def test_a_stop_of_the_runs_own_process_is_seen_by_its_continuation(run: Run) -> None:
    run.begin()
    run.look(0.6)
    other = subprocess.Popen(["sh", "-c", f"kill -STOP {os.getpid()}; kill -CONT {os.getpid()}"])
    other.wait()
    run.look(4.5)
    assert run.stopped.end().report() == {THIS_PROCESS: 4.0}


def test_a_gap_of_the_runs_own_process_without_a_signal_is_reported(run: Run) -> None:
    """A frozen control group or a suspended machine."""
    run.begin()
    run.look(30.0)
    assert run.stopped.end().judgement()[0] == "void"


def test_a_gap_in_which_the_runs_own_process_worked_or_waited_for_a_processor_is_none(run: Run) -> None:
    """Two thousand daemons on two cores: the process of the run comes late, and the verdict names the host, not a signal."""
    run.begin()
    run.turns_s = 29.0
    run.look(30.0)
    assert run.stopped.end().report() == {}


def test_the_kernel_counts_the_turns_of_this_process() -> None:
    before_s, began_s = own_turns_s(), time.process_time()
    while time.process_time() < began_s + 0.05:
        pass
    assert not before_s or own_turns_s() - before_s >= 0.04, "0: a kernel that does not count"


def test_a_long_start_up_is_no_gap(run: Run) -> None:
    run.clock.now_s += 60.0
    run.begin()
    run.look()
    assert run.stopped.end().report() == {}


def test_few_reasons_are_listed_and_all_programs_reported() -> None:
    summary = StopSummary()
    for number in range(40):
        summary.add(f"aodv-sta{number}", 0.0)
    assert len(summary.judgement()[1]) == 5
    assert len(summary.report()) == 40
