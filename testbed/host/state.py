"""The active runs: one file per run, `/run/manet/<run id>.json`, by which `manet clean` identifies processes of the testbed.

A process is identified by pid and start time (field 22 of /proc/<pid>/stat, proc(5)), because the pid may have been reused.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from testbed.errors import UsageError

STATE_FOLDER = Path("/run/manet")


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
    """A run: `owner` is the `manet` process that started it, `keeper` the process that holds its namespaces."""

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
            STATE_FOLDER.mkdir(parents=True, exist_ok=True)
            draft = self.path.with_suffix(".new")
            draft.write_text(json.dumps(asdict(self)) + "\n")
            draft.replace(self.path)
        except OSError as problem:
            raise UsageError(f"{STATE_FOLDER}: {problem.strerror}; the testbed needs root and a writable /run") from None

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


def recorded_runs() -> list[RunState]:
    """Every run that has a state file."""
    states = [RunState.load(path) for path in sorted(STATE_FOLDER.glob("*.json"))]
    return [state for state in states if state is not None]


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


def _start_of(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the name in parentheses may hold anything
    if fields[0] in ("Z", "X"):
        return None  # dead, only not waited for yet
    return int(fields[19])
