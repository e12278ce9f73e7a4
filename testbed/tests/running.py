"""Helpers for tests that run scenarios: a run in a thread or in a separate process, and its leftovers."""

import csv
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scenarios.scenario import Scenario
from testbed.host.cgroup import PARENT, cgroup2_mount, members
from testbed.host.requirements import require_for_runs
from testbed.host.state import RunState, recorded_runs
from testbed.programs import BUILT, ROOT
from testbed.runs.live_network import LiveNetwork
from testbed.runs.run import RunResult, run_scenario
from testbed.stages.event_log import EventLog

STAGES = ["stations", "medium", "routing", "kernel-tcp", "captures", "settling", "traffic", "stop"]
DEADLINE_S = 60.0


def skip_unless(require: Callable[..., None], *arguments: object, **options: object) -> pytest.MarkDecorator:
    """Skips tests if `require` raises an error, with the error as the reason."""
    reason = ""
    try:
        require(*arguments, **options)
    except Exception as problem:
        reason = str(problem)
    return pytest.mark.skipif(reason != "", reason=reason)


needs_runs = skip_unless(require_for_runs, programs=BUILT)


def chain(**keys: object) -> Scenario:
    """One hop, as short as a test can use."""
    return Scenario.model_validate({"hops": 1, "warmup": 0, "duration": 2, **keys})


def wait_until(condition: Callable[[], object], what: str, within_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {within_s:g} s"
        time.sleep(0.02)


def calls(function: Callable[[], object]) -> int:
    """The calls of Python and C functions that `function` makes."""
    number = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return number


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def state_of(directory: Path) -> RunState | None:
    return next((state for state in recorded_runs() if state.directory == str(directory)), None)


def process_of(directory: Path, word: str) -> int:
    """The pid of the run's process whose command line has `word` in it."""
    state = state_of(directory)
    assert state is not None, f"no run is recorded for {directory}"
    for pid in members(Path(state.cgroup)):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line:
            return pid
    raise AssertionError(f'no process of the run has "{word}" in its command line')


def acting_network(network: Any, folder: Path) -> LiveNetwork:
    """A running network without processes: `do` asks the medium of `network` and writes events.csv."""
    live = LiveNetwork.__new__(LiveNetwork)
    live.network, live.site, live.log = network, network.site, EventLog(folder, network.medium)
    live.protocol, live._waits = SimpleNamespace(has_daemons=False), SimpleNamespace(starved=lambda: None)
    live.broken, live._begin_s, live._started = {}, None, []
    return live


class Background(threading.Thread):
    """run_scenario in a thread; `at` waits for a stage, `result` for the end. A run that a test leaves under way, as one that
    fails in the middle does, is ended after the test (conftest.py)."""

    def __init__(
        self, scenario: Scenario, directory: Path, *, deadline_s: float = DEADLINE_S, cancel: threading.Event | None = None,
        **options: object,
    ) -> None:  # fmt: skip
        super().__init__(daemon=True)
        self.directory, self.stages, self._changed, self.deadline_s = directory, [], threading.Condition(), deadline_s
        self._scenario, self._options, self._cancel = scenario, options, cancel or threading.Event()
        self._outcome: list = []
        self.start()

    def run(self) -> None:
        how = {"progress": self._note, "programs": BUILT, "cancel": self._cancel, **self._options}
        try:
            self._outcome.append(run_scenario(self._scenario, 1, self.directory, **how))
        except Exception as problem:
            self._outcome.append(problem)
        with self._changed:
            self._changed.notify_all()

    def _note(self, stage: str, fraction: float | None) -> None:
        with self._changed:
            self.stages.append((stage, fraction or 0.0))
            self._changed.notify_all()

    def at(self, stage: str, fraction: float = 0.0) -> "Background":
        """Wait until the run has reported this much."""

        def reached() -> bool:
            return bool(self._outcome) or any(s == stage and f >= fraction for s, f in self.stages)

        with self._changed:
            assert self._changed.wait_for(reached, self.deadline_s), f"never came to {stage} {fraction}: {self.stages}"
        assert not self._outcome, f"ended before {stage} {fraction}: {self._outcome}"
        return self

    def end_run(self) -> None:
        """Interrupt the run, and wait until everything is torn down."""
        self._cancel.set()
        self.join(self.deadline_s)
        assert not self.is_alive(), f"not ended within {self.deadline_s:g} s: {self.stages[-1:]}"

    def result(self) -> RunResult:
        self.join(self.deadline_s)
        assert self._outcome, f"still running after {self.deadline_s:g} s: {self.stages[-1:]}"
        if isinstance(self._outcome[0], Exception):
            raise self._outcome[0]
        return self._outcome[0]


PROMPT = """
import sys
from pathlib import Path
from testbed.runs.prompt import open_prompt
from scenarios.scenario import Scenario
result = open_prompt(Scenario.from_json(sys.argv[1]), directory=Path(sys.argv[2]))
print("status", result.status, result.error)
"""


def prompt(scenario: Scenario, directory: Path, *lines: str) -> str:
    """The output of `manet cli` for these lines, with its final status."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROMPT, scenario.to_json(), str(directory)],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(directory.parent), "PYTHONPATH": str(ROOT)},
    )
    return done.stdout


def captured(directory: Path, name: str, expression: str, *options: str) -> list[str]:
    """tcpdump's lines for the packets of a capture that match a filter."""
    argv = ["tcpdump", "-n", *options, "-r", str(directory / "captures" / f"{name}.pcap"), expression]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def ipv6_frames(directory: Path) -> list[str]:
    """tshark's lines for the IPv6 packets on the air. (Most come as a radio does, before the stations' captures.)"""
    argv = ["tshark", "-n", "-r", str(directory / "air.pcapng"), "-Y", "ipv6"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def air_rows(directory: Path, station: str, event: str, frame: str) -> list[dict[str, str]]:
    with (directory / "air.csv").open() as file:
        rows = csv.DictReader(file)
        return [row for row in rows if (row["station"], row["event"], row["frame"]) == (station, event, frame)]


DRIVER = """
import sys
from pathlib import Path
from testbed.runs.run import run_scenario
from scenarios.scenario import Scenario
from testbed.programs import Programs
say = lambda stage, fraction: print(stage, fraction or 0.0, flush=True)
programs = Programs(Path(sys.argv[3]), Path(sys.argv[4]))
try:
    print(run_scenario(Scenario.from_json(sys.argv[1]), 1, Path(sys.argv[2]), progress=say, programs=programs).status)
except KeyboardInterrupt:
    sys.exit(130)
"""


def driven(scenario: Scenario, directory: Path, *before: str) -> subprocess.Popen:
    """Start a run in a separate process that prints its stages, so that tests can signal it. `before`: a command prefix."""
    programs = [str(BUILT.medium), str(BUILT.kernel_tcp)]
    return subprocess.Popen(
        [*before, sys.executable, "-P", "-c", DRIVER, scenario.to_json(), str(directory), *programs],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def until_stage(process: subprocess.Popen, stage: str, fraction: float = 0.0) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        words = line.split()
        if words[0] == stage and float(words[1]) >= fraction:
            return
    raise AssertionError(f"ended before {stage}")


def run_json(directory: Path) -> dict:
    return json.loads((directory / "run.json").read_text())


@dataclass
class Traces:
    """The kernel objects of a running run, to check later that none remains."""

    processes: list[int]
    namespaces: set[str]
    cgroup: Path
    bpf_objects: set[str]

    @classmethod
    def of(cls, directory: Path) -> "Traces":
        state = state_of(directory)
        assert state is not None
        group = Path(state.cgroup)
        pids = members(group)
        spaces = {space for pid in pids for space in _namespaces(pid)} - set(_namespaces(os.getpid()))
        return cls(pids, spaces, group, {thing for pid in pids for thing in _bpf_objects_of(pid)})

    def remaining(self) -> list[str]:
        """The objects that still exist."""
        found = [f"process {pid}" for pid in self.processes if Path(f"/proc/{pid}").exists()]
        in_use = {space for pid in _pids() for space in _namespaces(pid)}
        found += [f"namespace {space}" for space in self.namespaces & in_use]
        found += [f"cgroup {self.cgroup}"] if self.cgroup.exists() else []
        return found + sorted(self.bpf_objects & bpf_objects())


def nothing_left(directory: Path) -> bool:
    """No state file and no cgroup of a run in this directory."""
    mount = cgroup2_mount()
    assert mount is not None
    recorded = state_of(directory)
    groups = [group for group in (mount / PARENT).glob("*") if recorded is not None and str(group) == recorded.cgroup]
    return recorded is None and not groups


def bpf_objects() -> set[str]:
    """The BPF programs and links in the kernel."""
    found = set()
    for kind in ("prog", "link"):
        done = subprocess.run(["bpftool", kind, "list", "--json"], capture_output=True, text=True, check=True)
        found |= {f"BPF {kind} {entry['id']}" for entry in json.loads(done.stdout or "[]")}
    return found


def _bpf_objects_of(pid: int) -> set[str]:
    """Those that a process holds open: /proc/<pid>/fdinfo names them."""
    found = set()
    for path in Path(f"/proc/{pid}/fdinfo").glob("*"):
        try:
            words = dict(line.split(None, 1) for line in path.read_text().splitlines() if line.count("\t"))
        except OSError:
            continue
        for kind in ("prog", "link"):
            if f"{kind}_id:" in words:
                found.add(f"BPF {kind} {words[f'{kind}_id:']}")
    return found


def sysctls() -> dict[str, str]:
    """The sysctls of this namespace, without counters and values that change by themselves."""
    changing = ("fs.dentry-state", "fs.inode", "fs.file-nr", "kernel.random.", "kernel.ns_last_pid", "kernel.pty.nr")
    changing += ("fs.aio-nr", "net.netfilter.nf_conntrack_count", "vm.stat_refresh", "kernel.perf_event_max_sample_rate")
    changing += ("fs.quota.", "kernel.sched_domain", "kernel.ftrace_enabled", "kernel.bpf_stats_enabled")
    done = subprocess.run(["sysctl", "-a"], capture_output=True, text=True, check=False)
    pairs = (line.partition(" = ") for line in done.stdout.splitlines())
    return {name: value for name, _, value in pairs if not name.startswith(changing)}


def links() -> list[str]:
    """Names of the network devices of this namespace."""
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _namespaces(pid: int) -> list[str]:
    spaces = []
    for kind in ("net", "mnt", "pid"):
        try:
            spaces.append(str(Path(f"/proc/{pid}/ns/{kind}").readlink()))
        except OSError:
            continue
    return spaces
