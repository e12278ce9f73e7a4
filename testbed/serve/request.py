"""A requested run, checked before it is accepted: a scenario by its keys, or a shipped experiment with overrides.

The checks are those of files (`manet run FILE`), of this machine, and of the programs. A request names no file, program or
network of this machine (scenarios/confined.py), and experiments by name only.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from keys.models import Strict, as_tuple
from keys.quantities import Whole
from keys.toml_lines import Path as KeyPath
from keys.toml_lines import TooMuch, parse
from scenarios import toml_file
from scenarios.document import EXPERIMENT_KEYS, Document
from scenarios.refusal import validated
from scenarios.toml_text import file_text, value_text
from testbed.campaigns import library
from testbed.campaigns.experiment import Experiment, of_document
from testbed.campaigns.request import Request
from testbed.errors import UsageError, did_you_mean, shortened

MAX_SEEDS = 10_000
MAX_SETTING = 100_000  # characters of a value of `set`: execve(2) takes 128 KiB for an argument
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$"
SETTING_KEY = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$"
NOT_A_SCENARIO = sorted({"scenario", toml_file.BASE, *EXPERIMENT_KEYS})

Seeds = Annotated[Whole, Field(ge=1, le=MAX_SEEDS, description="Seeds 1 to this number.")]
Profile = Annotated[Literal["period", "modern"], Field(description="As --profile of `manet run`.")]
Clock = Annotated[Literal["real", "virtual"], Field(description="As --clock of `manet run`.")]
SettingKey = Annotated[str, Field(pattern=SETTING_KEY)]


class ScenarioRequest(Strict):
    """A run of a scenario (formats/scenario.md)."""

    scenario: dict[str, Any]
    name: Annotated[str, Field(pattern=NAME, description="The name of the results.")] = "scenario"
    seeds: Seeds | None = None
    profile: Profile | None = None
    clock: Clock | None = None


class ExperimentRequest(Strict):
    """A run of a shipped experiment or ready-made scenario, by name, as `manet run NAME`."""

    experiment: Annotated[str, Field(pattern=NAME)]
    quick: Annotated[bool, Field(description="The quick size.")] = False
    set: Annotated[dict[SettingKey, Any], Field(description="Keys that replace the scenario's, dotted for tables.")] = Field(
        default_factory=dict
    )
    variant: Annotated[tuple[str, ...], BeforeValidator(as_tuple), Field(description="Only these; empty: all.")] = ()
    seeds: Seeds | None = None
    profile: Profile | None = None
    clock: Clock | None = None


@dataclass(frozen=True)
class Plan:
    """A checked request: `target`, the experiment's name, or the name of the scenario's file, whose text is `text`; and the
    options for `manet run`."""

    name: str
    runs: int
    target: str
    options: tuple[str, ...]
    text: str | None
    request: dict[str, Any]


def names() -> list[str]:
    """The experiments and ready-made scenarios that a request may name."""
    return sorted({*library.names(), *(path.stem for path in library.FOLDER.glob("scenarios/*.toml"))})


def plan_of(body: Any, check_machine: bool = True) -> Plan:
    """The plan of a request's JSON value. Raises UsageError, one line that names the key. `check_machine`: also check what this
    machine lacks, and what the programs would refuse."""
    if not isinstance(body, dict):
        raise UsageError('the body is no JSON object; send {"scenario": {...}} or {"experiment": "NAME"}')
    if ("scenario" in body) == ("experiment" in body):
        raise UsageError('the body needs either "scenario" or "experiment"')
    null = next((key for key, value in body.items() if value is None), None)
    if null is not None:
        raise UsageError(f'key "{shortened(null)}": is null; leave it out for the default')
    make = _of_scenario if "scenario" in body else _of_experiment
    experiment, plan, settings = make(body)
    if check_machine:
        _check_machine(experiment, settings)
    return plan


Made = tuple[Experiment, Plan, tuple[str, ...]]


def _of_scenario(body: dict[str, Any]) -> Made:
    request = validated(ScenarioRequest, body, _refusal)
    stray = next((key for key in NOT_A_SCENARIO if key in request.scenario), None)
    if stray is not None:
        raise UsageError(f'scenario: key "{stray}": unknown key; "scenario" holds the keys of one scenario')
    text = file_text(request.scenario)
    file = f"{request.name}.toml"
    try:
        tables, _lines = parse(text)
    except TooMuch as problem:
        raise UsageError(f"scenario: {problem}") from None
    document = Document(Path(file), "scenario", tables, texts={Path(file): text}, foreign=frozenset(request.scenario))
    settings = _short(request)
    experiment = of_document(document, Request(False, settings, (), request.seeds))
    options = tuple(_words(settings, request))
    return experiment, Plan(request.name, _runs(experiment), file, options, text, body), settings


def _of_experiment(body: dict[str, Any]) -> Made:
    request = validated(ExperimentRequest, body, _refusal)
    if request.experiment not in names():
        close = did_you_mean(request.experiment, names()) or "GET / lists them"
        raise UsageError(f'experiment: "{shortened(request.experiment)}" is none of the shipped ones; {close}')
    settings = (*(_setting(key, value) for key, value in request.set.items()), *_short(request))
    path = library.find(request.experiment)
    foreign = frozenset(key.split(".")[0] for key in request.set)
    document = replace(toml_file.read(path, request.experiment), foreign=foreign)
    experiment = of_document(document, Request(request.quick, settings, request.variant, request.seeds))
    options = [*(["--quick"] if request.quick else []), *_words(settings, request)]
    options += [word for variant in request.variant for word in ("--variant", variant)]
    plan = Plan(request.experiment, _runs(experiment), request.experiment, tuple(options), None, body)
    return experiment, plan, settings


def _refusal(path: KeyPath, text: str) -> UsageError:
    within = path[:1] == ("scenario",) and len(path) > 1  # a key of the scenario, which has a name of its own in messages
    key = ".".join(str(part) for part in path[within:])
    return UsageError(f'{"scenario: " * within}key "{shortened(key)}": {text}' if key else text)


def _setting(key: str, value: Any) -> str:
    text = value_text(value, key)
    if len(text) > MAX_SETTING:
        raise UsageError(f'set: key "{key}": is longer than {MAX_SETTING} characters; send the scenario instead')
    return f"{key}={text}"


def _short(request: ScenarioRequest | ExperimentRequest) -> tuple[str, ...]:
    """The settings of `profile` and `clock`."""
    settings = {"profile": request.profile, "clock": request.clock}
    return tuple(f"{key}={value}" for key, value in settings.items() if value is not None)


def _words(settings: tuple[str, ...], request: ScenarioRequest | ExperimentRequest) -> list[str]:
    options = [word for setting in settings for word in ("--set", setting)]
    return options + (["--seeds", str(request.seeds)] if request.seeds is not None else [])


def _runs(experiment: Experiment) -> int:
    return len(experiment.cells) * experiment.seeds


def _check_machine(experiment: Experiment, settings: tuple[str, ...]) -> None:
    from testbed.commands.options import place_of
    from testbed.workers.execution import Conditions, runner_of

    conditions = Conditions(tcp_place=place_of("tcp", settings, experiment.name))
    runner_of(experiment, conditions, say=lambda _text: None)
