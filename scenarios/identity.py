"""The identity of a scenario: a sum by which runs of other machines and days are known to be of the same scenario.

It is over the keys that differ from their defaults, and over the content of the files that the scenario names. It therefore stays
the same on another machine, where the files have other paths, and when a later version adds keys whose defaults change nothing.
A default that changes is not in it: GENERATION then rises, after which no older run is of the same scenario. It rises too when
the testbed changes the outcome of a scenario, as after a defect of the medium: a sum cannot know that.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from keys.errors import UsageError
from scenarios import profiles
from scenarios.movement import Replay
from scenarios.movement_files import matching
from scenarios.scenario import Scenario

GENERATION = 1  # of the defaults (scenarios/tests/test_identity.py)
DIGITS = 16  # of the sum, in hex: of a million scenarios no two are expected to have the same
WITHOUT_EFFECT = ("seeds", "capture_program")  # keys on which no outcome depends


def identity(scenario: Scenario) -> str:
    """The sum. UsageError for a file that is missing."""
    content: dict[str, Any] = scenario.model_dump(by_alias=True, mode="json", exclude_defaults=True, exclude=set(WITHOUT_EFFECT))
    content |= {"generation": GENERATION, "files": [_sum_of(path) for path in input_files(scenario)]}
    if isinstance(scenario.mobility, Replay):
        del content["mobility"]["file"]
    if profiles.is_own(scenario.radio):
        del content["radio"]
    if scenario.propagation.file is not None:
        del content["propagation"]["file"]
    for flow, keys in zip(scenario.flows, content.get("flows", []), strict=False):
        for key in flow.named_files():
            del keys[key]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:DIGITS]


def input_files(scenario: Scenario) -> list[Path]:
    """The files that the scenario names, of all seeds: sizes of packets, distributions of sessions, movements, links, a radio
    profile."""
    movements = matching(scenario.mobility) if isinstance(scenario.mobility, Replay) else []
    links = [Path(scenario.propagation.file)] if scenario.propagation.file is not None else []
    radio = [profiles.path_of(scenario.radio)] if profiles.is_own(scenario.radio) else []
    return [*(Path(file) for flow in scenario.flows for file in flow.named_files().values()), *movements, *links, *radio]


def _sum_of(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}; the scenario names this file, put it back") from None
