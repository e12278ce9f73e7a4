"""`manet clean`: remove the leftovers of a killed `manet` or of a crash. Safe to run twice, and while experiments run.

The state files in /run/manet (testbed.host.state; of an ordinary user: in the user's own folder) identify what belongs to the
testbed, never a name: a process is ended only if its pid and its start time are those recorded, or if it is in the cgroup
recorded for a run whose owner is gone. A run whose owner is alive is left alone and reported. Namespaces, TAPs and BPF programs
end with the processes that hold them.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from testbed.host import cgroup, privileges
from testbed.host.processes import limit_s
from testbed.host.state import STATE_FOLDER, Process, RunState, recorded_runs

END_DEADLINE_S = 10.0
STRAY_AGE_S = 60.0


@dataclass
class Cleaned:
    """What `clean` removed, left alone, and failed to remove: one line each."""

    removed: list[str] = field(default_factory=list)
    still_running: list[str] = field(default_factory=list)
    could_not: list[str] = field(default_factory=list)


def clean(*, include_running: bool = False) -> Cleaned:
    """Remove all leftovers of this user's runs; with `include_running` also end the runs of other `manet` commands."""
    cleaned = Cleaned()
    for state in recorded_runs():
        if state.owner_alive() and not include_running:
            cleaned.still_running.append(f"{state.directory}: process {state.owner.pid} is at work on it")
        else:
            _end(state, cleaned)
    _remove_strays(cleaned)
    return cleaned


def _end(state: RunState, cleaned: Cleaned) -> None:
    """The run's processes, its cgroup, and last its state file, so that a clean that is itself killed can be repeated."""
    group = Path(state.cgroup) if state.cgroup else None
    _end_processes(state.keeper, group)
    if group is not None and (not _is_run_group(group) or not cgroup.remove(group)):
        cleaned.could_not.append(f"{group}: processes in it do not end; look at {group}/cgroup.procs")
        return
    state.remove()
    cleaned.removed.append(f"{state.directory}: the run {state.run_id} and all that was left of it")


def _end_processes(keeper: Process | None, group: Path | None) -> None:
    """A run whose owner died takes itself down in order; its processes are killed after END_DEADLINE_S (`limit_s`). Without a
    group all of them end with the keeper."""
    pids = cgroup.members(group) if group is not None and _is_run_group(group) else []
    members = [process for process in map(Process.of, pids) if process is not None]
    if keeper is not None and keeper.alive():
        members.append(keeper)
    if not members:
        return
    within_s = limit_s(END_DEADLINE_S, len(members))
    if not _all_ended(members, within_s):
        if keeper is not None:
            _kill(keeper)  # its child, pid 1 of the run's namespace, goes with it, and so everything in it
        for process in members:
            _kill(process)
        _all_ended(members, within_s)


def _is_run_group(group: Path) -> bool:
    """Whatever a state file says, only a folder directly below `<cgroup2>/manet` is ever touched."""
    mount = cgroup.cgroup2_mount()
    return mount is not None and group.parent == mount / cgroup.PARENT


def _all_ended(processes: list[Process], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while any(process.alive() for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _kill(process: Process) -> None:
    """Kill by pidfd, opened before the identity is checked, so that the pid cannot change hands in between."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process.pid)
        try:
            if process.alive():
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _remove_strays(cleaned: Cleaned) -> None:
    """Empty cgroups and broken state files to which no run belongs any more.

    The groups are listed before the records are read: a run's record is there before its group is. A run in a container
    may share the cgroups but not /run, so that one without a record is only touched if it is empty, and not new.
    """
    mount = None if privileges.rootless() else cgroup.cgroup2_mount()
    groups = sorted((mount / cgroup.PARENT).glob("*/")) if mount is not None else []
    recorded = {state.cgroup for state in recorded_runs()}
    for group in groups:
        if str(group) in recorded:
            continue
        with contextlib.suppress(FileNotFoundError):  # its run has just ended
            if cgroup.members(group):
                cleaned.still_running.append(f"{group}: a run that {STATE_FOLDER} has no record of (a container's?)")
            elif _is_stale(group) and cgroup.remove(group):
                cleaned.removed.append(f"{group}: an empty cgroup")
    for path in sorted(STATE_FOLDER.glob("*")):
        # a new draft is a record that another `manet` is writing at this moment
        if path.suffix == ".new" or (path.suffix == ".json" and RunState.load(path) is None):
            with contextlib.suppress(FileNotFoundError):  # a run that has just ended takes its own record away
                if _is_stale(path):
                    path.unlink()
                    cleaned.removed.append(f"{path}: a broken record")


def _is_stale(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > STRAY_AGE_S
