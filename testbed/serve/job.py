"""A job: a requested run in a folder of its own, `FOLDER/ID` (formats/serve.md), from the queue to its results."""

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from record.errors import RunFileError
from record.files import plain_file, read_object, write_atomic

FORMAT = "manet-job/1"
RECORD = "job.json"
ID = re.compile(r"[1-9][0-9]{0,8}")
State = Literal["queued", "running", "complete", "failed", "stopped", "interrupted"]
OPEN: tuple[State, ...] = ("queued", "running")


def now() -> str:
    """The time of day, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass
class Job:
    """`state`: `complete` once there are tables, even if runs are void or failed; `failed` without tables; `stopped` by a
    request; `interrupted` by the end of the server. `exit_status`: of `manet run`. Times are UTC. `target`: an experiment's
    name, or the file of a scenario in the folder (`is_file`)."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # of a record that is read
    folder: Path
    name: str
    request: dict[str, Any]
    runs: int
    target: str
    options: tuple[str, ...]
    is_file: bool = False
    state: State = "queued"
    queued: str = ""
    started: str | None = None
    ended: str | None = None
    exit_status: int | None = None
    error: str | None = None

    @property
    def id(self) -> str:
        """The name of the folder: a number."""
        return self.folder.name

    @property
    def results(self) -> Path:
        """The folder of results (formats/results.md)."""
        return self.folder / "results"

    @property
    def is_open(self) -> bool:
        """Whether it waits or runs."""
        return self.state in OPEN

    def argv(self) -> list[str]:
        """The words for `manet run`."""
        target = str(self.folder / self.target) if self.is_file else self.target
        return [target, *self.options, "--out", str(self.results), "--json", "--progress", "json"]

    def save(self) -> None:
        """Write job.json."""
        entry = {key: value for key, value in asdict(self).items() if key != "folder"}
        write_atomic(self.folder / RECORD, json.dumps({"format": FORMAT, **entry}, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Job | None":
        """The job in a folder; None if it holds none. RunFileError for a record that is none."""
        path = folder / RECORD
        if ID.fullmatch(folder.name) is None or not (path.exists() or path.is_symlink()):
            return None
        try:
            with plain_file(path, beneath=folder.parent) as file:
                entry = json.load(file)
            if not isinstance(entry, dict) or entry.pop("format", None) != FORMAT:
                raise RunFileError(f'{path}: is no "{FORMAT}"')
            return TypeAdapter(cls).validate_json(json.dumps(entry | {"folder": str(folder)}))  # strict: lists become tuples
        except OSError as problem:
            raise RunFileError(f"{path}: {problem.strerror}") from None
        except ValidationError as problem:
            first = problem.errors(include_url=False, include_context=False)[0]
            raise RunFileError(f'{path}: "{".".join(map(str, first["loc"]))}": {first["msg"]}') from None
        except (ValueError, TypeError, RecursionError) as problem:
            raise RunFileError(f"{path}: is no record of a run ({problem})") from None

    def answer(self) -> dict[str, Any] | None:
        """What `manet run --json` printed; None before the end, and without tables."""
        if self.is_open:
            return None
        return read_object(self.folder / "stdout") or None

    def summary(self) -> dict[str, Any]:
        """The job in a list."""
        keys = ("id", "name", "state", "runs", "queued", "started", "ended", "exit_status", "error")
        return {key: getattr(self, key) for key in keys}
