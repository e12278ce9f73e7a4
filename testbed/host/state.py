"""The active runs: one file per run, `/run/manet/<run id>.json`, by which `manet clean` identifies processes of the testbed. The
runs of an ordinary user have another folder (testbed.host.privileges.state_folder).

A process is identified by pid and start time (field 22 of /proc/<pid>/stat, proc(5)), because the pid may have been reused.
"""

import contextlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from testbed.errors import UsageError
from testbed.host import cgroup, privileges

STATE_FOLDER = privileges.state_folder()


@dataclass(frozen=True)
class Process:
    """A process that cannot be confused with a later one of the same pid."""

    pid: int
    start: int  # clock ticks since boot

    @classmethod
    def of(cls, pid: int) -> "Process | None":
        """The process with this pid; None if there is none, or only a zombie."""
        start = _start_of(pid)
        return None if start is None else cls(pid, start)

    def alive(self) -> bool:
        """Whether this very process still runs."""
        return _start_of(self.pid) == self.start


@dataclass
class RunState:
    """A run: `owner` is the `manet` process that started it, `keeper` the process that holds its namespaces. `cgroup`: its
    control group; empty for a run of an ordinary user, which has none."""

    run_id: str
    directory: str
    cgroup: str
    owner: Process
    keeper: Process | None = None
    pid_namespace: str = field(default_factory=lambda: _pid_namespace())  # the pid namespace of owner and keeper

    def owner_alive(self) -> bool:
        """Whether the owner runs; also true if that is unknown, as for a container that shares /run with this machine."""
        return self.pid_namespace != _pid_namespace() or self.owner.alive()

    @property
    def path(self) -> Path:
        """The state file."""
        return STATE_FOLDER / f"{self.run_id}.json"

    def save(self) -> None:
        """Write the file, completely or not at all. Raises UsageError without root."""
        try:
            privileges.make_state_folder(STATE_FOLDER)
            draft = self.path.with_suffix(".new")
            draft.write_text(json.dumps(asdict(self)) + "\n")
            draft.replace(self.path)
        except OSError as problem:
            raise UsageError(f"{STATE_FOLDER}: {problem.strerror}; make {STATE_FOLDER.parent} writable") from None

    def remove(self) -> None:
        """Delete the state file; a missing file is not an error."""
        self.path.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> "RunState | None":
        """The state in a file; None if it is not a state file."""
        try:
            data = json.loads(path.read_text())
            for key in ("owner", "keeper"):
                data[key] = Process(**data[key]) if data.get(key) else None
            return cls(**data)
        except (OSError, ValueError, TypeError):
            return None


def processes_of(state: RunState) -> list[Path]:
    """The folders in proc(5) of a run's processes, as this process sees them; empty once it has ended."""
    if state.cgroup:
        return [Path(f"/proc/{pid}") for pid in cgroup.members(Path(state.cgroup))]
    inits = [] if state.keeper is None or not state.keeper.alive() else _children_of(state.keeper.pid)
    # the run's pid namespace has its own /proc, at its usual place in the run's mount namespace
    folders = [Path(f"/proc/{init}/root/proc") for init in inits]
    return [folder / str(pid) for folder in folders for pid in cgroup.processes(folder)]


def _children_of(parent: int) -> list[int]:
    """The processes whose parent is this one (proc_pid_stat(5), field 4)."""
    return [pid for pid in cgroup.processes() if _fields_of(pid)[1:2] == [str(parent)]]


def enter_user_namespace() -> None:
    """Have this process, which has one thread, the rights that it needs for runs (testbed.host.privileges.enter)."""
    if not privileges.rootless():
        return
    this = Process.of(os.getpid())
    assert this is not None
    owners = [state.owner for state in recorded_runs()]
    with contextlib.suppress(OSError, ValueError, TypeError):
        owners.append(Process(**json.loads((STATE_FOLDER / privileges.HOLDER).read_text())))
    privileges.enter(STATE_FOLDER, owners, this)


def recorded_runs() -> list[RunState]:
    """Every run that has a state file."""
    states = [RunState.load(path) for path in sorted(STATE_FOLDER.glob("*.json"))]
    return [state for state in states if state is not None]


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


def _start_of(pid: int) -> int | None:
    fields = _fields_of(pid)
    if not fields or fields[0] in ("Z", "X"):
        return None  # dead, at most not waited for yet
    return int(fields[19])


def _fields_of(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the third on, the state; empty if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()  # the name in parentheses may hold anything
