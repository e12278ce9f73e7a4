"""The files that a scenario names: movements, sizes of packets, distributions of sessions."""

from pathlib import Path

from scenarios.movement import Replay
from scenarios.movement_files import matching
from scenarios.scenario import Scenario


def input_files(scenario: Scenario) -> list[Path]:
    """The files that the scenario names, of all seeds."""
    named = [(flow.kind, key, getattr(flow, key)) for flow in scenario.flows for key in flow.kind.path_keys]
    moved = matching(scenario.mobility) if isinstance(scenario.mobility, Replay) else []
    return [*(Path(value) for kind, key, value in named if value and kind.names_file(key, value)), *moved]
