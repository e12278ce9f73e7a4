"""A run that has ended, read from its directory: what is needed to run it again, and what is different now."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from record import records
from record.files import read_text
from record.found_runs import find_run
from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.runs import metadata
from testbed.runs.under_way import ended

# Keys that an experiment adds to run.json.
EXPERIMENT_KEYS = ("experiment", "cell", "variant", "axes")


@dataclass(frozen=True)
class Recorded:
    """A recorded run; `run` is the content of run.json."""

    directory: Path
    scenario: Scenario
    seed: int
    run: dict[str, Any]

    @classmethod
    def read(cls, directory: Path) -> "Recorded":
        """The run in a directory, or the only one below it. Raises UsageError for one that is under way or unreadable."""
        directory = ended(find_run(directory))
        run = records.checked(directory / records.RUN, _json(directory / records.RUN))
        if not isinstance(run.get("seed"), int):
            raise UsageError(f'{directory / "run.json"}: has no "seed"; give the directory of a run: results/NAME/CELL/seed-N')
        path = directory / "scenario.json"
        try:
            scenario = Scenario.model_validate(_json(path))
        except ValidationError as problem:
            words = problem.errors()[0]["msg"].removeprefix("Value error, ")
            raise UsageError(f"{path}: this version cannot read it: {words}; use the commit in run.json") from None
        return cls(directory, scenario, run["seed"], run)

    @property
    def experiment_fields(self) -> dict[str, Any]:
        """The fields of run.json that the experiment has added."""
        return {key: self.run[key] for key in EXPERIMENT_KEYS if key in self.run}

    def differences(self) -> list[str]:
        """Commit, kernel and versions that differ from those of the run, one line each."""
        clock = self.run.get("clock") or {}
        kernel = "host_kernel" if clock.get("kind") == "virtual" else "kernel"
        was = {"commit": self.run.get("commit"), kernel: clock.get("host_kernel") or self.run.get("kernel")}
        now = {"commit": metadata.commit(), kernel: metadata.kernel()}
        versions = self.run.get("versions") or {}
        present = metadata.versions(self.scenario.routing.protocol, self.scenario.routing.DESCRIPTION)
        was |= {name: versions.get(name) for name in present}
        now |= present
        return [f"{name}: {_text(was[name])}, now {_text(now[name])}" for name in was if was[name] != now[name]]


def _text(value: str | None) -> str:
    return value or "none"


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_text(path))
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}; give the directory of a run: results/NAME/CELL/seed-N") from None
    except ValueError:
        raise UsageError(f"{path}: is not JSON; the record is damaged, and the run cannot be repeated from it") from None
    return content if isinstance(content, dict) else {}
