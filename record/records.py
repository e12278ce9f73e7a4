"""run.json, campaign.json and experiment.json as their readers need them. The files may have been edited; the first value of a
wrong type is reported with its file and the remedy.

The models have the keys that some reader uses (formats/results.md, formats/answers.md). A key may be missing, as in the records
of older versions and of runs that ended early.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from record.errors import RunFileError
from record.files import read_object

RUN, CAMPAIGN, EXPERIMENT = "run.json", "campaign.json", "experiment.json"
SHOWN_CHARACTERS = 40  # of a wrong value


class _Record(BaseModel):
    model_config = ConfigDict(strict=True)


class _Host(_Record):
    name: str | None = None
    cpus: int | None = None


class _Clock(_Record):
    kind: str | None = None
    host_kernel: str | None = None


class _Command(_Record):
    name: str
    argv: list[str]


class _Run(_Record):
    id: str | None = None
    experiment: str | None = None
    cell: str | None = None
    variant: str | None = None
    axes: dict[str, Any] | None = None
    seed: int | None = None
    started: str | None = None
    ended: str | None = None
    epoch_ns: int | None = None
    traffic_ns: int | None = None
    status: str | None = None
    error: str | None = None
    host_late: bool | None = None
    commit: str | None = None
    kernel: str | None = None
    tcp: dict[str, str] | None = None
    versions: dict[str, str | None] | None = None
    host: _Host | None = None
    clock: _Clock | None = None
    session_s: float | None = None
    commands: list[_Command] | None = None


class _Limit(_Record):
    round: int
    runs: int
    not_started: int


class _Batch(_Record):
    jobs: list[int] | None = None


class _Campaign(_Record):
    name: str | None = None
    resume: str | None = None
    size: str | None = None
    began: str | None = None
    ended: str | None = None
    experiments: list[str] | None = None
    rounds: list[dict[str, Any]] | None = None
    wall_s: float | None = None
    emulated_s: float | None = None
    verdicts: dict[str, int] | None = None
    batches: list[_Batch] | None = None
    time_limit: _Limit | None = None


class _Cell(_Record):
    name: str
    variant: str | None = None
    axes: dict[str, Any] = {}
    profile: str | None = None
    scenario_sha256: str | None = None
    identity: str | None = None


class _Experiment(_Record):
    name: str
    question: str | None = None
    source: str | None = None
    figure: str | None = None
    quick: bool = False
    axes: dict[str, list[Any]] = {}
    units: dict[str, str] = {}
    seeds: int = 0
    resume: str | None = None
    cells: list[_Cell]
    expect: dict[str, Any] = {}
    questions: list[dict[str, Any]] = []


MODELS: dict[str, tuple[type[_Record], str]] = {
    RUN: (_Run, "move the run out of the results, and run it again with --resume"),
    CAMPAIGN: (_Campaign, "the campaign's command rewrites it"),
    EXPERIMENT: (_Experiment, "run again with --resume to rewrite it"),
}


def wrong_value(name: str, content: dict[str, Any]) -> str | None:
    """The first value in the content of the file `name` that has another type, in words."""
    try:
        MODELS[name][0].model_validate(content)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False)[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            return f'"{key}" is missing'
        return f'"{key}" is {json.dumps(first["input"])[:SHOWN_CHARACTERS]}, of another type than expected'
    return None


def checked(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """The content of the file; RunFileError for a value of another type."""
    wrong = wrong_value(path.name, content)
    if wrong is not None:
        raise RunFileError(f"{path}: {wrong}; {MODELS[path.name][1]}")
    return content


def read(path: Path) -> dict[str, Any]:
    """The content of a file whose keys may all be missing, empty without the file; RunFileError for a value of another type."""
    return checked(path, read_object(path))


def model_s(run: Path) -> float:
    """The length of a run by the medium's clock (s), by verdict.json; 0 for one that was interrupted before its verdict."""
    model_ns = read_object(run / "verdict.json").get("model_ns")
    return model_ns / 1e9 if isinstance(model_ns, int | float) else 0.0
