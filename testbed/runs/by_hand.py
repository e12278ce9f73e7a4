"""Actions of a view or a prompt in the record of a run, as events and flows of a scenario: `manet run RUN_DIR` repeats them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from record.added_flows import added_flows
from record.events_file import SCENARIO, read_events
from scenarios.scenario import Scenario


@dataclass(frozen=True)
class ByHand:
    """The scenario with the actions, and one line for each that it has, and for each that it cannot have."""

    scenario: Scenario
    repeated: list[str]
    left_out: list[str]


def with_actions(directory: Path, scenario: Scenario) -> ByHand:
    """The scenario of the run in `directory` with the actions of events.csv and the flows of flows.json."""
    repeated: list[str] = []
    left_out: list[str] = []
    flows = added_flows(directory)
    if flows:
        tables = scenario.model_dump(by_alias=True, mode="json")
        scenario = Scenario.model_validate({**tables, "flows": [*tables["flows"], *flows]})
        repeated += [f"flow from {flow['from']} to {flow['to']} at {flow['start']:g} s" for flow in flows]
    for row in read_events(directory):
        if row["source"] == SCENARIO or row["event"] == "flow":
            continue
        text = f"{row['event']} of {row['station']} ({row['detail']})"
        if not row["at_s"]:
            left_out.append(f"{text} before the traffic, from which events count")
            continue
        tables = scenario.model_dump(by_alias=True, mode="json")
        event = {"at": float(row["at_s"]), **_keys(row)}
        try:
            scenario = Scenario.model_validate({**tables, "events": [*tables["events"], event]})
        except ValidationError as problem:
            words = problem.errors()[0]["msg"].removeprefix("Value error, ")
            left_out.append(f"{text} at {row['at_s']} s: {words}")
            continue
        repeated.append(f"{text} at {row['at_s']} s")
    return ByHand(scenario, repeated, left_out)


def _keys(row: dict[str, str]) -> dict[str, Any]:
    """The keys of the event that wrote this row (testbed/stages/events.py)."""
    words = row["detail"].split()
    match row["event"]:
        case "power":
            return {"power": row["station"], "on": row["detail"] == "on"}
        case "link":
            return {"link": row["station"].split(), "error_rate": float(words[1])}
        case _:
            return {"move": row["station"], "to": [float(word) for word in words[1:]]}
