"""The control groups of a container's programs, which limit their memory, processor time and number, and count what they hit.

A controller is in version 2 of cgroups or in a hierarchy of version 1, never in both (cgroups(7)), and distributions differ; both
are used, each controller where it is. In version 2 the group is within the run's, so that kernel-tcp's `sockops` program sees the
container's connections as all others. A group with processes of its own cannot limit groups within it ("no internal processes",
cgroups(7)), so the run's other processes then move to a group beside the container's.

Files: the kernel's Documentation/admin-guide/cgroup-v2.rst, and cgroup-v1/memory.rst, Documentation/scheduler/sched-bwc.rst.
"""

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from testbed.errors import UsageError
from testbed.host import cgroup

PROGRAMS = "other.programs"  # the group of the run's other processes; no station has a dot in its name
PERIOD_US = 100_000  # in which a group may use `cpu` times that of processor time; the kernel's default
CONTROLLERS = {"memory": "memory", "cpu": "cpu", "pids": "pids"}  # by the key of a scenario


@dataclass(frozen=True)
class Counts:
    """Effects of a group's limits so far. `oom_kills`: processes that the kernel killed; `refused_forks`: failed fork(2) and
    clone(2) calls; `throttled_s`: time for which its programs were kept from a processor; None: not known."""

    oom_kills: int | None = None
    refused_forks: int | None = None
    throttled_s: float | None = None
    peak_memory_bytes: int | None = None


@dataclass(frozen=True)
class LimitedGroup:
    """The groups of one container: `folder` of version 2, and by controller those that limit it."""

    folder: Path
    limiting: Mapping[str, Path]

    @classmethod
    def create(cls, run: Path, name: str, limits: Mapping[str, float]) -> Self:
        """Make the groups within the run's group `run`. `limits`: bytes of `memory`, processors of `cpu`, number of `pids`.
        Raises UsageError for a controller that this machine lacks."""
        folder = run / name
        folder.mkdir()
        limiting, mounts = {}, cgroup.version_1_mounts()
        here = [key for key in limits if CONTROLLERS[key] not in mounts]
        _hand_down(run, [CONTROLLERS[key] for key in here])
        for key, value in limits.items():
            controller = CONTROLLERS[key]
            limiting[key] = folder
            if controller in mounts:
                limiting[key] = mounts[controller] / cgroup.PARENT / run.name / name
                limiting[key].mkdir(parents=True, exist_ok=True)
            for file, text in _settings(key, value, version_1=controller in mounts):
                _write(limiting[key] / file, text, key)
        return cls(folder, limiting)

    @property
    def folders(self) -> list[Path]:
        """All groups that a program of the container must enter."""
        return list(dict.fromkeys([self.folder, *self.limiting.values()]))

    def counts(self) -> Counts:
        """Effects of the limits so far."""
        memory, cpu, pids = (self.limiting.get(key, self.folder) for key in ("memory", "cpu", "pids"))
        kills = cgroup.numbers(memory / "memory.events") or cgroup.numbers(memory / "memory.oom_control")
        throttled = cgroup.numbers(cpu / "cpu.stat")
        throttled_ns = throttled.get("throttled_time", 1000 * throttled.get("throttled_usec", 0))
        return Counts(
            kills.get("oom_kill") if "memory" in self.limiting else None,
            cgroup.numbers(pids / "pids.events").get("max") if "pids" in self.limiting else None,
            throttled_ns / 1e9 if "cpu" in self.limiting else None,
            _number(memory / "memory.peak") or _number(memory / "memory.max_usage_in_bytes"),
        )


def _settings(key: str, value: float, *, version_1: bool) -> list[tuple[str, str]]:
    """The files of a group that set a limit, with their content."""
    match key:
        case "memory" if version_1:
            return [("memory.limit_in_bytes", f"{value:.0f}")]
        case "memory":
            return [("memory.max", f"{value:.0f}"), ("memory.swap.max", "0")]
        case "cpu" if version_1:
            return [("cpu.cfs_period_us", str(PERIOD_US)), ("cpu.cfs_quota_us", f"{value * PERIOD_US:.0f}")]
        case "cpu":
            return [("cpu.max", f"{value * PERIOD_US:.0f} {PERIOD_US}")]
        case _:
            return [("pids.max", f"{value:.0f}")]


def _hand_down(run: Path, controllers: Collection[str]) -> None:
    """Let groups within `run` use these controllers of version 2."""
    if not controllers:
        return
    mount = run.parents[1]
    available = (mount / "cgroup.controllers").read_text().split()
    for controller in controllers:
        if controller not in available:
            raise UsageError(f"{mount}: no controller {controller}; boot a kernel with it, or remove the limit")
    _move_processes(run, run / PROGRAMS)
    for group in (mount, run.parent, run):
        for controller in controllers:
            _write(group / "cgroup.subtree_control", f"+{controller}", controller)


def _move_processes(group: Path, into: Path) -> None:
    """Move all processes of one group, which may start others meanwhile."""
    into.mkdir(exist_ok=True)
    while pids := (group / "cgroup.procs").read_text().split():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                (into / "cgroup.procs").write_text(pid)


def _write(path: Path, text: str, key: str) -> None:
    """Write a file of a group. Raises UsageError; swap may not be accounted, which is no error."""
    try:
        path.write_text(text)
    except FileNotFoundError:
        if path.name != "memory.swap.max":
            raise UsageError(f"{path}: missing; boot a kernel that limits {key}, or remove the limit") from None
    except OSError as problem:
        raise UsageError(f'{path}: "{text}": {problem.strerror}; the limit of {key} is refused; correct or remove it') from None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
